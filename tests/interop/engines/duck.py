"""DuckDB, twice: by its own Delta extension (delta-kernel-rs inside), and over the live files as the log names them.

The second asks no one but a plain replay of the log which files are live, so it shows what a reader sees that takes
every path and every partition value from the log at its word.
"""

import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.interop.engines.literals import DUCKDB
from tests.interop.engines.protocol import NotOfferedError, Predicate
from tests.interop.operations import Append, Operation
from tests.interop.table_case import KEY, Case
from tests.interop.table_log import TableLog
from tests.interop.values import Rows, rows_of
from tests.support.duckdb_extensions import load_extension


def connected(*, delta: bool) -> duckdb.DuckDBPyConnection:
    """Open an empty database; the extension is loaded from its package, nothing is fetched or installed."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 1})
    if delta:
        load_extension(connection, "delta")
    return connection


class DuckDbReader:
    """DuckDB's Delta extension."""

    name = "DuckDB (delta extension)"

    def __init__(self) -> None:
        self._connection = connected(delta=True)

    def rows(self, location: Path, case: Case) -> Rows:
        return rows_of(self._query(f"SELECT * FROM {_scan(location)}"))

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        condition = DUCKDB.comparison(case, predicate)
        found = self._query(f"SELECT {KEY} FROM {_scan(location)} WHERE {condition}")
        return tuple(sorted(found.column(KEY).to_pylist()))

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        condition = DUCKDB.comparison(case, predicate)
        query = f"EXPLAIN ANALYZE SELECT {KEY} FROM {_scan(location)} WHERE {condition}"
        reported = "\n".join(str(row[1]) for row in self._connection.execute(query).fetchall())
        found = re.search(r"Scanning Files:\s*(\d+)/(\d+)", reported) or re.search(
            r"Total Files Read:\s*(\d+)", reported
        )
        if found is None:
            raise NotOfferedError("its plan names no number of files")
        return int(found[1])

    def _query(self, query: str) -> pa.Table:
        return self._connection.execute(query).to_arrow_table()


class DuckDbFiles:
    """DuckDB's Parquet reader over the files that a plain replay of the log finds."""

    name = "DuckDB (live files)"

    def __init__(self) -> None:
        self._connection = connected(delta=False)

    def rows(self, location: Path, case: Case) -> Rows:
        return rows_of(self._connection.execute(self._union(location, case)).to_arrow_table())

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        condition = DUCKDB.comparison(case, predicate)
        found = self._connection.execute(f"SELECT {KEY} FROM ({self._union(location, case)}) WHERE {condition}")
        return tuple(sorted(row[0] for row in found.fetchall()))

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        raise NotOfferedError("it is handed all live files")

    def _union(self, location: Path, case: Case) -> str:
        log = TableLog.read(location)
        if log.column_mapping or any(add.get("deletionVector") for add in log.live()):
            raise NotOfferedError("a plain Parquet reader knows neither column mapping nor deletion vectors")
        adds = log.live()
        if not adds:
            raise NotOfferedError("no file is live, so there is no schema")
        return " UNION ALL BY NAME ".join([*(self._file(log, add) for add in adds), *_absent(log, adds)])

    def _file(self, log: TableLog, add: dict[str, Any]) -> str:
        path = str(log.file(add)).replace("'", "''")
        values = [
            f"CAST({'NULL' if value in (None, '') else DUCKDB.text(value)} AS {_sql_type(log.types[name])})"
            f" AS {DUCKDB.name(name)}"
            for name, value in add["partitionValues"].items()
        ]
        # Some writers keep partition columns in the data files, too; the log's values are the ones that count. Delta
        # itself keeps row ids and kinds of change there, under names that the schema does not have.
        names = [name for name in log.types if name not in add["partitionValues"]]
        inside = f"COLUMNS(name -> list_contains([{', '.join(map(DUCKDB.text, names))}], name))"
        source = f"read_parquet('{path}', hive_partitioning = false)"
        return f"SELECT {', '.join([inside, *values])} FROM {source}"


def _absent(log: TableLog, adds: list[dict[str, Any]]) -> list[str]:
    """A part without rows that has the columns which are in the schema and in no file yet."""
    there = {name for add in adds for name in (*add["partitionValues"], *pq.read_schema(log.file(add)).names)}
    absent = [
        f"CAST(NULL AS {_sql_type(kind)}) AS {DUCKDB.name(name)}"
        for name, kind in log.types.items()
        if name not in there
    ]
    return [f"SELECT {', '.join(absent)} WHERE FALSE"] if absent else []


class DuckDbWriter:
    """DuckDB's Delta extension as a writer: it appends."""

    name = "DuckDB"
    offers = frozenset({Append.name})

    def create(self, case: Case, location: Path) -> None:
        raise NotOfferedError("it does not create tables")

    def append(self, case: Case, location: Path, keys: tuple[int, ...]) -> None:
        connection = connected(delta=True)
        connection.execute(f"ATTACH '{location}' AS lake (TYPE delta)")
        names = [DUCKDB.name(column["name"]) for column in TableLog.read(location).schema["fields"]]
        # It cannot write several partitions by one statement.
        for part in [(key,) for key in keys] if case.partition_by else [keys]:
            connection.register("fresh", case.arrow(part))
            connection.execute(f"INSERT INTO lake SELECT {', '.join(names)} FROM fresh")
        connection.close()

    def perform(self, operation: Operation, case: Case, location: Path) -> None:
        if not isinstance(operation, Append):
            raise NotOfferedError("it only appends")
        self.append(case, location, tuple(operation.keys(case)))


def _scan(location: Path) -> str:
    return f"delta_scan('{location}')"


_SQL_TYPES = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "integer": "INTEGER",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "boolean": "BOOLEAN",
    "double": "DOUBLE",
    "float": "FLOAT",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "binary": "BLOB",
}


def _sql_type(delta_type: str) -> str:
    return _SQL_TYPES.get(delta_type, delta_type)
