"""olake: a stream of upserts with equality deletes, compacted beside its syncs, TPC-H's Q6 in between; rows must agree.

Published by OLake for 200,000 updated rows each two minutes for two hours: 27:02 of compaction by its own, each 20 and
each 40 minutes, 55:47 by `rewrite_data_files` each 20. Each side has a process and a JVM of its own. A sync stands for
two minutes, without waiting; a compaction begins with a sync and runs while the next one is committed.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.iceberg.conflicts import FAILURES
from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.jvm.jars import ICEBERG
from decider.background.timer_runner import TimerRunner
from decider.formats.registry import table_formats
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from decider.store.registry.table_registry import TableRegistry
from shared.formats.options import FormatOptions
from shared.policy.policy import MIB, Policy
from shared.table import TableId, TableRef
from tests.bench.delta.playing import Meter
from tests.bench.machine import Limit, tree_cpu_s
from tests.bench.rivals.page import Result, markdown
from tests.bench.rivals.upserts import UpsertedTable, Upserts
from tests.bench.services import Services
from tests.bench.spark import called_alone, started_spark
from tests.bench.writers.rows import aborts_until_done, is_conflict
from tests.support import line_chart

ROWS, SYNC_MS = 2_000, 120_000
FIRST, EVERY = 5, 10
"""Syncs until the first compaction that runs when it is called, and between two."""
BEFORE = 10
"""Syncs of a first round, on another table, so that the JVM has compiled what is measured."""
QUERIES, LOADED_ROWS = 3, 100_000
"""Runs of the query after every ten syncs; rows of a file that is loaded before."""
TARGET_BYTES = 5 * MIB
"""A hundredth of OLake's."""
PROPERTIES = {"write.target-file-size-bytes": str(TARGET_BYTES)}
SHUFFLE = {"spark.sql.shuffle.partitions": "4"}
Q6 = """SELECT sum(price * discount) FROM ice.{} WHERE shipdate >= DATE '1994-01-01' AND shipdate < DATE '1995-01-01'
    AND discount BETWEEN 5 AND 7 AND quantity < 24"""
NOTHING, THEIRS, OURS = "none", "`rewrite_data_files` each 20 minutes", "Lakewright"

After = Callable[[int], object]
"""Called with the number of a sync that was committed."""


class WrongRowsError(RuntimeError):
    """A reader found other rows than the stream wrote."""


@contextmanager
def nothing(_: SparkSession, __: UpsertedTable) -> Iterator[After]:
    """Compact nothing."""
    yield lambda _: None


@contextmanager
def rewrite(_: SparkSession, table: UpsertedTable) -> Iterator[After]:
    """Call `rewrite_data_files` with OLake's options: a file with one delete file is rewritten."""
    call = (
        f"CALL ice.system.rewrite_data_files(table => '{table.name}', options => map("
        f"'delete-file-threshold', '1', 'max-file-size-bytes', '{TARGET_BYTES * 6 // 5}'))"
    )
    yield lambda number: number % EVERY == FIRST and table.session.sql(call).collect()


