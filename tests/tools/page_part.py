"""A part of a page that a command writes from code, between two marks; the rest of the page is written by hand."""

from collections.abc import Iterable
from pathlib import Path

from shared.refusals import Explained


def write_part(page: Path, begin: str, end: str, part: str) -> None:
    """Replace what stands between the marks of a page, the marks included."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(before + part + rest.split(end)[1], encoding="utf-8")


def reasons_table(begin: str, reasons: Iterable[Explained], end: str) -> str:
    """Return a table of reasons with their meaning, between the marks."""
    rows = [f"| `{reason}` | {reason.message} |" for reason in reasons]
    return "\n".join([begin, "", "| reason | meaning |", "|---|---|", *rows, "", end])
