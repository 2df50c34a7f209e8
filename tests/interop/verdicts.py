"""What one check of the matrix found, and whose it is: ours only if the same engine does better without us."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """How a check ended."""

    AGREES = "agrees"
    CANNOT = "cannot"  # The engine fails, and says the same of the table that we never touched.
    THEIRS = "theirs"  # The engine differs from the model, and in the same way without us.
    REFUSED = "refused"  # We did not rewrite this table, and said why.
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
_VOLATILE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,}|(file:)?/[^\s'\"]+|0x[0-9a-f]+|\d+|part-\S+")


def _essence(text: str) -> str:
    return _VOLATILE.sub("#", text)[:_COMPARED_TEXT]


def attempt(what: Callable[[], Any]) -> Any:
    """Return what a call returns, or the Failure it ends in, whatever an engine raises."""
    try:
        return what()
    except BaseException as error:  # Engines written in Rust panic with errors that are no Exception.
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        words = " ".join(str(error).split("JVM stacktrace")[0].split("Stack Trace:")[0].split())
        return Failure(f"{type(error).__name__}: {words}"[:_LONGEST_TEXT])


def judge(seen: Any, expected: Any, without_us: Callable[[], Any]) -> Verdict:
    """Return whose difference it is; `without_us` repeats the observation on a table that we never touched."""
    if seen == expected:
        return Verdict.AGREES
    if without_us() != seen:
        return Verdict.OURS
    return Verdict.CANNOT if isinstance(seen, Failure) else Verdict.THEIRS
