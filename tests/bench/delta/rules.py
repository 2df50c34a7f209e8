"""The rules that are played: each is told of every commit once it is there, and does what it would do then.

Every rule gets the same target. What else it has is its own default, scaled where it is a size.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from actor.formats.delta.log import TableLog
from actor.jvm.scala import Scala
from shared.policy import MIB
from tests.bench.delta.table import PlayedTable

TARGET_BYTES = MIB
"""A hundredth of a usual target, for files that are a thousandth of usual ones: minutes instead of hours."""

COMMITS_PER_HOUR = 60
"""The trace's clock: a commit a minute."""

_CONF = "spark.databricks.delta."


class Rule(Protocol):
    """One way to keep a table in shape; `writes` if it brings the trace's commits into the table by itself."""

    title: str

    def configuration(self) -> Mapping[str, str]:
        """Return the properties that the table is made with."""

    def begin(self, table: PlayedTable) -> None:
        """Get to know the table, which has no data yet."""

    def append(self, adds: Iterable[Mapping[str, Any]]) -> bool:
        """Commit some files; False if the rule leaves that to a foreign writer."""

    def after(self, number: int) -> None:
        """Do what the rule does once commit `number`, from 1 on, is there."""

    def end(self) -> None:
        """Let go of what was begun."""


class LeaveAlone:
    """No compaction at all: what the queries take before."""

    title = "left alone"

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.table: PlayedTable

    def configuration(self) -> Mapping[str, str]:
        return {}

    def begin(self, table: PlayedTable) -> None:
        self.table = table

    def append(self, adds: Iterable[Mapping[str, Any]]) -> bool:
        return False

    def after(self, number: int) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class Optimize(LeaveAlone):
    """Delta's OPTIMIZE of the whole table after every so many commits."""

    def __init__(self, spark: SparkSession, title: str, every: int) -> None:
        super().__init__(spark)
        self.title = title
        self._every = every

    def begin(self, table: PlayedTable) -> None:
        super().begin(table)
        for name in ("optimize.minFileSize", "optimize.maxFileSize"):
            self.spark.conf.set(_CONF + name, str(TARGET_BYTES))

    def after(self, number: int) -> None:
        if number % self._every == 0:
            self.spark.sql(f"OPTIMIZE delta.`{self.table.path}`").collect()


class DeltaRs(LeaveAlone):
    """`optimize.compact` of the deltalake library, once an hour."""

    title = "deltalake compact, hourly"

    def after(self, number: int) -> None:
        if number % COMMITS_PER_HOUR == 0:
            DeltaTable(str(self.table.path)).optimize.compact(target_size=TARGET_BYTES)


class AutoCompaction(LeaveAlone):
    """Delta's auto-compaction, which runs inside the writer: so the writer here is Delta's own transaction."""

    title = "Delta auto-compaction"

    def begin(self, table: PlayedTable) -> None:
        super().begin(table)
        self.spark.conf.set(_CONF + "autoCompact.enabled", "true")
        self.spark.conf.set(_CONF + "autoCompact.maxFileSize", str(TARGET_BYTES))
        self._scala = Scala(self.spark)
        self._log = TableLog(self._scala, self.spark, table.path.as_uri())
        write = self._scala.resolve("org.apache.spark.sql.delta.DeltaOperations$Write")
        append: Any = self._scala.resolve("org.apache.spark.sql.SaveMode.Append")
        none = self._scala.none
        self._write = write(append, *([none] * 8))

    def append(self, adds: Iterable[Mapping[str, Any]]) -> bool:
        txn = self._log.transaction()
        txn.registerPostCommitHook(self._scala.module("org.apache.spark.sql.delta.hooks.AutoCompact"))
        txn.commit(self._scala.adds(json.dumps(list(adds))), self._write)
        return True

    def end(self) -> None:
        self.spark.conf.unset(_CONF + "autoCompact.enabled")
