"""A part of a page that a command writes from code, between two marks; the rest of the page is written by hand."""

from pathlib import Path


def write_part(page: Path, begin: str, end: str, part: str) -> None:
    """Replace what stands between the marks of a page, the marks included."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(before + part + rest.split(end)[1], encoding="utf-8")
