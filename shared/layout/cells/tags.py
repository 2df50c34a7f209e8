"""The tag by which a file names the cell that it was written for: a list of each column's name, least number and end.

An open side is null. A file that was written to wait at an inner node names none: its list is empty. Names are those
in the files, which renaming a column does not change. A cell of other columns is none, and neither is any other text.
"""

import json
from collections.abc import Sequence

from shared.layout.cells.boxes import EVERYTHING, Box, Span

CELL_TAG = "lakewright.cell"
"""Tag of a file that was written for a table in cells; a file without it is new."""

ColumnPath = tuple[str, ...]
"""The names of a column in files, of the outermost field first."""


def encode_cell(cell: Box | None, columns: Sequence[ColumnPath]) -> str:
    """Write a cell of these columns; None: the file waits at an inner node."""
    named = () if cell is None else zip(columns, cell, strict=True)
    return json.dumps([[path, *map(_bound, span, EVERYTHING)] for path, span in named], separators=(",", ":"))


def decode_cell(text: str, columns: Sequence[ColumnPath]) -> Box | None:
    """Read a cell of these columns; None where a text names none."""
    try:
        named = [(tuple(path), _span(low, end)) for path, low, end in json.loads(text)]
    except (ValueError, TypeError, RecursionError):
        return None
    return tuple(span for _, span in named) if [path for path, _ in named] == list(columns) else None


def _bound(number: int, opened: int) -> int | None:
    return None if number == opened else number


def _span(low: object, end: object) -> Span:
    first, last = (opened if one is None else one for one, opened in zip((low, end), EVERYTHING, strict=True))
    if type(first) is not int or type(last) is not int or not EVERYTHING[0] <= first < last <= EVERYTHING[1]:
        raise ValueError(f"{low!r} to {end!r} is no span")
    return first, last
