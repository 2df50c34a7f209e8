"""What one check of the matrix found, and whose it is: ours only if the same engine does better without us."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.interop.values import Rows


class Verdict(StrEnum):
    """How a check ended."""

    AGREES = "agrees"
    CANNOT = "cannot"  # The engine fails, and says the same of the table that we never touched.
    THEIRS = "theirs"  # The engine differs from the model, and in the same way without us.
    REFUSED = "refused"  # We did not rewrite a table that we may refuse, and said why.
    KNOWN = "known"  # Ours, with a cause that is understood and written down (see `known`).
    OURS = "OURS"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the matrix: the table, who made it, what was done after our rewrite and by whom."""

    case: str
    creator: str
    writer: str = "-"
    operation: str = "our rewrite"


@dataclass(frozen=True, slots=True)
class Result:
    """One check: which reader (or `laws`), what it checked, its verdict, and the engine's words or values."""

    place: Place
    reader: str
    check: str
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """What an engine said instead of an answer; two are the same if their words are, but for names and numbers."""

    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Failure) and _essence(self.text) == _essence(other.text)

    def __hash__(self) -> int:
        return hash(_essence(self.text))


_LONGEST_TEXT = 600
_COMPARED_TEXT = 120
_STACK = re.compile(r"JVM stacktrace|Stack Trace:|\n\tat ")
_VOLATILE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,}|(file:)?/[^\s'\"]+|0x[0-9a-f]+|\d+|part-\S+|\S*\.parquet")
_SEVERAL = re.compile(r"#(\W*#)+")


def _essence(text: str) -> str:
    return _SEVERAL.sub("#", _VOLATILE.sub("#", text))[:_COMPARED_TEXT]


def attempt(what: Callable[[], Any]) -> Any:
    """Return what a call returns, or the Failure it ends in, whatever an engine raises."""
    try:
        return what()
    except BaseException as error:  # Engines written in Rust panic with errors that are no Exception.
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return Failure(f"{type(error).__name__}: {_words(str(error))}"[:_LONGEST_TEXT])


def _words(text: str) -> str:
    """Return what an error says without its stack; of a chain in Java, the last cause."""
    causes = [line for line in text.splitlines() if line.startswith("Caused by: ")]
    told = (
        causes[-1]
        if causes
        else text.split("JVM stacktrace", maxsplit=1)[0]
        .split("Stack Trace:", maxsplit=1)[0]
        .split("\n\tat ", maxsplit=1)[0]
    )
    return " ".join(told.split())


def judge(seen: Any, expected: Any, without_us: Callable[[], Any]) -> Verdict:
    """Return whose difference it is; `without_us` repeats the observation on a table that we never touched."""
    if seen == expected:
        return Verdict.AGREES
    control = without_us()
    if control != seen and not _is_no_worse(seen, control, expected):
        return Verdict.OURS
    return Verdict.CANNOT if isinstance(seen, Failure) else Verdict.THEIRS


def _is_no_worse(seen: Any, control: Any, expected: Any) -> bool:
    """Return whether rows are wrong in no way in which they are not wrong without us: our rewrite may spare some."""
    if not isinstance(seen, Rows) or not isinstance(control, Rows) or seen.types != control.types:
        return False
    surplus, lack = seen.counts - expected.counts, expected.counts - seen.counts
    return surplus <= control.counts - expected.counts and lack <= expected.counts - control.counts
