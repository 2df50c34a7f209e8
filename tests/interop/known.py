"""Differences that our rewrite does make and that are known: each with its cause, and what we do about it.

An entry is no pardon for wrong rows: it names words of a failure, so that a reader which silently finds other rows is
never covered. The page of results shows them apart.
"""

import re
from dataclasses import dataclass, replace

from tests.interop.verdicts import Result, Verdict


@dataclass(frozen=True, slots=True)
class Known:
    """One known difference: the reader's name, words of its failure, and the explanation."""

    reader: str
    words: re.Pattern[str]
    why: str


KNOWN = (
    Known(
        "polars",
        re.compile(r"^SchemaFieldNotFoundError: path contains column not present in the given Hive schema"),
        "Polars takes partition values from directories instead of the log, and wants them in all paths or in none. "
        "Outputs for values that engines escape differently lie in directories without them, as Delta itself lays "
        "files under `delta.randomizeFilePrefixes`: elsewhere deltalake's removes would miss them and double rows. "
        "The failure is loud. Read such a table with `use_pyarrow=True` or by another engine.",
    ),
    Known(
        "polars",
        re.compile(r"^ShapeError: could not create a new DataFrame: height of column"),
        "The same cause: Spark keeps partition columns in data files, deltalake does not, and Polars cannot read both "
        "kinds together where the directories do not name the values.",
    ),
)


def explain(result: Result) -> str:
    """Return why a result is as it is, the empty text if nobody knows."""
    return next((one.why for one in KNOWN if one.reader == result.reader and one.words.search(result.detail)), "")


def recognized(result: Result) -> Result:
    """Return a result that is ours as known, if it is."""
    if result.verdict is Verdict.OURS and explain(result):
        return replace(result, verdict=Verdict.KNOWN)
    return result
