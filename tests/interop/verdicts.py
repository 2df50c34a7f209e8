"""What one check of the matrix found, and whose it is: ours only if the same engine does better without us."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.interop.table_case import KEY
from tests.interop.values import Rows


class Verdict(StrEnum):
    """How a check ended."""

    AGREES = "agrees"
    CANNOT = "cannot"  # The engine fails, and so it does on the table that we never touched.
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


@dataclass(frozen=True, slots=True)
class Failure:
    """What an engine said instead of an answer."""

    text: str


_LONGEST_TEXT = 600
_COMPARED_TEXT = 120
_COLOR = re.compile(r"\x1b\[\d*m")
_STACK = re.compile(r"JVM stacktrace|Stack Trace:|\n\tat ")
_VOLATILE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,}|(file:)?/[^\s'\"]+|0x[0-9a-f]+|\d+|part-\S+|\S*\.parquet")
_SEVERAL = re.compile(r"#(\W*#)+")


def essence(text: str) -> str:
    """Return what an engine says without the names and numbers that differ from one time to the next."""
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
    reported = (
        causes[-1]
        if causes
        else text.split("JVM stacktrace", maxsplit=1)[0]
        .split("Stack Trace:", maxsplit=1)[0]
        .split("\n\tat ", maxsplit=1)[0]
    )
    return " ".join(_COLOR.sub("", reported).split())


def judge(seen: Any, expected: Any, *without_us: Callable[[], Any]) -> Verdict:
    """Return whose difference it is; each of `without_us` repeats the observation on a table that we never touched."""
    if seen == expected:
        return Verdict.AGREES
    for repeat in without_us:
        control = repeat()
        if isinstance(control, Failure) and isinstance(seen, Failure):
            return Verdict.CANNOT  # Loud with us and without, if not always with the same words.
        if control == seen or _is_no_worse(seen, control, expected):
            return Verdict.THEIRS
    return Verdict.OURS


def _is_no_worse(seen: Any, control: Any, expected: Any) -> bool:
    """Return whether rows are wrong in no way in which they are not wrong without us.

    Our rewrite may spare some rows. It may also put more of them where the engine's own defect meets them, as in a file
    that a writer replaces whole: then every row is there once, and wrong only in columns that are wrong without us.
    """
    if not (isinstance(seen, Rows) and isinstance(control, Rows) and seen.columns == expected.columns):
        return False
    kinds = zip(seen.types, control.types, expected.types, strict=True) if control.columns == seen.columns else ()
    if control.columns != seen.columns or any(ours not in others for ours, *others in kinds):
        return False
    surplus, lack = seen.counts - expected.counts, expected.counts - seen.counts
    if surplus <= control.counts - expected.counts and lack <= expected.counts - control.counts:
        return True
    same_keys = Counter(_keys(seen)) == Counter(_keys(expected)) and Counter(_keys(control)) == Counter(_keys(expected))
    return same_keys and _wrong_columns(seen, expected) <= _wrong_columns(control, expected)


def _keys(rows: Rows) -> Iterator[Any]:
    at = rows.columns.index(KEY)
    return (row[at] for row in rows.counts.elements())


def _wrong_columns(rows: Rows, expected: Rows) -> set[str]:
    """Return the columns in which a row differs from the expected one of its key; all keys are there."""
    at = rows.columns.index(KEY)
    right = {row[at]: row for row in expected.counts}
    return {
        name
        for row in rows.counts
        for name, value, should in zip(rows.columns, row, right[row[at]], strict=True)
        if value != should
    }
