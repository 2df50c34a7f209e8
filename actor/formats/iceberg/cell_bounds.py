"""The clustering columns of an Iceberg table in cells, and the boxes of its files by the bounds in manifests.

Writers cut the bounds of texts to some characters, and round the upper one up at the last of these: what is before it
is as it was written, so texts are compared by one byte less than there are characters.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from actor.cells.columns import FLOATS, CellColumn
from actor.formats.iceberg.table_columns import TableColumns
from shared.errors import RefusedFiles
from shared.formats.iceberg.cell_names import MAX_CELL_BYTES, longest_cell, path_of
from shared.layout.cells.boxes import EVERYTHING, NAN, NULL, Box, Span
from shared.layout.cells.tags import ColumnPath
from shared.layout.key_values import is_sortable
from shared.policy.row_order import parse_sort_columns
from shared.refusals import RefusalReason

Bounds = Sequence[tuple[str | None, str | None, int | None, int | None]]
"""For each column the least and the greatest value as texts, and how many are null and NaN; None: not known."""

MOST_TEXT_BYTES = 15
"""Bytes of a text that count where bounds are cut to Iceberg's default of 16 characters; more fit into no name."""

_TYPES = {"int32": "integer", "int64": "long", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
_TRUNCATED = re.compile(r"truncate\((\d+)\)")


def cell_columns(
    table: TableColumns, named: str, modes_of: Callable[[Sequence[int]], Sequence[str]], location: str
) -> tuple[CellColumn, ...]:
    """Return the columns that `cluster-by` names.

    modes_of: how much of the values of columns, by their ids, writers keep as bounds. Raises RefusedFiles for a column
    that is not there or has no bounds, and for cells that no name has room for.
    """
    names = [column.name for column in parse_sort_columns(named)]
    found = named_columns(table, named)
    if missing := [name for name in names if name not in found]:
        raise RefusedFiles(
            f"{location} has no column {missing[0]!r}, which lakewright.cluster-by names: name columns that it has",
            reason=RefusalReason.UNSUPPORTED,
            field="cluster-by",
        )
    modes = modes_of([field_id for field_id, _ in found.values()])
    columns = []
    for (name, (field_id, path)), mode in zip(found.items(), modes, strict=True):
        kind, text_bytes = _type_of(table, field_id), _text_bytes(mode)
        if not is_sortable(kind) or mode in ("none", "counts") or text_bytes < 1:
            raise _unbounded(name, location)
        columns.append(CellColumn(path_of(field_id, kind, text_bytes), path, kind, text_bytes))
    if longest_cell([column.path for column in columns]) > MAX_CELL_BYTES:
        raise RefusedFiles(
            f"{location}: cells of the columns {named} do not fit into the names of files; let lakewright.cluster-by "
            "name fewer of them, such as three texts, four whole numbers, or three decimals",
            reason=RefusalReason.UNSUPPORTED,
            field="cluster-by",
        )
    return tuple(columns)


def named_columns(table: TableColumns, named: str | None) -> Mapping[str, tuple[int, ColumnPath]]:
    """Return id and path of the columns that `cluster-by` names, in its order, as far as the table has them.

    None of them is in a list or a map.
    """
    if named is None:
        return {}
    known = {
        ".".join(path): (one.id, path)
        for one, above in table.each()
        if one.id is not None and all(up.kind == "struct" for up in above)
        for path in [tuple(field.name for field in (*above, one))]
    }
    return {column.name: known[column.name] for column in parse_sort_columns(named) if column.name in known}


def _type_of(table: TableColumns, field_id: int) -> str:
    """Return the type of a column as `shared.layout.key_values` calls it."""
    kind = next(one.kind for one, _ in table.each() if one.id == field_id)
    return _TYPES.get(kind, kind)


def _text_bytes(mode: str) -> int:
    cut = _TRUNCATED.fullmatch(mode)
    return MOST_TEXT_BYTES if cut is None else min(MOST_TEXT_BYTES, int(cut[1]) - 1)


def require_bounds(columns: Sequence[CellColumn], bounds: Bounds, rows: int, location: str) -> None:
    """Raise RefusedFiles for an output without bounds of a column: it would move again and again."""
    for column, of_column in zip(columns, bounds, strict=True):
        if _span(column, of_column, rows) == EVERYTHING:
            raise _unbounded(".".join(column.name), location)


def box_of(columns: Sequence[CellColumn], bounds: Bounds, rows: int) -> Box:
    """Return the box of a file of so many rows."""
    return tuple(_span(column, of_column, rows) for column, of_column in zip(columns, bounds, strict=True))


def _span(column: CellColumn, bounds: tuple[str | None, str | None, int | None, int | None], rows: int) -> Span:
    low, high, nulls, nans = bounds
    if nulls == rows:
        return NULL, NULL + 1
    may_be_nan = column.type in FLOATS and nans != 0
    if may_be_nan and nans is not None and nulls is not None and nulls + nans == rows:
        return NULL if nulls else NAN, NAN + 1
    if low is None or high is None:
        return EVERYTHING
    first, last = column.number(low), column.number(high)
    if not first <= last < NAN:  # Writers of old wrote NaN as a bound, which says nothing of the other values.
        return EVERYTHING
    return first if nulls == 0 else NULL, NAN + 1 if may_be_nan else last + 1


def _unbounded(name: str, location: str) -> RefusedFiles:
    return RefusedFiles(
        f"the table at {location} is not kept in cells: its manifests would hold no bounds of {name!r}, a column of "
        "lakewright.cluster-by, so no file would ever have its place; choose a column of numbers, texts, dates or "
        "timestamps, and let write.metadata.metrics.* keep its bounds, of texts 2 characters at least",
        reason=RefusalReason.BOUNDS,
        field=name,
    )
