"""What is compared: Lakewright's exact rewrite, copied and encoded, Delta's OPTIMIZE, deltalake, and bare bytes."""

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import psutil
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from actor.ports import GroupStatus, RewriteRequest
from shared.layout.planner import FileGroup, RewriteMode
from shared.policy.policy import Policy
from shared.table import PartitionKey
from tests.bench.machine import cpu_s
from tests.bench.rewrite.phases import Phases
from tests.bench.rewrite.tables import DAY, Case
from tests.support.steering import Steering

PARTITION = PartitionKey(json.dumps({"day": DAY}, separators=(",", ":")))
COPIED, ENCODED, OPTIMIZE, DELTALAKE, BYTES = "lakewright", "encoded", "optimize", "deltalake", "bytes"
_MIN = "spark.databricks.delta.optimize.minFileSize"
_MAX = "spark.databricks.delta.optimize.maxFileSize"


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of one rewrite: all of it, and of that the reading of the partition; how many files it left there.

    cpu_s: of this process and its JVM, whatever else the machine did; proofread_s: of the readers' processes. copied:
    groups whose row groups were copied.
    """

    total_s: float
    read_s: float
    files: int
    cpu_s: float = 0.0
    copied: int = 0
    proofread_s: float = 0.0


class Side(Protocol):
    """One way to compact the files of a case."""

    name: str

    def find(self, table: Path) -> None:
        """See the table once, as an actor or a session that has worked on it before."""

    def rewrite(self, table: Path, case: Case, phases: Phases) -> Took:
        """Compact the files, and say how long that took."""


class CpuMeter:
    """Counts the CPU seconds of this process and of the JVM."""

    def __init__(self, spark: SparkSession) -> None:
        java = spark.sparkContext._gateway.proc.pid
        self._processes = [psutil.Process(), psutil.Process(java)]

    def now_s(self) -> float:
        return cpu_s(*self._processes)

    def measured(self, rewrite: Callable[[], Took]) -> Took:
        """Return what a rewrite took, with its CPU seconds."""
        used_s = self.now_s()
        return replace(rewrite(), cpu_s=self.now_s() - used_s)


class Lakewright:
    """Reads the partition, groups its files and rewrites them, which is a job without the queue."""

    def __init__(self, engine: DeltaEngine, *, may_copy: bool) -> None:
        self.name = COPIED if may_copy else ENCODED
        self._engine = engine
        self._may_copy = may_copy

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
            full_bytes = Policy().size_levels.full_bytes
            request = RewriteRequest(table.as_uri(), groups, mark, may_copy=self._may_copy, full_bytes=full_bytes)
            outcome = self._engine.rewrite(request, Steering())
        total_s, ended_s = time.perf_counter() - began, time.time()
        if outcome.version is None or any(group.status is not GroupStatus.COMMITTED for group in outcome.groups):
            raise RuntimeError(f"the rewrite of {table} did not land: {outcome}")
        phases.split_commit(table, outcome.version, ended_s)
        copied = sum(group.is_copied for group in outcome.groups)
        proofread_s = sum(group.proof.cpu_ms for group in outcome.groups if group.proof) / 1000
        files_left = sum(len(group.outputs) for group in outcome.groups)
        return Took(total_s, read_s, files_left, copied=copied, proofread_s=proofread_s)


class Optimize:
    """`OPTIMIZE ... WHERE` with limits that make it form groups of the same number of files."""

    name = OPTIMIZE

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


class Deltalake:
    """`compact` of the Python package, which needs no Spark, into files of the same number."""

    name = DELTALAKE

    def find(self, table: Path) -> None:
        """It keeps nothing between calls."""

    def rewrite(self, table: Path, case: Case, phases: Phases) -> Took:
        sizes = [file.stat().st_size for file in (table / f"day={DAY}").glob("*.parquet")]
        began = time.perf_counter()
        target = max(sizes) * case.files // case.groups + 1
        metrics: Any = DeltaTable(str(table)).optimize.compact(
            partition_filters=[("day", "=", DAY)], target_size=target
        )
        total_s = time.perf_counter() - began
        if metrics["numFilesRemoved"] != case.files:
            raise RuntimeError(f"deltalake took {metrics['numFilesRemoved']} files of {case.files}")
        return Took(total_s, 0.0, metrics["numFilesAdded"])


class Bytes:
    """The limit: the bytes of the files read and written, and nothing else."""

    name = BYTES

    def find(self, table: Path) -> None:
        """There is nothing to keep."""

    def rewrite(self, table: Path, case: Case, phases: Phases) -> Took:
        files = sorted((table / f"day={DAY}").glob("*.parquet"))
        size = len(files) // case.groups
        began = time.perf_counter()
        for start in range(0, len(files), size):
            with (table / f"joined-{start}").open("wb") as out:
                for file in files[start : start + size]:
                    with file.open("rb") as given:
                        shutil.copyfileobj(given, out, 1 << 20)
        return Took(time.perf_counter() - began, 0.0, case.groups)
