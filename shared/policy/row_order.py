"""Order of the rows in the outputs of a file group, as the owner of a table names it and as a writer has to keep it."""

import re
from dataclasses import dataclass

MAX_SORT_COLUMNS = 8
"""Columns of a sort order; beyond a few, no reader gains, and every output takes longer to sort."""

_COLUMN = re.compile(r"(?:`((?:[^`]|``)+)`|([^\s,`]+))(?:\s+(asc|desc))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column to sort by, under the name that users know; nulls come first, with `is_descending` last."""

    name: str
    is_descending: bool = False

    def __str__(self) -> str:
        quoted = self.name.replace("`", "``")
        return f"`{quoted}` {'DESC' if self.is_descending else 'ASC'}"


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Order of the rows of a group's outputs; without columns it is the inputs' own, one after the other.

    is_interleaved: the columns weigh alike, by Z-order; otherwise each decides among equal values of those before it.
    outputs: files that the rows are split into, whose ranges are disjoint; fewer where there are not as many values.
    """

    columns: tuple[SortColumn, ...] = ()
    is_interleaved: bool = False
    outputs: int = 1


INPUT_ORDER = RowOrder()
"""Rows of the first input, then of the next, each in their order."""


def parse_sort_columns(text: str) -> tuple[SortColumn, ...]:
    """Read a sort order such as ``a, b desc, `odd name` ``; raises ValueError with what was expected."""
    found = []
    for part in split_columns(text):
        match = _COLUMN.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} is no column with an optional asc or desc")
        name = match[1].replace("``", "`") if match[1] else match[2]
        found.append(SortColumn(name, (match[3] or "").lower() == "desc"))
    names = [column.name.lower() for column in found]
    if len(set(names)) < len(names):
        raise ValueError("a column is named twice")
    if len(found) > MAX_SORT_COLUMNS:
        raise ValueError(f"at most {MAX_SORT_COLUMNS} columns, found {len(found)}")
    return tuple(found)


def split_columns(text: str) -> list[str]:
    """Split at commas outside of backticks: those with an even number of backticks after them."""
    return re.split(r",(?=(?:[^`]*`[^`]*`)*[^`]*$)", text)
