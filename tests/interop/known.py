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
        "Polars fails with the same error on tables that Spark writes with delta.randomizeFilePrefixes, without "
        "Lakewright (tests/contract/test_delta_paths.py). It fails with an error and returns no wrong rows. Read such "
        "a table with another engine.",
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
