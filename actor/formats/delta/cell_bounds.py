"""The clustering columns of a Delta table in cells: how its files store them, and their bounds in statistics."""

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from actor.cells.columns import FIRST_DAY, FLOATS, INSTANTS, MS, TEXTS, CellColumn, Stored
from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.columns import INT_BITS, Column
from actor.formats.delta.statistics import get_statistic
from actor.formats.delta.stored_schema import physical_name
from shared.errors import RefusedFiles
from shared.layout.cells.boxes import EVERYTHING, NAN, NULL, Box, Span, span_of
from shared.layout.cells.tags import CELL_TAG, ColumnPath
from shared.layout.key_values import DECIMAL_DIGITS, is_sortable
from shared.refusals import RefusalReason


def is_bounded(statistics: Mapping[str, Any], column: CellColumn) -> bool:
    """Return whether statistics say something of a file's place in a column."""
    low, high, nulls = _bounds(statistics, column)
    is_null = nulls is not None and nulls == statistics.get("numRecords")
    return is_null or span_of(low, high, column.type, nulls=0, rows=None) != EVERYTHING


def stored_in(schemas: Iterable[Sequence[Column]], column: CellColumn) -> Stored | None:
    """Return how all files of these schemas store a column, if so that its order is plain there; None otherwise."""
    found = {next((leaf for leaf in schema if leaf.path == column.path), None) for schema in schemas}
    return None if None in found else _stored(column.type, [leaf for leaf in found if leaf is not None])


def _stored(kind: str, leaves: Sequence[Column]) -> Stored | None:
    """Return how leaves of files store a type of a table."""
    kinds = {leaf.kind for leaf in leaves}
    if kind == "string":
        return TEXTS if kinds == {"text"} else None
    if kind == "date":
        return Stored(first=FIRST_DAY) if kinds == {"date"} else None
    if kind in INSTANTS:
        is_exact = kinds == {"timestamp"} and all(leaf.detail[0] == "MICROS" for leaf in leaves)
        return Stored(every=MS) if is_exact else None
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").rpartition(",")[2])
        is_whole = all(leaf.physical in INT_BITS and leaf.detail[1] == scale for leaf in leaves)
        return Stored(factor=10 ** (DECIMAL_DIGITS - scale)) if kinds == {"decimal"} and is_whole else None
    return Stored() if kinds == {"int"} and kind not in FLOATS else None


def read_statistics(text: str | None) -> Mapping[str, Any]:
    """Read the statistics of a file, with decimals as they are spelled; what is no JSON object says nothing."""
    try:
        found = json.loads(text or "{}", parse_float=Decimal)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def box_of(columns: Sequence[CellColumn], logged: LoggedFile) -> Box:
    """Return the box of a file by its statistics in the log."""
    statistics = read_statistics(json.loads(logged.json).get("stats"))
    return box_in(statistics, columns, is_new=CELL_TAG not in logged.file.tags)


def box_in(statistics: Mapping[str, Any], columns: Sequence[CellColumn], *, is_new: bool) -> Box:
    """Return the box of a file by its statistics; the bounds of others' files leave out NaN."""
    return tuple(_span(statistics, column, is_new=is_new) for column in columns)


def _span(statistics: Mapping[str, Any], column: CellColumn, *, is_new: bool) -> Span:
    low, high, nulls = _bounds(statistics, column)
    first, end = span_of(low, high, column.type, nulls=nulls, rows=statistics.get("numRecords"))
    return first, NAN + 1 if is_new and column.type in FLOATS and end > NULL + 1 else end


def _bounds(statistics: Mapping[str, Any], column: CellColumn) -> tuple[Any, Any, Any]:
    low, high, nulls = (get_statistic(statistics, of, column.path) for of in ("minValues", "maxValues", "nullCount"))
    return low, high, nulls


def cell_columns(
    paths: Iterable[ColumnPath], metadata: Mapping[str, Any], statistics: Mapping[str, Any], location: str
) -> tuple[CellColumn, ...]:
    """Return the clustering columns of a table, by the paths in its files.

    metadata: fields of its `metaData` action. statistics: schema of those that its writers note. Raises RefusedFiles
    for a column without bounds: every file would lie at the root again and again.
    """
    schema = json.loads(metadata["schemaString"])
    return tuple(_column(path, schema, statistics, location) for path in paths)


def _column(path: ColumnPath, schema: Mapping[str, Any], statistics: Mapping[str, Any], location: str) -> CellColumn:
    fields, noted = _fields(schema, path), _fields(statistics, ("minValues", *path))
    kind = fields[-1]["type"] if len(fields) == len(path) else None
    if len(noted) <= len(path) or not isinstance(kind, str) or not is_sortable(kind):
        named = ".".join(field["name"] for field in fields) or ".".join(path)
        raise RefusedFiles(
            f"the table at {location} is not kept in cells: its writers note no minima and maxima of {named!r}, a "
            "clustering column, so no file would ever have its place; let delta.dataSkippingStatsColumns name it, or "
            "unset that property and delta.dataSkippingNumIndexedCols",
            reason=RefusalReason.BOUNDS,
            field=named,
        )
    return CellColumn(path, tuple(field["name"] for field in fields), kind)


def _fields(schema: Mapping[str, Any], path: ColumnPath) -> list[Mapping[str, Any]]:
    """Return the fields along a path, as far as there are any."""
    found: list[Mapping[str, Any]] = []
    inside: Any = schema
    for name in path:
        fields = inside.get("fields", ()) if isinstance(inside, Mapping) else ()
        field = next((one for one in fields if physical_name(one) == name), None)
        if field is None:
            break
        found.append(field)
        inside = field["type"]
    return found
