"""ClickHouse in a process, by chdb: its table function for Delta, with delta-kernel-rs inside."""

from pathlib import Path

import chdb
import pyarrow as pa

from tests.interop.engines.literals import CLICKHOUSE
from tests.interop.engines.protocol import NotOfferedError, Predicate
from tests.interop.operations import Append, Operation
from tests.interop.table_case import KEY, Case
from tests.interop.table_log import TableLog
from tests.interop.values import Rows, rows_of


class ChdbReader:
    """deltaLakeLocal() as a reader."""

    name = "chdb"

    def rows(self, location: Path, case: Case) -> Rows:
        return rows_of(_query(f"SELECT * FROM {_table(location)}"))

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        condition = CLICKHOUSE.comparison(case, predicate)
        found = _query(f"SELECT {KEY} FROM {_table(location)} WHERE {condition}")
        return tuple(sorted(found.column(KEY).to_pylist())) if found.num_columns else ()

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        raise NotOfferedError("the laboratory does not ask it")


class ChdbWriter:
    """INSERT INTO FUNCTION deltaLakeLocal(), which ClickHouse calls experimental."""

    name = "chdb"
    offers = frozenset({Append.name})

    def create(self, case: Case, location: Path) -> None:
        raise NotOfferedError("it does not create tables")

    def append(self, case: Case, location: Path, keys: tuple[int, ...]) -> None:
        fresh = case.arrow(keys)  # chdb finds the name in this frame.
        assert fresh.num_rows == len(keys)
        names = ", ".join(CLICKHOUSE.name(column["name"]) for column in TableLog.read(location).schema["fields"])
        chdb.query(
            f"INSERT INTO FUNCTION {_table(location)} SELECT {names} FROM Python(fresh) "
            "SETTINGS allow_experimental_delta_lake_writes = 1"
        )

    def perform(self, operation: Operation, case: Case, location: Path) -> None:
        if not isinstance(operation, Append):
            raise NotOfferedError("it only appends")
        self.append(case, location, tuple(operation.keys(case)))


def _table(location: Path) -> str:
    return f"deltaLakeLocal({CLICKHOUSE.text(str(location))})"


def _query(query: str) -> pa.Table:
    return chdb.query(query, "ArrowTable")
