"""The rules that are played: each is told of every commit once it is there, and does what it would do then.

Every rule gets the same target. What else it has is its own default, scaled where it is a size.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableLog
from shared.policy.policy import MIB
from tests.bench.delta.playing import LeaveAlone
from tests.bench.delta.table import PlayedTable

TARGET_BYTES = MIB
"""A hundredth of a usual target, for files that are a thousandth of usual ones: minutes instead of hours."""

COMMITS_PER_HOUR = 60
"""The trace's clock: a commit a minute."""

_CONF = "spark.databricks.delta."


class DeltaRule(LeaveAlone):
    """What all rules on Delta tables have, and no compaction at all."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.table: PlayedTable

    def configuration(self) -> Mapping[str, str]:
        """Return the properties that the table is made with."""
        return {}


class Optimize(DeltaRule):
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


class DeltaRs(DeltaRule):
    """`optimize.compact` of the deltalake library, once an hour."""

    title = "deltalake compact, hourly"

    def after(self, number: int) -> None:
        if number % COMMITS_PER_HOUR == 0:
            DeltaTable(str(self.table.path)).optimize.compact(target_size=TARGET_BYTES)


class AutoCompaction(DeltaRule):
    """Delta's auto-compaction, which runs inside the writer: so the writer here is Delta's own transaction."""

    title = "Delta auto-compaction"

    def begin(self, table: PlayedTable) -> None:
        super().begin(table)
        self.spark.conf.set(_CONF + "autoCompact.enabled", "true")
        self.spark.conf.set(_CONF + "autoCompact.maxFileSize", str(TARGET_BYTES))
        self._scala = DeltaScala(self.spark)
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
