"""One stress from beginning to end: services, writers, faults and kills, and then the verdict on every table."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from pyiceberg.table.snapshots import Operation
from pyspark.sql import SparkSession

from actor.formats.iceberg.catalogs import TableLoader
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.java_table import JavaTable
from tests.iceberg_stress.check import TableCheck
from tests.iceberg_stress.readers import readers
from tests.iceberg_stress.world import DISTURB_EVERY_S, World
from tests.iceberg_stress.writers import JavaSteps, Ledger, Permitted, PyicebergSteps, SparkSteps, Writer
from tests.support.iceberg_rest_lake import OURS, RestLake, rest_lake, spark_conf
from tests.support.redis_server import RedisServer
from tests.support.spark_session import start_spark, stop_spark
from tests.support.time_limits import scaled

MERGE_ON_READ = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}
TABLES = {
    "v1": {"format-version": "1"},
    "v2_copy_on_write": {"format-version": "2"},
    "v2_merge_on_read": {"format-version": "2", "write.delete.granularity": "partition", **MERGE_ON_READ},
    "v3": {"format-version": "3", **MERGE_ON_READ},
}
DELETES_VALUES_IN = "v2_merge_on_read"
"""The table with deletes by value, which pyiceberg can neither read nor change."""

BY_PYICEBERG = ("v1", "v2_copy_on_write")
"""Tables that pyiceberg writes: it writes none of version 3, though it reads them."""

STALLED_S = 900.0
"""So long nothing of what must happen has come closer: then something hangs, and is reported as lacking."""

COMPLETE_EVERY_S = 2.0
"""Pause between two looks at what is still lacking: each reads the metadata of all tables."""

LEAST_REWRITES = 1
"""Of each table."""

LEAST_KILLS = {"files_written": 1, "committed": 1}

KINDS = ("append", "delete", "update", "merge", "overwrite", "values", "rollback", "schema", "spec")
SHOWN = 20
"""Problems that the verdict names."""


@dataclass(frozen=True, slots=True)
class StressOptions:
    """How long, with which choices, and where everything is kept."""

    seconds: float
    seed: int
    folder: Path
    server: str = OURS  # The kind of catalog.


class Stress:
    """One run on one catalog; `run` returns the figures and the problems."""

    def __init__(self, options: StressOptions) -> None:
        self._options = options
        self._stop = threading.Event()
        self._permitted = Permitted()
        self._late: dict[str, Any] = {}
        self._ledgers = {name: Ledger() for name in TABLES}

    def run(self) -> dict[str, Any]:
        """Run everything; processes are ended whatever happens."""
        folder = self._options.folder
        for name in ("lake", "spark"):
            (folder / name).mkdir()
        with (
            RedisServer(appendfsync="everysec") as redis,
            rest_lake(folder / "lake", self._options.server) as lake,
            _spark(folder / "spark") as spark,
        ):
            conf = spark_conf(lake.options)
            for name, value in conf.items():
                spark.conf.set(name, value)
            self._create(spark, lake)
            world = World(folder, redis, lake, Random(self._options.seed))
            try:
                world.start(list(TABLES))
                writers = self._writers(spark, conf, lake)
                self._work(world, writers, lake)
                world.end_actors()
                return self._verdict(world, writers, spark, lake)
            finally:
                self._stop.set()
                world.stack.close()

    def _create(self, spark: SparkSession, lake: RestLake) -> None:
        """Create the tables with a first spec without fields, for deletes by value of the whole table."""
        spark.sql("CREATE NAMESPACE lake.db")
        for name, properties in TABLES.items():
            given = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
            spark.sql(f"CREATE TABLE lake.db.{name} (id BIGINT, g INT, v INT) USING iceberg TBLPROPERTIES ({given})")
            _load(spark, lake, name).raw.updateSpec().addField("g").commit()

    def _writers(self, spark: SparkSession, conf: dict[str, str], lake: RestLake) -> list[Writer]:
        seed = self._options.seed
        java = JavaSteps(
            lambda name: _load(spark, lake, name),
            spark.sparkContext._jvm,
            self._options.folder / "lake",
            self._ledgers,
            deletes_values_in=DELETES_VALUES_IN,
            random=Random(seed + 3),
        )
        by_pyiceberg = {name: self._ledgers[name] for name in BY_PYICEBERG}
        steps: dict[str, tuple[Callable[[Permitted], str], float]] = {
            "spark": (SparkSteps(spark, conf, self._ledgers, Random(seed + 1)), 0.05),
            "pyiceberg": (PyicebergSteps(lake.options, by_pyiceberg, Random(seed + 2)), 1.0),
            "java": (java, 1.0),
        }
        return [
            Writer(name, step, self._permitted, self._stop, pause_s=pause_s) for name, (step, pause_s) in steps.items()
        ]

    def _work(self, world: World, writers: list[Writer], lake: RestLake) -> None:
        """Let all go on for the time, and longer until everything that must be tested has happened."""
        for writer in writers:
            writer.start()
        ends_s = time.monotonic() + self._options.seconds
        while time.monotonic() < ends_s:
            self._stop.wait(DISTURB_EVERY_S)
            world.disturb()
        self._complete(world, writers, lake)
        self._stop.set()
        for writer in writers:
            writer.join()

    def _complete(self, world: World, writers: list[Writer], lake: RestLake) -> None:
        """Go on until nothing is lacking, however long a busy machine takes; give up when nothing comes closer.

        Meanwhile writers do what they have not done yet, and append: a rewrite, which takes longer than their
        operations where other processes compute, loses no race against an append.
        """
        began_s = moved_s = time.monotonic()
        first = before = self._lacking(world, writers, lake)
        progress = world.progress()
        while before and time.monotonic() - moved_s < scaled(STALLED_S):
            self._permitted.only({"append", *_lacking_kinds(writers)})
            self._stop.wait(COMPLETE_EVERY_S)
            world.disturb()
            now = self._lacking(world, writers, lake), world.progress()
            if now != (before, progress):
                (before, progress), moved_s = now, time.monotonic()
        self._late = {"lacking": first, "seconds longer": round(time.monotonic() - began_s)}

    def _lacking(self, world: World, writers: list[Writer], lake: RestLake) -> list[str]:
        """Return what has not happened yet, without which the run would prove little."""
        lacking = [f"no {kind} was done" for kind in _lacking_kinds(writers)]
        for point, least in LEAST_KILLS.items():
            if world.kills[point] < least:
                lacking.append(f"no actor was killed at {point}")
        counts = {name: _rewrites(lake, name) for name in TABLES}
        return lacking + [f"{name} has {count} rewrites" for name, count in counts.items() if count < LEAST_REWRITES]

    def _verdict(self, world: World, writers: list[Writer], spark: SparkSession, lake: RestLake) -> dict[str, Any]:
        problems = self._lacking(world, writers, lake)
        tables: dict[str, Any] = {}
        for name, ledger in self._ledgers.items():
            table = lake.catalog.load_table(f"db.{name}")
            check = TableCheck(table, ledger.confirmed, readers(spark))
            check.run()
            tables[name] = check.figures()
            problems += check.problems
            world.wait_for_state(name, sum(one == 0 for one in table.inspect.files()["content"].to_pylist()))
        return {
            "seed": self._options.seed,
            "seconds": self._options.seconds,
            "when the time was over": self._late,
            "tables": tables,
            "kills": dict(world.kills),
            "done": {one.name: dict(one.done) for one in writers},
            "lost": {one.name: dict(one.lost.most_common(8)) for one in writers},
            "problems": problems[:SHOWN],
        }


def _lacking_kinds(writers: list[Writer]) -> list[str]:
    done = {name.rpartition(" ")[2] for writer in writers for name, count in writer.done.items() if count}
    return [kind for kind in KINDS if kind not in done]


def _load(spark: SparkSession, lake: RestLake, name: str) -> JavaTable:
    loader = TableLoader(IcebergScala(spark), spark, {"lake": lake.options}, reads_folders=False)
    return loader.load(f"catalog://lake/db/{name}")


def _rewrites(lake: RestLake, name: str) -> int:
    snapshots = lake.catalog.load_table(f"db.{name}").metadata.snapshots
    return sum(one.summary is not None and one.summary.operation is Operation.REPLACE for one in snapshots)


@contextmanager
def _spark(folder: Path) -> Iterator[SparkSession]:
    spark = start_spark(folder)
    try:
        yield spark
    finally:
        stop_spark(spark)
