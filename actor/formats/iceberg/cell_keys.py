"""The clustering columns of an Iceberg table as its files store them, for tasks that move rows without Spark's SQL."""

from collections.abc import Sequence
from dataclasses import dataclass

from actor.cells.columns import FIRST_DAY, INSTANTS, MS, CellColumn, Stored, stored_points
from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.parquet.file_columns import ParquetField
from shared.layout.cells.boxes import Point
from shared.layout.key_values import DECIMAL_DIGITS

_WHOLE = ("", "INTEGER(8,true)", "INTEGER(16,true)", "INTEGER(32,true)", "INTEGER(64,true)")


@dataclass(frozen=True, slots=True)
class RowKeys:
    """How files of the same columns store the clustering ones, and their paths there."""

    stored: tuple[Stored, ...]
    paths: tuple[tuple[str, ...], ...]

    def points(self, rows: Sequence[Sequence[int | str | None]]) -> list[Point]:
        """Return the rows of a sample as points."""
        return stored_points(self.stored, rows)


def find_keys(footers: GroupFooters, columns: Sequence[CellColumn]) -> RowKeys | None:
    """Return the keys of files of the same columns; None if these are not stored in their plain order."""
    found = {tuple(_stored_in(footers, digest, column) for column in columns) for digest in footers.schemas}
    if len(found) != 1:
        return None
    known = [one for one in found.pop() if one is not None]
    if len(known) < len(columns):
        return None
    return RowKeys(tuple(stored for stored, _ in known), tuple(path for _, path in known))


def _stored_in(footers: GroupFooters, digest: str, column: CellColumn) -> tuple[Stored, tuple[str, ...]] | None:
    """Return how files of a schema store a column, and its path there."""
    field = footers.found[digest].fields.get(int(column.path[0]))
    if field is None:
        return None
    stored = stored_as(column, field)
    return None if stored is None else (stored, _path(footers.schemas[digest].fields, field))


def stored_as(column: CellColumn, field: ParquetField) -> Stored | None:
    """Return how a field of files stores a column, if so that its order is plain there; None otherwise."""
    physical, logical = field.physical, field.logical
    is_number = physical in ("INT32", "INT64")
    if column.type == "string":
        is_text = (physical, logical) == ("BINARY", "STRING")
        return Stored(every=0, text_bytes=column.text_bytes) if is_text else None
    if column.type == "date":
        return Stored(first=FIRST_DAY) if (physical, logical) == ("INT32", "DATE") else None
    if column.type in INSTANTS:
        return Stored(every=MS) if physical == "INT64" and logical.startswith("TIMESTAMP(MICROS,") else None
    if column.type.startswith("decimal"):
        scale = column.type.rstrip(")").rpartition(",")[2]
        is_whole = is_number and logical.startswith("DECIMAL(") and logical.rstrip(")").rpartition(",")[2] == scale
        return Stored(factor=10 ** (DECIMAL_DIGITS - int(scale))) if is_whole else None
    return Stored() if column.type in ("integer", "long") and is_number and logical in _WHOLE else None


def _path(fields: Sequence[ParquetField], wanted: ParquetField) -> tuple[str, ...]:
    for one in fields:
        below = () if one is wanted else _path(one.children, wanted)
        if one is wanted or below:
            return one.name, *below
    return ()
