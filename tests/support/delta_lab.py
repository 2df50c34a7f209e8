"""What tests of the Delta engine do again and again: plan a group, rewrite it, and digest a table's rows."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.formats.parquet.copy_rules import CopyLimits
from actor.ports import RewriteOutcome, RewriteRequest
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, PartitionKey
from tests.support.forced_copies import CountingEngine
from tests.support.steering import Steering

PARTITION_1 = PartitionKey('{"dt":"2026-01-01"}')
PARTITION_2 = PartitionKey('{"dt":"2026-01-02"}')


class DeltaLab:
    """An engine on the session's Spark, with a directory of its own."""

    def __init__(self, spark: SparkSession, engine: DeltaEngine, directory: Path) -> None:
        self.spark = spark
        self.directory = directory
        self.engine = engine

    def copying(self, forced: bool | CopyLimits = True) -> "DeltaLab":  # noqa: FBT002 - of one argument
        """The same with an engine that copies row groups wherever that is exact, or as far as these limits say."""
        engine = CountingEngine(self.spark, forced=forced, proofreader=self.engine.proofreader)
        return DeltaLab(self.spark, engine, self.directory)

    def with_settings(self, settings: EngineSettings) -> "DeltaLab":
        """The same with an engine of these settings; they share the process that compares, which takes a second."""
        return DeltaLab(
            self.spark, DeltaEngine(self.spark, replace(settings, proofreader=self.engine.proofreader)), self.directory
        )

    def sql(self, statement: str) -> list[Any]:
        return self.spark.sql(statement).collect()

    def partition(self, **values: str | None) -> PartitionKey:
        """The key of a partition whose values are spelled canonically."""
        return PartitionKey(json.dumps(values, sort_keys=True, separators=(",", ":")))

    def files(self, location: str, partition: PartitionKey = WHOLE_TABLE) -> tuple[DataFile, ...]:
        """The live files of a partition, in a fixed order."""
        return tuple(
            sorted(self.engine.read_partition(location, partition).files, key=lambda file: (file.rows or 0, file.path))
        )

    def group(
        self, location: str, partition: PartitionKey = WHOLE_TABLE, *, first: int = 0, count: int = 4
    ) -> FileGroup:
        """A group of `count` live files, leaving out the `first` ones."""
        files = self.files(location, partition)[first : first + count]
        assert len(files) == count
        return FileGroup(partition, files, RewriteMode.MINOR)

    def rewrite(
        self,
        location: str,
        groups: Sequence[FileGroup],
        control: Steering | None = None,
        *,
        job: str = "job",
        token: int = 1,
        **more: Any,
    ) -> RewriteOutcome:
        """`more`: of `RewriteRequest`."""
        request = RewriteRequest(location, tuple(groups), mark(job, token), **more)
        return self.engine.rewrite(request, control or Steering())

    def digest(
        self, location: str, version: int | None = None, columns: Sequence[str] | None = None
    ) -> tuple[Any, ...]:
        """The number of rows and the sum of their hashes, at a version if one is given."""
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        frame = reader.load(location)
        hashed = f.xxhash64(*(f"`{name}`" for name in columns or sorted(frame.columns))).cast("decimal(38,0)")
        return tuple(frame.select(f.count("*"), f.sum(hashed)).collect()[0])


def mark(job: str, token: int) -> str:
    """The userMetadata of a commit of ours."""
    return json.dumps({"lakewright": {"job": job, "token": token}})
