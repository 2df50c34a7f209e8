"""One stream of MERGEs on real tables, each clustered by another rule: what it rewrites, and what ranges then read."""

import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from actor.ports import TableJob
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.cells.boxes import Box, Point
from shared.layout.cells.counts import CellFiles
from shared.layout.cells.tags import CELL_TAG
from shared.layout.clustered_files import ClusteredFiles
from shared.policy.policy import KIB, ClusterMode, Policy
from shared.table import CellReport, CommitOrigin
from tests.bench.cells.reads import Reads, compare, mean_reads, optimized, queries
from tests.bench.cpu_parts import PARTS, cpu_parts
from tests.support.delta_tables import actions, commit_info, live, newest
from tests.support.local_vacuum import Control

TARGET_BYTES = 512 * KIB
ROW_BYTES = 41
"""Bytes of a stored row, about: three numbers of which two are random, and a text."""

BASE_TARGETS, MERGES_PER_TARGET = 32, 4
UPDATED = 0.1
"""Share of a MERGE's rows that replace others, which keep their keys."""

OPTIMIZE_EACH = 20
CHECK_EACH = 10
"""MERGEs between two measurements of what ranges read."""

KEYS = 1 << 30
_CONF = "spark.databricks.delta."


@dataclass(slots=True)
class Stream:
    """Rows that MERGEs bring; each is a file. points: keys by id; upto: how many ids there are after each MERGE."""

    folder: Path
    merges: int
    seed: int = 1
    points: list[Point] = field(default_factory=list)
    upto: list[int] = field(default_factory=list)

    @property
    def base_rows(self) -> int:
        return BASE_TARGETS * self.target_rows

    @property
    def target_rows(self) -> int:
        return TARGET_BYTES // ROW_BYTES

    def write(self) -> list[Path]:
        """Write the base and the rows of each MERGE."""
        dice = random.Random(self.seed)
        return [self._file(dice, 0, self.base_rows)] + [
            self._file(dice, at, self.target_rows // MERGES_PER_TARGET) for at in range(1, self.merges + 1)
        ]

    def _file(self, dice: random.Random, at: int, rows: int) -> Path:
        updated = [dice.randrange(len(self.points)) for _ in range(int(rows * UPDATED))] if at else []
        ids = list(dict.fromkeys(updated))
        ids += range(len(self.points), len(self.points) + rows - len(ids))
        self.points += [(dice.randrange(KEYS), dice.randrange(KEYS)) for _ in range(ids[-1] + 1 - len(self.points))]
        self.upto.append(len(self.points))
        columns = {
            "id": pa.array(ids, pa.int64()),
            "a": pa.array([self.points[one][0] for one in ids], pa.int64()),
            "b": pa.array([self.points[one][1] for one in ids], pa.int64()),
            "t": pa.array([f"{dice.getrandbits(96):024x}" for _ in ids]),
        }
        file = self.folder / f"rows-{at}.parquet"
        pq.write_table(pa.table(columns), file)
        return file


@dataclass(slots=True)
class Played:
    """What one rule did; sizes in bytes, CPU in seconds of all processes of this one's tree.

    runs: the number of the MERGE before each run, and the bytes that it rewrote. checks: number of a MERGE, and what
    ranges read after it.
    """

    title: str
    runs: list[tuple[int, int]] = field(default_factory=list)
    checks: list[tuple[int, Reads]] = field(default_factory=list)
    taken_over_bytes: int = 0
    clustering_cpu: Counter[str] = field(default_factory=Counter)
    merging_cpu_s: float = 0.0
    wall_s: float = 0.0
    files: int = 0
    rows: Any = None

    @property
    def clustering_cpu_s(self) -> float:
        return sum(self.clustering_cpu.values())

    @property
    def rewritten_bytes(self) -> int:
        return sum(spent for _, spent in self.runs)

    @property
    def cost_curve(self) -> list[tuple[float, float]]:
        return [(at, spent / TARGET_BYTES) for at, spent in self.runs]

    @property
    def read_curve(self) -> list[tuple[float, float]]:
        return [(at, found.bytes) for at, found in self.checks]

    @property
    def dearest_over_median(self) -> float:
        costs = [spent for _, spent in self.runs]
        return max(costs) / median(costs) if costs else 0.0

    @property
    def reads(self) -> Reads:
        return mean_reads([found for _, found in self.checks])

    def figures(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "rewritten_bytes": self.rewritten_bytes,
            "taken_over_bytes": self.taken_over_bytes,
            "clustering_cpu_s": round(self.clustering_cpu_s, 1),
            "clustering_cpu_parts": {part: round(self.clustering_cpu[part], 2) for part in PARTS},
            "merging_cpu_s": round(self.merging_cpu_s, 1),
            "wall_s": round(self.wall_s),
            "files_end": self.files,
            "mean_files_opened": round(fmean(found.files for _, found in self.checks), 2),
            "mean_bytes_read": round(self.reads.bytes, 3),
            "dearest_over_median": round(self.dearest_over_median, 2),
            "runs": self.runs,
        }


class Rule:
    """No clustering."""

    title = "none"

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path = spark, path
        self.name = f"delta.`{path}`"

    def begin(self) -> None:
        """Cluster the base."""
        self._optimize()

    def _optimize(self) -> None:
        """Run OPTIMIZE, with files of the target size."""
        name = _CONF + "optimize.maxFileSize"
        self.spark.conf.set(name, str(TARGET_BYTES))
        self.spark.sql(f"OPTIMIZE {self.name}").collect()
        self.spark.conf.unset(name)

    def merge(self, file: Path) -> None:
        """Merge the rows of a file."""
        self.spark.sql(
            f"MERGE INTO {self.name} target USING parquet.`{file}` given ON target.id = given.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    def after(self, number: int) -> None:
        """Cluster after a MERGE."""

    def live(self) -> list[dict[str, Any]]:
        """Return the live files as the log has them."""
        return list(live(self.path).values())


class Optimize(Rule):
    """Delta's OPTIMIZE on a schedule."""

    title = f"OPTIMIZE each {OPTIMIZE_EACH}"

    def after(self, number: int) -> None:
        if number % OPTIMIZE_EACH == 0:
            self._optimize()


class AutoCompaction(Rule):
    """Delta's auto compaction, which the writer runs after its commit."""

    title = "auto compaction"

    def merge(self, file: Path) -> None:
        settings = {"autoCompact.enabled": "true", "autoCompact.maxFileSize": str(TARGET_BYTES)}
        for name, value in settings.items():
            self.spark.conf.set(_CONF + name, value)
        super().merge(file)
        for name in settings:
            self.spark.conf.unset(_CONF + name)


class Cells(Rule):
    """Lakewright's cells: a run where commits add up to one, by the rule of the decider."""

    title = "cells"

    def __init__(self, spark: SparkSession, path: Path, engine: DeltaEngine) -> None:
        super().__init__(spark, path)
        self._engine = engine
        self._policy = Policy(cluster=ClusterMode.CELLS, target_bytes=TARGET_BYTES).with_traits(is_clustered=True)
        self._report = CellReport(0, 0, 0)

    def begin(self) -> None:
        self._run(force=True)

    def after(self, number: int) -> None:
        files = ClusteredFiles.of((add["size"], CELL_TAG in (add.get("tags") or {})) for add in self.live())
        if CellFiles(files, *self._report).need(self._policy).is_due:
            self._run(force=False)

    def _run(self, *, force: bool) -> None:
        options = ClusterOptions(force=force).encode()
        job = TableJob(CLUSTER, self.path.as_uri(), self._policy, CommitOrigin("bench", 1), options=options)
        done = self._engine.run_table_job(job, Control())
        for version in done.commits:
            mark = json.loads(commit_info(self.path, version)["userMetadata"])["lakewright"]
            self._report = CellReport(*(mark[name] for name in CellReport._fields))


def play(rule: Rule, stream: Stream, files: list[Path]) -> Played:
    """Play the stream under one rule."""
    played, began_s = Played(rule.title), time.monotonic()
    rule.spark.sql(
        f"CREATE TABLE {rule.name} (id BIGINT, a BIGINT, b BIGINT, t STRING) USING delta CLUSTER BY (a, b) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    rule.spark.read.parquet(str(files[0])).repartition(8).write.format("delta").mode("append").save(str(rule.path))
    version = newest(rule.path)
    rule.begin()
    played.taken_over_bytes = _rewritten(rule.path, version)
    for number, file in enumerate(files[1:], 1):
        version, began_cpu = newest(rule.path), cpu_parts()
        rule.merge(file)
        merged_cpu = cpu_parts()
        rule.after(number)
        played.merging_cpu_s += merged_cpu.total() - began_cpu.total()
        played.clustering_cpu.update(cpu_parts())
        played.clustering_cpu.subtract(merged_cpu)
        if spent := _rewritten(rule.path, version):
            played.runs.append((number, spent))
        if number % CHECK_EACH == 0:
            played.checks.append((number, _reads(stream, rule, stream.upto[number])))
    played.wall_s = time.monotonic() - began_s
    played.files = len(rule.live())
    played.rows = tuple(
        rule.spark.sql(f"SELECT count(*), sum(xxhash64(id, a, b, t) % 1000003) FROM {rule.name}").collect()[0]
    )
    return played


def _rewritten(path: Path, since: int) -> int:
    """Return the bytes of the files that rewrites since a version have replaced."""
    spent = 0
    for version in range(since + 1, newest(path) + 1):
        if commit_info(path, version)["operation"] == "OPTIMIZE":
            spent += sum(action["remove"]["size"] for action in actions(path, version) if "remove" in action)
    return spent


def _reads(stream: Stream, rule: Rule, ids: int) -> Reads:
    """Return what ranges read, over OPTIMIZE's layout of the same rows."""
    laid: list[tuple[Box, int]] = []
    for add in rule.live():
        stats = json.loads(add["stats"])
        box = tuple((stats["minValues"][name], stats["maxValues"][name] + 1) for name in ("a", "b"))
        laid.append((box, stats["numRecords"]))
    rows = range(ids)
    return compare(laid, optimized(stream.points, rows, stream.target_rows), queries(stream.points, rows))
