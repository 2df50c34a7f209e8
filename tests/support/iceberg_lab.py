"""Iceberg tables written by Spark in a folder, and the engine that rewrites them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from actor.formats.iceberg.engine import IcebergEngine
from actor.ports import GroupOutcome, RewriteOutcome, RewriteRequest
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings, IcebergTable
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import CommitOrigin, DataFile, PartitionKey, Snapshot
from tests.contract.formats.worlds import access
from tests.support.steering import Steering


def ice_session(spark: SparkSession, folder: Path) -> SparkSession:
    """Return a session with the catalog `ice`, whose tables lie below a folder."""
    session = spark.newSession()
    for name, value in {
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(folder),
        "spark.sql.catalog.ice.cache-enabled": "false",
    }.items():
        session.conf.set(name, value)
    return session


class IcebergLab:
    """A warehouse below a folder; tables are `ice.db.NAME` in its session."""

    def __init__(self, spark: SparkSession, engine: IcebergEngine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.session = ice_session(spark, folder)
        self.session.conf.set("spark.sql.shuffle.partitions", "1")
        self.session.conf.set("spark.sql.session.timeZone", "UTC")

    def sql(self, text: str) -> Any:
        return self.session.sql(text)

    def create(self, name: str, *, version: int = 2, by: str = "", properties: Mapping[str, str] | None = None) -> str:
        """Create a table of id, v, x, dt, ts and return its full name."""
        given = {"format-version": str(version), "write.distribution-mode": "none", **(properties or {})}
        text = ", ".join(f"'{key}'='{value}'" for key, value in given.items())
        partitioned = f"PARTITIONED BY ({by})" if by else ""
        self.sql(
            f"CREATE TABLE ice.db.{name} (id BIGINT, v STRING, x INT, dt DATE, ts TIMESTAMP) USING iceberg "
            f"{partitioned} TBLPROPERTIES ({text})"
        )
        return f"ice.db.{name}"

    def append(self, table: str, number: int, rows: int = 20) -> None:
        """Append rows of two days, as one file per partition."""
        self.session.range(number * rows, number * rows + rows).selectExpr(
            "id",
            "concat('v', id) v",
            "cast(pmod(id * 7919, 1000) as int) x",
            "date_add(date'2026-01-01', cast(pmod(id, 2) as int)) dt",
            "timestamp'2026-01-01 05:00:00' + make_interval(0, 0, 0, cast(pmod(id, 2) as int)) ts",
        ).sortWithinPartitions("dt").coalesce(1).writeTo(table).option("fanout-enabled", "true").append()

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.sql(f"SELECT id, v, x, dt, ts FROM {table}").collect())

    def lineage(self, table: str) -> list[tuple[Any, ...]]:
        """Return id, row id and the sequence number of the last update of each row; of format version 3 alone."""
        text = f"SELECT id, _row_id, _last_updated_sequence_number FROM {table}"
        return sorted(tuple(row) for row in self.sql(text).collect())

    def java(self, table: str) -> Any:
        """Load Iceberg's own object of a table."""
        return self.engine._tables.load(self.location(table)).raw

    def location(self, table: str) -> str:
        return (self.folder / "db" / table.rpartition(".")[2]).as_uri()

    def reader(self, table: str) -> IcebergTable:
        return IcebergFormat(access(), IcebergSettings(reads_folders=True)).open(self.location(table))

    def round_trips(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Return where each later call of the JVM is added; that Python lets go of an object is none."""
        client, calls = self.session.sparkContext._gateway._gateway_client, list[str]()
        real = client.send_command

        def counted(command: str, *more: object, **named: object) -> object:
            calls.extend([] if command.startswith("m") else [command])
            return real(command, *more, **named)

        monkeypatch.setattr(client, "send_command", counted)
        return calls

    def live(self, table: str, partition: PartitionKey) -> tuple[DataFile, ...]:
        files = self.engine.read_partition(self.location(table), partition).files
        return tuple(sorted(files, key=lambda file: file.path))

    def rewrite(
        self,
        table: str,
        *groups: tuple[DataFile, ...],
        control: Any = None,
        may_copy: bool = True,
        full_bytes: int = 0,
        **more: Any,
    ) -> RewriteOutcome:
        """Rewrite groups, with more fields than these of each."""
        made = tuple(FileGroup(files[0].partition, files, **{"mode": RewriteMode.FULL} | more) for files in groups)
        mark = CommitMetadata(CommitOrigin("job-1", 7), partition="{}", round=1, mode="full", started_ms=500).encode()
        request = RewriteRequest(self.location(table), made, mark, may_copy=may_copy, full_bytes=full_bytes)
        return self.engine.rewrite(request, control or Steering())

    def rewrite_all(self, table: str, **more: Any) -> GroupOutcome:
        """Rewrite all files of a table without partitions, and return how that ended."""
        (end,) = self.rewrite(table, self.live(table, WHOLE_TABLE), **more).groups
        return end

    def files_on_disk(self, table: str) -> set[str]:
        """Return the data and delete files of a table's folder, referred to or not."""
        found = (self.folder / "db" / table.rpartition(".")[2] / "data").rglob("[!.]*")
        return {path.name for path in found if path.is_file()}

    def known_files(self, table: str) -> set[str]:
        """Return the data and delete files that any snapshot refers to."""
        return {row[0].rpartition("/")[2] for row in self.sql(f"SELECT file_path FROM {table}.all_files").collect()}


def by_partition(snapshot: Snapshot) -> dict[PartitionKey, set[str]]:
    """Return the paths of the live files of each partition."""
    found: dict[PartitionKey, set[str]] = {}
    for file in snapshot.files:
        found.setdefault(file.partition, set()).add(file.path)
    return found
