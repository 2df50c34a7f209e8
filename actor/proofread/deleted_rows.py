"""Rows that are deleted, as positions in a table of DuckDB: whatever form a format names them in."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice

import duckdb

from actor.proofread.file_fields import read_schemas, require_positions
from actor.proofread.hashing import column_value, type_of
from actor.proofread.locations import readable
from actor.proofread.matching import match
from actor.proofread.model import (
    OLDER,
    DeleteForm,
    Deletes,
    ProofFile,
    Rewritten,
)
from actor.proofread.older_rows import note_older
from actor.proofread.parquet_deletes import insert_parquet_deletes
from actor.proofread.sql import DEAD, literal, read_parquet
from actor.proofread.task import Answer, ReadEnding
from actor.proofread.vectors import ReadBytes, read_vector

POSITIONS_AT_ONCE = 200_000
"""Positions of one statement: as text they take 1.5 MB; a list of Python takes 20 microseconds for each."""

_VECTORS = (DeleteForm.DELTA_VECTOR, DeleteForm.PUFFIN_VECTOR)


def note_deleted(
    connection: duckdb.DuckDBPyConnection, group: Rewritten, files: Sequence[ProofFile], read: ReadBytes
) -> None:
    """Fill the table with the deleted rows of these files."""
    if not any(file.deletes for file in files):
        return
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {DEAD} (place VARCHAR, row BIGINT)")
    # What lies beside a removal of older rows counts only with it.
    newest = group.newest if any(OLDER in file.deletes for file in files) else None
    read_files = (*files, *(newest.beside if newest else ()))
    insert_parquet_deletes(connection, group, read_files)
    for file in read_files:
        for deletes in file.deletes:
            if deletes.form in _VECTORS:
                _insert(connection, readable(file.path), read_vector(deletes, group.table, read))
            elif deletes.form in _INSERTED_BY:
                _INSERTED_BY[deletes.form](connection, group, deletes, file)
    if newest is not None:
        note_older(connection, group, newest, files)


def compare_deleted(connection: duckdb.DuckDBPyConnection, group: Rewritten, read: ReadBytes) -> Answer:
    """Compare the rows that are deleted in inputs and in outputs, which are the same data files."""
    for name, files in (("before", group.inputs), ("after", group.outputs)):
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {DEAD} (place VARCHAR, row BIGINT)")
        note_deleted(connection, group, files, read)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE lakewright_{name} AS SELECT DISTINCT place, row FROM {DEAD}")
    before, after = "FROM lakewright_before", "FROM lakewright_after"
    sides = (before, f"FROM ({before} EXCEPT {after})", f"FROM ({after} EXCEPT {before})")
    counts = [f"(SELECT count(*) {side})" for side in sides]
    rows, lost, new = connection.execute(f"SELECT {', '.join(counts)}").fetchone() or (0, 0, 0)
    if lost or new:
        text = f"{lost:,} deleted rows would be visible again, and {new:,} others would be deleted"
        return Answer(ReadEnding.DIFFERENT, text, rows)
    return Answer(ReadEnding.SAME, rows=rows)


def _insert(connection: duckdb.DuckDBPyConnection, place: str, positions: Iterator[int]) -> None:
    while numbers := ",".join(map(str, islice(positions, POSITIONS_AT_ONCE))):
        insert = f"INSERT INTO {DEAD} SELECT ?, unnest(string_split(?, ',')::BIGINT[])"
        connection.execute(insert, [place, numbers])


def _insert_others(connection: duckdb.DuckDBPyConnection, _group: Rewritten, deletes: Deletes, file: ProofFile) -> None:
    (schema,) = read_schemas(connection, [readable(file.path)])
    require_positions(schema.fields)
    rows = read_parquet(schema.paths, with_positions=True)
    others = f"FROM {rows} WHERE file_row_number NOT IN (SELECT unnest(?::BIGINT[]))"
    insert = f"INSERT INTO {DEAD} SELECT filename, file_row_number {others}"
    connection.execute(insert, [json.loads(deletes.text)])


def _insert_over(connection: duckdb.DuckDBPyConnection, group: Rewritten, deletes: Deletes, file: ProofFile) -> None:
    """Insert the positions of rows with a lesser value of a column; null is not less."""
    name, bound = json.loads(deletes.text)
    column = next(one for one in group.columns if one.name == name)
    (schema,) = read_schemas(connection, [readable(file.path)])
    require_positions(schema.fields)
    (found,) = match((column,), schema.fields, group.found_by)
    connection.execute(
        f"INSERT INTO {DEAD} SELECT filename, file_row_number FROM "
        f"{read_parquet(schema.paths, with_positions=True)} "
        f"WHERE {column_value(found)} < {literal(bound)}::{type_of(column.kind)}"
    )


_INSERTED_BY = {DeleteForm.OTHERS: _insert_others, DeleteForm.OVER: _insert_over}
