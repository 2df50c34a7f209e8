"""Rows for which a newer one of the same key exists, found by DuckDB's own query over all files of a partition.

The engine that removed them had no part in it. Of the rows of one key the one with the greatest sequence is the newest;
of equal ones a marked row, then one of the file whose name comes last, then the first in that file. If the newest is
marked as deleted, it goes with the others. A row without a key or a sequence is never older.
"""

from collections.abc import Sequence

import duckdb

from actor.proofread.file_fields import SchemaFiles, read_schemas, require_positions
from actor.proofread.hashing import column_value
from actor.proofread.locations import readable
from actor.proofread.matching import match
from actor.proofread.model import Field, NewestRows, ProofFile, Rewritten
from actor.proofread.sql import DEAD, literal, live_rows

_OLDER = "lakewright_older"
"""The table (place, row) of older rows."""


def note_older(
    connection: duckdb.DuckDBPyConnection, group: Rewritten, newest: NewestRows, files: Sequence[ProofFile]
) -> None:
    """Add the older rows of these files, and of those beside them, to the deleted ones, which are there already."""
    places = [readable(file.path) for file in (*files, *newest.beside)]
    named = sorted(places, key=lambda place: place.rpartition("/")[2])
    columns = {column.name: column for column in group.columns}
    keys, sequence = ([columns[name] for name in names if name in columns] for names in (newest.keys, newest.sequence))
    marker = [columns[newest.delete_marker]] if newest.delete_marker is not None else []
    listed = f"[{', '.join(map(literal, named))}]"
    rows = " UNION ALL ".join(
        _rows(group, schema, (*keys, *sequence, *marker), listed) for schema in read_schemas(connection, places)
    )
    numbers = range(len(keys) + len(sequence))
    known = " AND ".join(f"v{number} IS NOT NULL" for number in numbers) or "true"
    by_key = ", ".join(f"v{number}" for number in numbers[: len(keys)]) or "1"
    is_marked = f"coalesce(v{len(numbers)}, false)" if marker else "false"
    order = (*(f"v{number} DESC" for number in numbers[len(keys) :]), f"{is_marked} DESC", "file DESC", "row")
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {_OLDER} AS SELECT {listed}[file] AS place, row FROM (SELECT file, row, "
        f"{is_marked} OR row_number() OVER (PARTITION BY {by_key} ORDER BY {', '.join(order)}) > 1 AS is_older "
        f"FROM ({rows}) WHERE {known}) WHERE is_older"
    )
    connection.execute(f"INSERT INTO {DEAD} SELECT place, row FROM {_OLDER}")


def older_rows_left(connection: duckdb.DuckDBPyConnection, newest: NewestRows) -> int:
    """Return how many older rows lie in the files that the removal left alone."""
    beside = ", ".join(literal(readable(file.path)) for file in newest.beside) or "NULL"
    row = connection.execute(f"SELECT count(*) FROM {_OLDER} WHERE place IN ({beside})").fetchone() or (0,)
    return int(row[0])


def _rows(group: Rewritten, schema: SchemaFiles, columns: Sequence[Field], listed: str) -> str:
    """Return the SQL of the live rows of files of one schema: their file's number, their place in it, and columns."""
    require_positions(schema.fields)
    found = match(columns, schema.fields, group.found_by)
    values = ", ".join(f"{column_value(one)} AS v{number}" for number, one in enumerate(found))
    return (
        f"SELECT list_position({listed}, filename) AS file, file_row_number AS row, {values} "
        f"FROM {live_rows(schema.paths)}"
    )
