"""What one check of the matrix found, and whose it is: ours only if the same engine does better without us."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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
    KNOWN = "known"  # Ours, with a cause that is understood and written down (see `KNOWN`).
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


@dataclass(frozen=True, slots=True)
class Known:
    """One known difference of our rewrite: the reader's name, words of its failure, and the explanation.

    It is no pardon for wrong rows: a reader that silently finds other rows is never covered. The page shows them apart.
    """

    reader: str
    words: re.Pattern[str]
    why: str


KNOWN = (
    Known(
        "-",
        re.compile(r"VACUUM: (RemoteError: )?CommitFailedError: Unsupported table features required"),
        "deltalake records a VACUUM as a commit, and cannot commit to a table with features that it does not support "
        "for writing. Without a rewrite, it finds nothing to remove there and so has nothing to record. It fails with "
        "an error. Run VACUUM with the engine that writes the table.",
    ),
    Known(
        "polars",
        re.compile(r"ShapeError: could not create a new DataFrame: height of column '[^']*[^A-Za-z0-9_'][^']*'"),
        "Polars reads partition values from folder names, not from the log, and only if a folder has the column's "
        "exact name. Here that name needs escaping. Engines spell the escaped name differently, and a remove with "
        "another spelling than the add duplicates rows, so Lakewright's outputs are in folders of random letters. "
        "Polars fails there with an error, as where Spark writes with delta.randomizeFilePrefixes "
        "(tests/contract/test_delta_paths.py), and returns no wrong rows. Read such a table with another engine.",
    ),
    Known(
        "deltalake, newest safe (Arrow dataset)",
        re.compile(r"^dec18 < Decimal\('-999999999\.999999999'\): \d+ files instead of 0$"),
        "deltalake takes the number 1E-9, as Spark spells the bound of a decimal, for null. Then it skips the file for "
        "every predicate on that column, also where rows match. Where Lakewright copies row groups, the bound is "
        "0.000000001, which deltalake understands. It reads one file more, and finds the rows that it missed before.",
    ),
)


def explain(result: Result) -> str:
    """Return why a result is as it is, the empty text if no one knows."""
    return next((one.why for one in KNOWN if one.reader == result.reader and one.words.search(result.detail)), "")


def recognized(result: Result) -> Result:
    """Return a result that is ours as known, if it is."""
    if result.verdict is Verdict.OURS and explain(result):
        return replace(result, verdict=Verdict.KNOWN)
    return result
