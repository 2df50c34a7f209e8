"""The two that are compared: Lakewright's exact rewrite as a worker runs it, and Delta's own OPTIMIZE."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from actor.ports import GroupStatus, RewriteRequest
from shared.layout.planner import FileGroup, RewriteMode
from shared.table import PartitionKey
from tests.bench.rewrite.phases import Phases
from tests.bench.rewrite.tables import DAY, Case
from tests.support.steering import Steering

PARTITION = PartitionKey(json.dumps({"day": DAY}, separators=(",", ":")))
_MIN = "spark.databricks.delta.optimize.minFileSize"
_MAX = "spark.databricks.delta.optimize.maxFileSize"


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of one rewrite in total, and for reading the partition; the number of files left in the partition."""

    total_s: float
    read_s: float
    files: int


class Lakewright:
    """Reads the partition, groups its files and rewrites them, which is a job without the queue."""

    name = "lakewright"

    def __init__(self, engine: DeltaEngine) -> None:
        self._engine = engine

    def find(self, table: Path) -> None:
        """See the table once, as an actor that has worked on it before."""
        self._engine.read_partition(table.as_uri(), PARTITION)

    def rewrite(self, table: Path, case: Case, phases: Phases) -> Took:
        began = time.perf_counter()
        with phases.measured():
            live = self._engine.read_partition(table.as_uri(), PARTITION)
            read_s = time.perf_counter() - began
            files = sorted(live.files, key=lambda file: file.path)
            size = len(files) // case.groups
            groups = tuple(
                FileGroup(PARTITION, tuple(files[start : start + size]), RewriteMode.MINOR)
                for start in range(0, len(files), size)
            )
            mark = json.dumps({"lakewright": {"job": "bench", "token": 1}})
            outcome = self._engine.rewrite(RewriteRequest(table.as_uri(), groups, mark), Steering())
        total_s, ended_s = time.perf_counter() - began, time.time()
        if outcome.version is None or any(group.status is not GroupStatus.COMMITTED for group in outcome.groups):
            raise RuntimeError(f"the rewrite of {table} did not land: {outcome}")
        phases.split_commit(table, outcome.version, ended_s)
        return Took(total_s, read_s, sum(len(group.outputs) for group in outcome.groups))


class Optimize:
    """`OPTIMIZE ... WHERE` with limits that make it form groups of the same number of files."""

    name = "optimize"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def find(self, table: Path) -> None:
        """See the table once, as a session that has worked on it before."""
        self._spark.sql(f"SELECT count(*) FROM delta.`{table}` WHERE day = '{DAY}' AND id = 0").collect()

    def rewrite(self, table: Path, case: Case, phases: Phases) -> Took:
        largest = max(file.stat().st_size for file in (table / f"day={DAY}").glob("*.parquet"))
        self._spark.conf.set(_MIN, str(largest + 1))
        self._spark.conf.set(_MAX, str(largest * case.files // case.groups + 1))
        began = time.perf_counter()
        rows: Any = self._spark.sql(f"OPTIMIZE delta.`{table}` WHERE day = '{DAY}'").collect()
        total_s = time.perf_counter() - began
        metrics = rows[0]["metrics"]
        if metrics["numFilesRemoved"] != case.files:
            raise RuntimeError(f"OPTIMIZE took {metrics['numFilesRemoved']} files of {case.files}")
        return Took(total_s, 0.0, metrics["numFilesAdded"])
