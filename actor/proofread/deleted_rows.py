"""Rows that are deleted, as positions in a table of DuckDB: whatever form a format names them in.

Delete files of positions and of keys are found by their reserved field ids, never by place.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import duckdb

from actor.proofread.file_fields import FileField, read_schemas, require_positions
from actor.proofread.hashing import column_hash, column_value, type_of
from actor.proofread.locations import SPELLED_AS_PLACE, place_of, readable
from actor.proofread.matching import match
from actor.proofread.model import (
    OLDER,
    CannotRead,
    ColumnsUnclear,
    DeleteForm,
    Deletes,
    Field,
    FoundBy,
    ProofFile,
    Rewritten,
)
from actor.proofread.older_rows import note_older
from actor.proofread.sql import DEAD, literal, quoted, read_parquet
from actor.proofread.task import Answer, ReadEnding
from actor.proofread.vectors import ReadBytes, read_vector

POSITIONS_AT_ONCE = 200_000
"""Positions of one statement: as text they take 1.5 MB; a list of Python takes 20 microseconds for each."""

_FILE_PATH_ID, _POSITION_ID = 2147483546, 2147483545
_KEYS = "lakewright_keys"
_VECTORS = (DeleteForm.DELTA_VECTOR, DeleteForm.PUFFIN_VECTOR)


def note_deleted(
    connection: duckdb.DuckDBPyConnection, group: Rewritten, files: Sequence[ProofFile], read: ReadBytes
) -> None:
    """Fill the table with the deleted rows of these files."""
    if not any(file.deletes for file in files):
        return
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {DEAD} (place VARCHAR, row BIGINT)")
    applied: dict[Deletes, list[ProofFile]] = {}
    # What lies beside a removal of older rows counts only with it.
    newest = group.newest if any(OLDER in file.deletes for file in files) else None
    for file in (*files, *(newest.beside if newest else ())):
        for deletes in file.deletes:
            applied.setdefault(deletes, []).append(file)
    _insert_keys(connection, group, applied)
    for deletes, those in applied.items():
        if deletes.form in _VECTORS:
            for file in those:
                _insert(connection, readable(file.path), read_vector(deletes, group.table, read))
        elif deletes.form in _INSERTED_BY:
            _INSERTED_BY[deletes.form](connection, group, deletes, those)
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


def _insert_positions(
    connection: duckdb.DuckDBPyConnection, _group: Rewritten, deletes: Deletes, files: Iterable[ProofFile]
) -> None:
    path, fields = _only_schema(connection, deletes)
    file_path, position = (_by_id(fields, number, deletes) for number in (_FILE_PATH_ID, _POSITION_ID))
    places = ", ".join(literal(place_of(file.path)) for file in files)
    spelled = SPELLED_AS_PLACE.format(file_path)
    connection.execute(
        f"INSERT INTO {DEAD} SELECT {spelled}, {position} FROM {read_parquet([path])} WHERE {spelled} IN ({places})"
    )


def _insert_keys(
    connection: duckdb.DuckDBPyConnection, group: Rewritten, applied: Mapping[Deletes, Sequence[ProofFile]]
) -> None:
    """Insert the positions of rows whose key is among the deleted ones; null equals null.

    Each file is read once, however many of the ones apply to the others: keys are kept with the number of their file.
    """
    of_files: dict[tuple[str, tuple[int, ...]], tuple[ProofFile, list[int]]] = {}
    values = {one: those for one, those in applied.items() if one.form is DeleteForm.EQUALITY}
    if values:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {_KEYS} (number INTEGER, hash UBIGINT)")
    for number, (deletes, those) in enumerate(values.items()):
        keys = _keys(group, deletes.key_ids)
        path, fields = _only_schema(connection, deletes)
        for column in deletes.key_ids:
            _by_id(fields, column, deletes)
        key = _key_hash(keys, fields, {})
        connection.execute(f"INSERT INTO {_KEYS} SELECT DISTINCT {number}, {key} FROM {read_parquet([path])}")
        for file in those:
            of_files.setdefault((file.path, tuple(sorted(deletes.key_ids))), (file, []))[1].append(number)
    for (_, ids), (file, numbers) in of_files.items():
        (schema,) = read_schemas(connection, [readable(file.path)])
        require_positions(schema.fields)
        key = _key_hash(_keys(group, ids), schema.fields, dict(file.constants))
        deleted = f"SELECT hash FROM {_KEYS} WHERE number IN ({', '.join(map(str, numbers))})"
        connection.execute(
            f"INSERT INTO {DEAD} SELECT filename, file_row_number FROM "
            f"{read_parquet(schema.paths, with_positions=True)} WHERE {key} IN ({deleted})"
        )
    if values:
        connection.execute(f"DROP TABLE {_KEYS}")


def _keys(group: Rewritten, ids: Collection[int]) -> tuple[Field, ...]:
    keys = tuple(column for column in group.columns if column.id in ids)
    if len(keys) != len(ids):
        raise CannotRead("equality deletes by a field that is not a top-level column of the table any more")
    return keys


def _insert_others(
    connection: duckdb.DuckDBPyConnection, _group: Rewritten, deletes: Deletes, files: Iterable[ProofFile]
) -> None:
    for file in files:
        (schema,) = read_schemas(connection, [readable(file.path)])
        require_positions(schema.fields)
        rows = read_parquet(schema.paths, with_positions=True)
        others = f"FROM {rows} WHERE file_row_number NOT IN (SELECT unnest(?::BIGINT[]))"
        insert = f"INSERT INTO {DEAD} SELECT filename, file_row_number {others}"
        connection.execute(insert, [json.loads(deletes.text)])


def _insert_over(
    connection: duckdb.DuckDBPyConnection, group: Rewritten, deletes: Deletes, files: Iterable[ProofFile]
) -> None:
    """Insert the positions of rows with a lesser value of a column; null is not less."""
    name, bound = json.loads(deletes.text)
    column = next(one for one in group.columns if one.name == name)
    for schema in read_schemas(connection, [readable(file.path) for file in files]):
        require_positions(schema.fields)
        (found,) = match((column,), schema.fields, group.found_by)
        connection.execute(
            f"INSERT INTO {DEAD} SELECT filename, file_row_number FROM "
            f"{read_parquet(schema.paths, with_positions=True)} "
            f"WHERE {column_value(found)} < {literal(bound)}::{type_of(column.kind)}"
        )


_INSERTED_BY = {
    DeleteForm.POSITIONS: _insert_positions,
    DeleteForm.OTHERS: _insert_others,
    DeleteForm.OVER: _insert_over,
}


def _key_hash(keys: Sequence[Field], fields: Sequence[FileField], constants: dict[int, str | None]) -> str:
    found = match(keys, fields, FoundBy.ID, constants)
    return f"hash(hash({', '.join(map(column_hash, found))}))"


def _only_schema(connection: duckdb.DuckDBPyConnection, deletes: Deletes) -> tuple[str, tuple[FileField, ...]]:
    path = readable(deletes.path)
    (schema,) = read_schemas(connection, [path])
    return path, schema.fields


def _by_id(fields: Iterable[FileField], number: int, deletes: Deletes) -> str:
    names = [field.sql for field in fields if field.id == number]
    if len(names) != 1:
        raise ColumnsUnclear(f"the delete file {deletes.path} has {len(names)} fields of the id {number}")
    return quoted(names[0])
