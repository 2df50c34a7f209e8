"""Tables of both formats that are rewritten under a writer: how they are made, compacted by their format, and read."""

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from actor.formats.delta.conflicts import FAILURES as OF_DELTA
from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.formats.iceberg.conflicts import FAILURES as OF_ICEBERG
from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS
from actor.rewrite.ports import Failures
from shared.partitions import WHOLE_TABLE
from tests.bench.writers.rows import TEXT, digest
from tests.iceberg_stress.readers import _DuckDb
from tests.support import delta_tables, duckdb_extensions
from tests.support.forced_copies import NEVER_COPIES
from tests.support.iceberg_lab import IcebergLab, ice_session

Readers = Mapping[str, Callable[[], pa.Table]]
COLUMNS = "id, v, md5(t)"
"""What readers return: a gigabyte of text stays with them."""
CHEAP = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""Settings of the writer's session: its statements change one row, and most of their time is planning."""

COPIES = replace(DEFAULT_LIMITS, min_row_group_bytes_with_vectors=0)


def by_deltalake(path: str) -> pa.Table:
    """Read a table in a process of its own, with one core.

    With more, the pinned release reads the row groups of a file in several parts, and applies vectors to other rows.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), os.sched_setaffinity, (0, {0})) as alone:
        return alone.submit(_by_deltalake, path).result()


def _by_deltalake(path: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(path)).execute(f"SELECT {COLUMNS} FROM t").read_all())


class Table:
    """A table in a folder, its engine, and a session for its writer."""

    failures: Failures
    provider: str

    def __init__(self, engine: Any, sessions: tuple[SparkSession, SparkSession], path: Path, name: str) -> None:
        self.engine, self.path, self.name = engine, path, name
        self._session, self._writer = sessions
        for key, value in CHEAP.items():
            self._writer.conf.set(key, value)

    def statement(self, text: str) -> None:
        """Run a statement of the writer."""
        self._writer.sql(text.format(t=self.name)).collect()

    def create(self, rows: int, files: int, properties: Mapping[str, str]) -> None:
        """Make the table with its rows in so many files, which hold ranges of ids."""
        given = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        self._session.sql(
            f"CREATE TABLE {self.name} (id BIGINT, v BIGINT, t STRING) USING {self.provider} TBLPROPERTIES ({given})"
        )
        self._session.range(0, rows, 1, files).selectExpr("id", "0L v", f"{TEXT} t").createOrReplaceTempView("made")
        self._session.sql(f"INSERT INTO {self.name} SELECT * FROM made")

    def live(self) -> dict[str, Any]:
        """Return the live files by path."""
        return {file.path: file for file in self.engine.read_partition(self.path.as_uri(), WHOLE_TABLE).files}

    def compact(self, group_bytes: int) -> None:
        """Run the command of the table format, with groups of this size."""
        raise NotImplementedError

    def named(self) -> Iterable[str]:
        """Return the names of the data files that any version names."""
        raise NotImplementedError

    def readers(self) -> Readers:
        """Return those that read the newest version."""
        return {"Spark": lambda: self._session.sql(f"SELECT {COLUMNS} FROM {self.name}").toArrow()}

    def left_bytes(self, at_least: int) -> int:
        """Return the bytes of data files of this size that no version names; a file of the writer has one row."""
        sizes = {file.name: file.stat().st_size for file in self.path.rglob("*.parquet")}
        return sum(sizes[name] for name in {*sizes}.difference(self.named()) if sizes[name] >= at_least)


class OnDelta(Table):
    """A Delta table with deletion vectors."""

    failures, provider = OF_DELTA, "delta"

    def __init__(self, spark: SparkSession, folder: Path, name: str, *, by_column: bool) -> None:
        engine = DeltaEngine(spark, EngineSettings(copy_limits=NEVER_COPIES if by_column else COPIES))
        path = folder / name
        super().__init__(engine, (spark.newSession(), spark.newSession()), path, f"delta.`{path}`")

    def compact(self, group_bytes: int) -> None:
        for limit in ("minFileSize", "maxFileSize"):
            self._session.conf.set(f"spark.databricks.delta.optimize.{limit}", str(group_bytes))
        self._session.sql(f"OPTIMIZE {self.name}").collect()

    def named(self) -> Iterable[str]:
        versions = range(delta_tables.newest(self.path) + 1)
        return (Path(add["path"]).name for one in versions for add in delta_tables.added(self.path, one))

    def readers(self) -> Readers:
        return {
            **super().readers(),
            "deltalake": lambda: by_deltalake(str(self.path)),
            "DuckDB": lambda: duckdb_extensions.scan(self.path, columns=COLUMNS),
        }


def _digested(rows: pa.Table) -> pa.Table:
    return rows.set_column(2, "t", [[digest(text) for text in rows["t"].to_pylist()]])


class OnIceberg(Table):
    """An Iceberg table. is_stream: rows are deleted by value, too, which pyiceberg does not read."""

    failures, provider = OF_ICEBERG, "iceberg"

    def __init__(self, spark: SparkSession, folder: Path, name: str, version: int, *, is_stream: bool = False) -> None:
        self.lab = IcebergLab(spark, IcebergEngine(spark, IcebergEngineSettings(reads_folders=True)), folder)
        self._version, self._is_stream = version, is_stream
        sessions = (self.lab.session, ice_session(spark, folder))
        super().__init__(self.lab.engine, sessions, folder / "db" / name, f"ice.db.{name}")

    def compact(self, group_bytes: int) -> None:
        sizes = dict.fromkeys(("max-file-group-size-bytes", "target-file-size-bytes"), group_bytes)
        options = ", ".join(f"'{key}', '{value}'" for key, value in {"rewrite-all": "true", **sizes}.items())
        table = self.name.removeprefix("ice.")
        self._session.sql(
            f"CALL ice.system.rewrite_data_files(table => '{table}', options => map({options}))"
        ).collect()

    def named(self) -> Iterable[str]:
        return self.lab.known_files(self.name)

    def readers(self) -> Readers:
        if self._version > 2:  # Neither pyiceberg nor DuckDB reads vectors.
            return super().readers()
        newest = str(self.lab.java(self.name).operations().current().metadataFileLocation())
        ducks, scan = _DuckDb()._connection, f"SELECT {COLUMNS} FROM iceberg_scan('{urlsplit(newest).path}')"
        found: Readers = {**super().readers(), "DuckDB": lambda: ducks.sql(scan).to_arrow_table()}
        if self._is_stream:
            return found
        return {**found, "pyiceberg": lambda: _digested(StaticTable.from_metadata(newest).scan().to_arrow())}