@contextmanager
def lakewright(spark: SparkSession, table: UpsertedTable) -> Iterator[After]:
    """Follow each commit, take the timers that are due, and do the jobs; the clock goes by the syncs."""
    engine = IcebergEngine(spark, IcebergEngineSettings(reads_folders=True))
    formats = table_formats(StorageAccess(ReadMeter()), FormatOptions(iceberg_folders=True))
    services = Services(engine, "default", Policy(), formats, begins_ms=time.time_ns() // 1_000_000)
    registry = TableRegistry(services.queue.redis, now_ms=services.now_ms)
    timers = TimerRunner(services.queue, registry, services.tracker, services.now_ms)
    known = TableRef(TableId("bench"), "bench", table.path.as_uri())

    def after(_: int) -> None:
        services.pass_time(SYNC_MS)
        services.run(services.tracker.follow(known))
        services.run(timers.run_once())
        while services.worker.run_next():
            pass

    try:
        services.run(registry.register(known))
        services.run(services.tracker.follow(known))
        yield after
    finally:
        services.close()


@dataclass(frozen=True, slots=True)
class Side:
    """`properties`: of its table; `beside`: what compacts it."""

    title: str
    beside: Callable[[SparkSession, UpsertedTable], Any]
    properties: Mapping[str, str] = field(default_factory=dict)


SIDES = {
    "none": Side(NOTHING, nothing),
    "rewrite": Side(THEIRS, rewrite),
    "lakewright": Side(OURS, lakewright),
    "converting": Side(
        f"{OURS}, `convert-deletes-at={EVERY}`", lakewright, {"lakewright.convert-deletes-at": str(EVERY)}
    ),
}


@dataclass(slots=True)
class Played:
    """`cpu_s`: of commits and compaction; `deletes`: delete files after each sync; `query_s`: of each query in turn."""

    title: str
    compaction_s: float = 0.0
    cpu_s: float = 0.0
    query_s: list[float] = field(default_factory=list)
    query_cpu_s: float = 0.0
    lost: int = 0
    aborted: int = 0
    files: int = 0
    deletes: list[int] = field(default_factory=list)
    failed: str = ""


def play_side(folder: Path, name: str, asked: Any) -> Played:
    """Play one side; raises WrongRowsError if its rows are not those of the stream."""
    side = SIDES[name]
    played = Played(side.title)
    with started_spark(folder / "spark", iceberg=True, **SHUFFLE) as spark:
        try:
            for number, syncs in enumerate((BEFORE, asked.syncs)):
                played = Played(side.title)
                table = UpsertedTable(spark, folder, f"lineitem_{number}", PROPERTIES | side.properties)
                _play(spark, side, table, asked, played, syncs)
        except WrongRowsError:
            raise
        except Exception as error:  # noqa: BLE001 - the other sides are played, and its row says so
            played.failed = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
    print(played, flush=True)
    return played


def _play(spark: SparkSession, side: Side, table: UpsertedTable, asked: Any, played: Played, syncs: int) -> None:
    """Commit all syncs, each while what the one before it made due is done, and query after each ten."""
    rows, meter, text = Upserts(asked.seed), Meter(spark), Q6.format(table.name)
    for first in range(0, asked.loaded, LOADED_ROWS):
        table.load(rows.next(min(LOADED_ROWS, asked.loaded - first)))
    files = [table.written(rows.next(ROWS, ROWS * asked.updates // 100)) for _ in range(syncs)]

    def compact(after: After, number: int) -> None:
        began = time.monotonic()
        try:
            after(number)
        except Exception as error:
            if not is_conflict(FAILURES, error):
                raise
            played.lost += 1
        played.compaction_s += time.monotonic() - began

    with side.beside(spark, table) as after, ThreadPoolExecutor(1) as beside:
        working, cpu_s = beside.submit(compact, lambda _: None, 0), tree_cpu_s(os.getpid())
        for number, sync in enumerate(files, 1):
            played.aborted += aborts_until_done(FAILURES, partial(table.commit, *sync))
            working.result()
            played.deletes.append(table.counts()[1])
            working = beside.submit(compact, after, number)
            if number % EVERY == 0 or number == syncs:
                working.result()
                meter.settle()
                query_cpu_s = tree_cpu_s(os.getpid())
                for _ in range(QUERIES):
                    began = time.monotonic()
                    table.session.sql(text).collect()
                    played.query_s.append(time.monotonic() - began)
                meter.settle()
                played.query_cpu_s += tree_cpu_s(os.getpid()) - query_cpu_s
        played.cpu_s = tree_cpu_s(os.getpid()) - cpu_s - played.query_cpu_s
    played.files, deletes = table.counts()
    played.deletes.append(deletes)
    if table.rows(is_small=not asked.loaded) != rows.expected():
        raise WrongRowsError(f"{side.title}: the table does not have the rows of the stream")


def goals(done: Sequence[Played]) -> list[Limit]:
    """Return what Lakewright has to show beside `rewrite_data_files`; nothing unless both and `none` were played."""
    played = {one.title: one for one in done if not one.failed}
    if not {NOTHING, THEIRS, OURS} <= {*played}:
        return []
    ours, theirs, none = played[OURS], played[THEIRS], played[NOTHING]
    return [
        Limit("cost by that of rewrite_data_files", (ours.cpu_s - none.cpu_s) / (theirs.cpu_s - none.cpu_s), 0.6),
        Limit("query time by that with rewrite_data_files", ours.query_cpu_s / theirs.query_cpu_s, 1.0),
        Limit("aborted commits", ours.aborted, 0),
    ]


HEAD = ("side", "compaction s", "CPU s beyond none", "queries s", "their CPU s", "data files", "delete files",
        "lost compactions", "aborted commits")  # fmt: skip


def row(one: Played, none_cpu_s: float) -> tuple[object, ...]:
    """Return the row of a side."""
    if one.failed:
        return (one.title, f"failed: {one.failed}", *[""] * (len(HEAD) - 2))
    figures = (one.compaction_s, one.cpu_s - none_cpu_s, sum(one.query_s), one.query_cpu_s)
    return (one.title, *(f"{value:.1f}" for value in figures), one.files, one.deletes[-1], one.lost, one.aborted)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked for."""
    parser.add_argument("--syncs", type=int, default=60, help="of each side, two minutes apart; published for 65")
    parser.add_argument("--updates", type=int, default=50, help="percent of the rows of a sync; published for 100")
    parser.add_argument("--loaded", type=int, default=0, help="rows before the first sync; published for 1.8 billion")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sides", nargs="*", default=list(SIDES), choices=list(SIDES))


def play(folder: Path, asked: Any) -> Result:
    """Play all sides."""
    done = [called_alone(play_side, folder / name, name, asked) for name in asked.sides]
    none_cpu_s = next((one.cpu_s for one in done if one.title == NOTHING), 0.0)
    curves = [
        line_chart.Line(one.title, [(at * SYNC_MS / 1_000, count) for at, count in enumerate(one.deletes, 1)])
        for one in done
    ]
    versions = {name: metadata.version(name) for name in ("pyspark", "duckdb", "lakewright")} | {
        "iceberg": ICEBERG.packages[0].rpartition(":")[2]
    }
    setting = (
        f"{asked.syncs} syncs of {ROWS:,} rows, {asked.updates}% updates, upon {asked.loaded:,} rows, seed {asked.seed}"
    )
    return Result(
        markdown(HEAD, [row(one, none_cpu_s) for one in done]),
        line_chart.draw("Delete files over time", curves, unit="files"),
        setting,
        versions,
        goals(done),
        {**{name: getattr(asked, name) for name in ("syncs", "updates", "loaded", "seed")},
         "sides": [asdict(one) for one in done]},
    )  # fmt: skip
