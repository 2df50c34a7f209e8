"""The rules whose tables are read: each is called after every commit, and leaves the table as it would be in use.

Every rule gets the same target. Lakewright's rule is what a job does without the queue: the planner of production
decides on the live files, the engine rewrites them. A partition whose day is over is idle, and compacted once more.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from actor.ports import GroupStatus, RewriteRequest
from shared.jobs.payload import RewriteKind
from shared.layout.planner import plan_rewrite
from shared.policy.policy import Policy
from shared.table import DataFile, PartitionKey
from tests.bench.delta.table import PlayedTable
from tests.bench.read.stream import SmallFile
from tests.support.steering import Steering

COMMITS_PER_HOUR = 60
"""The stream's clock: a commit a minute."""

_CONF = "spark.databricks.delta.optimize."


class Rule(Protocol):
    """One way to compact a table while it gets small commits."""

    name: str
    title: str

    def begin(self, table: PlayedTable, target_bytes: int) -> None:
        """Start with a table that has no data yet."""

    def after(self, number: int, file: SmallFile) -> None:
        """Do what the rule does after commit `number`, from 1 on, which added this file."""

    def after_day(self, partition: PartitionKey) -> None:
        """Do what the rule does with a partition that gets no more commits."""

    def end(self) -> None:
        """Do what the rule does after the last commit."""


class LeaveAlone:
    """No compaction at all: what the others improve."""

    name, title = "none", "left alone"

    def begin(self, table: PlayedTable, target_bytes: int) -> None:
        self.table, self.target_bytes = table, target_bytes

    def after(self, number: int, file: SmallFile) -> None:
        """Nothing."""

    def after_day(self, partition: PartitionKey) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class Optimize(LeaveAlone):
    """Delta's OPTIMIZE of the whole table, hourly and at the end, or only at the end."""

    def __init__(self, spark: SparkSession, *, hourly: bool) -> None:
        self.name = "optimize" if hourly else "optimize_end"
        self.title = "OPTIMIZE hourly" if hourly else "OPTIMIZE at the end"
        self._spark, self._hourly = spark, hourly

    def after(self, number: int, file: SmallFile) -> None:
        if self._hourly and number % COMMITS_PER_HOUR == 0:
            self.end()

    def end(self) -> None:
        for name in ("minFileSize", "maxFileSize"):
            self._spark.conf.set(_CONF + name, str(self.target_bytes))
        self._spark.sql(f"OPTIMIZE delta.`{self.table.path}`").collect()
        self.table.follow()


class Deltalake(LeaveAlone):
    """`optimize.compact` of the deltalake library, hourly and at the end."""

    name, title = "deltalake", "deltalake compact"

    def after(self, number: int, file: SmallFile) -> None:
        if number % COMMITS_PER_HOUR == 0:
            self.end()

    def end(self) -> None:
        DeltaTable(str(self.table.path)).optimize.compact(target_size=self.target_bytes)
        self.table.follow()


@dataclass(frozen=True, slots=True)
class LakewrightMode:
    """How Lakewright writes: with or without copying."""

    name: str
    title: str
    may_copy: bool = True


COPYING = LakewrightMode("lakewright", "Lakewright")
ENCODING = LakewrightMode("never", "Lakewright, never copying", may_copy=False)


class Lakewright(LeaveAlone):
    """Levels after each commit, or each so many, and idle compaction of a partition whose day is over."""

    def __init__(self, engine: DeltaEngine, mode: LakewrightMode, every: int = 1) -> None:
        self.name, self.title = mode.name, mode.title
        self._engine, self._mode, self._every = engine, mode, every
        self.copied = self.encoded = 0

    def begin(self, table: PlayedTable, target_bytes: int) -> None:
        super().begin(table, target_bytes)
        self._policy = Policy(target_bytes=target_bytes)
        self._live: defaultdict[PartitionKey, list[DataFile]] = defaultdict(list)
        self.copied = self.encoded = 0

    def after(self, number: int, file: SmallFile) -> None:
        self._live[file.partition].append(DataFile(file.path, file.bytes, file.partition, rows=file.rows))
        if number % self._every == 0:
            self._compact(RewriteKind.LEVELS, file.partition)

    def after_day(self, partition: PartitionKey) -> None:
        self._compact(RewriteKind.IDLE, partition)

    def _compact(self, kind: RewriteKind, partition: PartitionKey) -> None:
        if not plan_rewrite(kind, partition, self._live[partition], self._policy).groups:
            return
        location = self.table.path.as_uri()
        live = self._engine.read_partition(location, partition).files
        if {file.path for file in live} != {file.path for file in self._live[partition]}:
            raise RuntimeError(f"{partition} of {location} does not hold the files that it should")
        groups = plan_rewrite(kind, partition, live, self._policy).groups
        outcome = self._engine.rewrite(
            RewriteRequest(
                location,
                groups,
                json.dumps({"lakewright": {"job": "bench", "token": 1}}),
                may_copy=self._mode.may_copy,
                full_bytes=self._policy.size_levels.full_bytes,
            ),
            Steering(),
        )
        if any(group.status is not GroupStatus.COMMITTED for group in outcome.groups):
            raise RuntimeError(f"the rewrite of {partition} of {location} was not committed: {outcome}")
        replaced = {file.path for group in groups for file in group.files}
        outputs = [file for group in outcome.groups for file in group.outputs]
        self._live[partition] = [file for file in live if file.path not in replaced] + outputs
        self.copied += sum(group.is_copied for group in outcome.groups)
        self.encoded += sum(not group.is_copied for group in outcome.groups)
        self.table.follow()


def known_rules(spark: SparkSession, engine: DeltaEngine, every: int) -> Sequence[Rule]:
    """Return all rules in the order in which they are played; `every`: commits between two plans of Lakewright."""
    return (
        LeaveAlone(),
        *(Lakewright(engine, mode, every) for mode in (COPYING, ENCODING)),
        Optimize(spark, hourly=True),
        Optimize(spark, hourly=False),
        Deltalake(),
    )
