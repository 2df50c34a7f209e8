"""Rows that delete files of Parquet name, by position or by key: each file is read once, with all of its columns.

One delete file may apply to each of thousands of data files, and thousands of them to each. So delete files have
numbers, and what applies to a data file are a few runs of these. The columns of delete files are found by their
reserved field ids, never by place.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

import duckdb

from actor.proofread.file_fields import FileField, SchemaFiles, read_schemas, require_positions
from actor.proofread.hashing import column_hash
from actor.proofread.locations import SPELLED_AS_PLACE, readable
from actor.proofread.matching import match
from actor.proofread.model import CannotRead, ColumnsUnclear, DeleteForm, Deletes, Field, FoundBy, ProofFile, Rewritten
from actor.proofread.sql import DEAD, quoted, read_parquet

_FORMS = (DeleteForm.POSITIONS, DeleteForm.EQUALITY)
_FILE_PATH_ID, _POSITION_ID = 2147483546, 2147483545

_FILES, _DELETES, _APPLIED = "lakewright_files", "lakewright_delete_files", "lakewright_applied"
"""Tables of data files (number, place), of delete files (number, place), and of runs (file, first, last) of these."""

_KEYS, _KEYED = "lakewright_keys", "lakewright_keyed"
"""Tables of keys (number, hash) by the number of their file, and of rows with such a key (file, row, hash, number)."""


def insert_parquet_deletes(connection: duckdb.DuckDBPyConnection, group: Rewritten, files: Sequence[ProofFile]) -> None:
    """Insert the rows of files that delete files of Parquet name, null equal to null in keys."""
    # The file with the most is mostly the oldest, whose delete files are in the order of all.
    named = sorted((file for file in files if file.deletes), key=lambda one: -len(one.deletes))
    numbers = _note_applied(connection, named)
    if not numbers:
        return
    _insert_positions(connection, [one for one in numbers if one.form is DeleteForm.POSITIONS])
    for ids in {_ids(one) for one in numbers} - {()}:
        keyed = [file for file in named if any(_ids(one) == ids for one in file.deletes)]
        _insert_keys(connection, group, [one for one in numbers if _ids(one) == ids], keyed)


def _ids(deletes: Deletes) -> tuple[int, ...]:
    """Return the columns of keys, none where rows are not named by these."""
    return tuple(sorted(deletes.key_ids)) if deletes.form is DeleteForm.EQUALITY else ()


def _note_applied(connection: duckdb.DuckDBPyConnection, files: Sequence[ProofFile]) -> dict[Deletes, int]:
    """Fill the tables of files and of what applies to them; return the delete files by their numbers."""
    numbers: dict[Deletes, int] = {}
    known: dict[int, int] = {}  # By identity: most pairs are of a delete file that was seen before.
    runs: list[tuple[int, int, int]] = []
    for place, file in enumerate(files):
        for one in file.deletes:
            if one.form in _FORMS and id(one) not in known:
                known[id(one)] = numbers.setdefault(one, len(numbers))
        applied = sorted({known[id(one)] for one in file.deletes if one.form in _FORMS})
        runs += ((place, first, last) for first, last in _runs(applied))
    if not numbers:
        return numbers
    columns = [",".join(map(str, column)) for column in zip(*runs, strict=True)]
    listed = ", ".join(f"unnest(string_split(?, ',')::INTEGER[]) AS {name}" for name in ("file", "first", "last"))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {_APPLIED} AS SELECT {listed}", columns)
    for name, places in ((_FILES, [one.path for one in files]), (_DELETES, [one.path for one in numbers])):
        of_all = "SELECT unnest(range(len($places))) AS number, unnest($places) AS place"
        given = {"places": [readable(path) for path in places]}
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {of_all}", given)
    return numbers


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Return the first and the last of successive numbers, which rise."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _insert_positions(connection: duckdb.DuckDBPyConnection, deletes: Sequence[Deletes]) -> None:
    for schema in _schemas(connection, deletes):
        path, position = (_by_id(schema, number) for number in (_FILE_PATH_ID, _POSITION_ID))
        connection.execute(
            f"INSERT INTO {DEAD} SELECT files.place, named.{position} FROM {_rows(schema.paths)} named "
            f"JOIN {_DELETES} deletes ON deletes.place = named.filename "
            f"JOIN {_FILES} files ON files.place = {SPELLED_AS_PLACE.format(f'named.{path}')} "
            f"JOIN {_APPLIED} applied ON applied.file = files.number "
            "AND deletes.number BETWEEN applied.first AND applied.last"
        )


def _insert_keys(
    connection: duckdb.DuckDBPyConnection, group: Rewritten, deletes: Sequence[Deletes], files: Sequence[ProofFile]
) -> None:
    """Insert the rows whose key one of these delete files names, all of the same columns, that applies to their file.

    Mostly the newest one that names a key does; the others are asked where it does not.
    """
    keys = _keys(group, deletes[0].key_ids)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {_KEYS} (number INTEGER, hash UBIGINT)")
    for schema in _schemas(connection, deletes):
        for column in deletes[0].key_ids:
            _by_id(schema, column)
        connection.execute(
            f"INSERT INTO {_KEYS} SELECT DISTINCT number, {_key_hash(keys, schema.fields, {})} "
            f"FROM {_rows(schema.paths)} JOIN {_DELETES} ON place = filename"
        )
    newest = f"(SELECT hash, max(number) AS number FROM {_KEYS} GROUP BY hash)"
    oldest = f"(SELECT file, min(first) AS first FROM {_APPLIED} GROUP BY file)"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {_KEYED} (file INTEGER, row BIGINT, hash UBIGINT, number INTEGER)"
    )
    constants = {readable(file.path): dict(file.constants) for file in files}
    for schema in read_schemas(connection, tuple(constants)):
        require_positions(schema.fields)
        for paths, values in _alike(schema.paths, constants):
            rows = f"SELECT filename, file_row_number AS row, {_key_hash(keys, schema.fields, values)} AS hash"
            connection.execute(
                f"INSERT INTO {_KEYED} SELECT files.number, row, hash, newest.number FROM ({rows} FROM {_rows(paths)}) "
                f"JOIN {newest} newest USING (hash) JOIN {_FILES} files ON files.place = filename "
                f"JOIN {oldest} oldest ON oldest.file = files.number AND newest.number >= oldest.first"
            )
    applies = "applied.file = keyed.file AND {}.number BETWEEN applied.first AND applied.last"
    by_newest = f"SELECT keyed.file, row FROM {_KEYED} keyed JOIN {_APPLIED} applied ON {applies.format('keyed')}"
    by_others = (
        f"SELECT DISTINCT keyed.file, row FROM (FROM {_KEYED} ANTI JOIN ({by_newest}) USING (file, row)) keyed "
        f"JOIN {_KEYS} keys USING (hash) JOIN {_APPLIED} applied ON {applies.format('keys')}"
    )
    for found in (by_newest, by_others):
        connection.execute(f"INSERT INTO {DEAD} SELECT place, row FROM ({found}) JOIN {_FILES} ON number = file")
    for table in (_KEYS, _KEYED):
        connection.execute(f"DROP TABLE {table}")


def _alike(
    paths: Iterable[str], constants: dict[str, dict[int, str | None]]
) -> Iterator[tuple[list[str], dict[int, str | None]]]:
    """Yield files with the same constants, and these."""
    alike: dict[tuple[tuple[int, str | None], ...], list[str]] = {}
    for path in paths:
        alike.setdefault(tuple(sorted(constants[path].items())), []).append(path)
    for values, same in alike.items():
        yield same, dict(values)


def _keys(group: Rewritten, ids: Collection[int]) -> tuple[Field, ...]:
    keys = tuple(column for column in group.columns if column.id in ids)
    if len(keys) != len(ids):
        raise CannotRead("equality deletes by a field that is not a top-level column of the table any more")
    return keys


def _key_hash(keys: Sequence[Field], fields: Sequence[FileField], constants: dict[int, str | None]) -> str:
    found = match(keys, fields, FoundBy.ID, constants)
    return f"hash(hash({', '.join(map(column_hash, found))}))"


def _schemas(connection: duckdb.DuckDBPyConnection, deletes: Iterable[Deletes]) -> Sequence[SchemaFiles]:
    paths = tuple(readable(one.path) for one in deletes)
    found = read_schemas(connection, paths) if paths else ()
    for one in found:
        require_positions(one.fields)
    return found


def _rows(paths: Iterable[str]) -> str:
    return read_parquet(paths, with_positions=True)


def _by_id(schema: SchemaFiles, number: int) -> str:
    names = [field.sql for field in schema.fields if field.id == number]
    if len(names) != 1:
        raise ColumnsUnclear(f"the delete file {schema.paths[0]} has {len(names)} fields of the id {number}")
    return quoted(names[0])
