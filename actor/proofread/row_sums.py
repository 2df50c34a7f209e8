"""The rows of files as one number: the sum of a hash of each live row, whatever order and files they lie in.

A sum and not an exclusive or, under which pairs of equal rows would vanish. Hashes of DuckDB; its own reader decodes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb

from actor.proofread.deleted_rows import note_deleted
from actor.proofread.file_fields import FileField, read_schemas, require_positions
from actor.proofread.hashing import column_hash, leaf_hash
from actor.proofread.locations import readable
from actor.proofread.matching import Found, match
from actor.proofread.model import ProofFile, Rewritten
from actor.proofread.sql import live_rows, quoted
from actor.proofread.sql import read_parquet as call_of
from actor.proofread.vectors import ReadBytes

COLUMNS_AT_ONCE = 256
"""Columns whose own sums one query computes after a difference: few enough to keep its plan small."""


@dataclass(frozen=True, slots=True)
class RowSum:
    """Live rows of one side of a group, and the sum of their hashes."""

    rows: int = 0
    sum: int = 0

    def __add__(self, other: "RowSum") -> "RowSum":
        return RowSum(self.rows + other.rows, self.sum + other.sum)


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Files that one query reads: the SQL of their live rows, and one expression for each column.

    place: SQL of the file that a row comes from, empty where a column of the table hides it.
    """

    rows: str
    hashes: tuple[str, ...]
    place: str

    @property
    def row_hash(self) -> str:
        """SQL of a row's hash; the outer one finishes what DuckDB leaves linear in its columns."""
        return f"hash(hash({', '.join(self.hashes)}))"


def row_sum(connection: duckdb.DuckDBPyConnection, portions: Sequence[RowQuery]) -> RowSum:
    """Return the sum over all portions."""
    total = RowSum()
    for portion in portions:
        row = connection.execute(f"SELECT count(*), sum({portion.row_hash}) FROM {portion.rows}").fetchone() or (0, 0)
        total += RowSum(row[0], row[1] or 0)
    return total


def column_sums(connection: duckdb.DuckDBPyConnection, portions: Sequence[RowQuery], columns: int) -> list[int]:
    """Return the sum of each column's own hashes."""
    totals = [0] * columns
    for portion in portions:
        for first in range(0, columns, COLUMNS_AT_ONCE):
            sums = ", ".join(f"sum({one})" for one in portion.hashes[first : first + COLUMNS_AT_ONCE])
            found = connection.execute(f"SELECT {sums} FROM {portion.rows}").fetchone() or ()
            for index, value in enumerate(found, first):
                totals[index] += value or 0
    return totals


def portions_of(
    connection: duckdb.DuckDBPyConnection, group: Rewritten, files: Sequence[ProofFile], read: ReadBytes
) -> tuple[RowQuery, ...]:
    """Return queries for one side of a group: one for each schema, and for what else differs between files."""
    if not files:
        return ()
    note_deleted(connection, group, files, read)
    by_place = {readable(file.path): file for file in files}
    portions: list[RowQuery] = []
    for schema in read_schemas(connection, tuple(by_place)):
        for kind, places in _alike(group, by_place, schema.paths).items():
            portions.append(_portion(group, schema.fields, [by_place[one] for one in places], kind[-1]))
    return tuple(portions)


def _alike(group: Rewritten, files: dict[str, ProofFile], places: Sequence[str]) -> dict[tuple[object, ...], list[str]]:
    """Return files by what one query has in common; the last part says whether it needs positions."""
    tracks_rows = any(column.kind.startswith("row_") for column in group.columns)
    alike: dict[tuple[object, ...], list[str]] = {}
    for place in places:
        file = files[place]
        numbers = (file.first_row_id, file.sequence) if tracks_rows else ()
        kind = (tuple(sorted(file.constants.items())), *numbers, bool(file.deletes) or tracks_rows)
        alike.setdefault(kind, []).append(place)
    return alike


def _portion(
    group: Rewritten, fields: Sequence[FileField], files: Sequence[ProofFile], with_positions: object
) -> RowQuery:
    if with_positions:
        require_positions(fields)
    places = [readable(file.path) for file in files]
    rows = call_of(places, with_positions=bool(with_positions))
    if any(file.deletes for file in files):
        rows = live_rows(places)
    found = match(group.columns, fields, group.found_by, files[0].constants)
    is_shadowed = any(field.name.casefold() == "filename" for field in fields)
    return RowQuery(rows, tuple(_expressions(found, files[0])), "''" if is_shadowed else "filename")


def _expressions(found: Sequence[Found], file: ProofFile) -> Iterator[str]:
    for one in found:
        stored = quoted(one.field.sql) if one.field else "NULL::BIGINT"
        if one.column.kind == "row_id":
            inherited = f"{file.first_row_id} + file_row_number" if file.first_row_id is not None else "NULL"
            yield leaf_hash(f"coalesce({stored}, {inherited})", "row_id")
        elif one.column.kind == "row_version":
            inherited = str(file.sequence) if file.sequence is not None else "NULL"
            yield leaf_hash(f"coalesce({stored}, {inherited})", "row_version")
        else:
            yield column_hash(one)
