"""One rule is played over the trace and measured: bytes, files, CPU, aborted MERGEs, queries, and the rows at last."""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

from actor.formats.delta.log import TableLog
from actor.jvm.scala import Scala
from tests.bench.delta.merging import Merge
from tests.bench.delta.rules import Rule
from tests.bench.delta.table import PlayedTable
from tests.bench.delta.trace import MERGE_COMMITS, Trace, days

QUERY_RUNS, QUERY_WARM_UPS = 5, 2


@dataclass(slots=True)
class Played:
    """What was measured under one rule; sizes in bytes, times in seconds, `curve` as live files after each commit."""

    title: str
    bytes_rewritten: int = 0
    rewrites: int = 0
    compaction_cpu_s: float = 0.0
    first_cpu_s: float = 0.0  # When the JVM had not run most of the code before.
    wall_s: float = 0.0
    merges: int = 0
    merges_aborted: int = 0
    files_end: int = 0
    bytes_end: int = 0
    queries_ms: dict[str, float] = field(default_factory=dict)
    curve: list[int] = field(default_factory=list)
    rows: tuple[Any, ...] = ()


class Meter:
    """CPU seconds of this process and of Spark's JVM: what a compaction costs, wherever it runs."""

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._processes = [psutil.Process(os.getpid()), psutil.Process(gateway.proc.pid)]

    def cpu_s(self, work: Callable[[], object]) -> float:
        """Do something and return what it cost."""
        before = self._used_s()
        work()
        return self._used_s() - before

    def _used_s(self) -> float:
        return sum(times.user + times.system for times in (process.cpu_times() for process in self._processes))


def play(spark: SparkSession, rule: Rule, trace: Trace, path: Path) -> Played:
    """Play the whole trace under one rule."""
    played, meter = Played(rule.title), Meter(spark)
    table = PlayedTable(path, rule.configuration())
    rule.begin(table)
    began = time.monotonic()
    try:
        _play_commits(spark, rule, trace, table, played, meter)
    finally:
        rule.end()
    played.wall_s = time.monotonic() - began
    played.bytes_rewritten, played.rewrites = table.bytes_rewritten, table.rewrites
    played.files_end, played.bytes_end = table.files, table.live_bytes
    played.rows = _rows(spark, path)
    played.queries_ms = _queries(spark, path, trace)
    return played


def _play_commits(
    spark: SparkSession, rule: Rule, trace: Trace, table: PlayedTable, played: Played, meter: Meter
) -> None:
    scala = Scala(spark)
    log = TableLog(scala, spark, table.path.as_uri())
    merging: Merge | None = None
    until = 0
    inside: list[tuple[float, bool]] = []
    for number, commit in enumerate(trace.commits, 1):
        if commit.merge_day is not None and merging is None:
            merging, until = Merge(scala, log, table, commit.merge_day), number + MERGE_COMMITS - 1
        table.bring(trace.folder, commit.adds)
        if not _appended(rule, commit.adds, table, inside, meter):
            table.commit([{"add": add} for add in commit.adds])
        played.compaction_cpu_s += meter.cpu_s(lambda number=number: rule.after(number))  # type: ignore[misc]
        table.follow()
        if merging is not None and number >= until:
            played.merges += 1
            played.merges_aborted += not merging.commit()
            merging = None
        table.follow()
        played.curve.append(table.files)
        if number % 60 == 0:
            print(f"  {rule.title}: {number} commits, {table.files} files, {table.rewrites} rewrites", flush=True)
    played.compaction_cpu_s += _inside_s(inside)


def _appended(
    rule: Rule, adds: tuple[Any, ...], table: PlayedTable, inside: list[tuple[float, bool]], meter: Meter
) -> bool:
    """Let the rule commit, if it does that itself, and note the cost and whether it compacted on the way."""
    taken: list[bool] = []
    before = table.rewrites
    cost = meter.cpu_s(lambda: taken.append(rule.append(adds)))
    table.follow()
    if taken[0]:
        inside.append((cost, table.rewrites > before))
    return taken[0]


def _inside_s(inside: list[tuple[float, bool]]) -> float:
    """Return what compaction inside of commits cost: theirs, less what a commit without one costs."""
    plain = [cost for cost, compacted in inside if not compacted]
    usual = statistics.median(plain) if plain else 0.0
    return sum(cost - usual for cost, compacted in inside if compacted)


def _rows(spark: SparkSession, path: Path) -> tuple[Any, ...]:
    """Return what tells two tables apart: the number of rows, and sums over all their values."""
    frame = spark.read.format("delta").load(str(path))
    sums = ("count(*)", "sum(id)", "sum(cast(xxhash64(id, account, amount, name, day) as decimal(38,0)))")
    return tuple(frame.selectExpr(*sums).collect()[0])


def _queries(spark: SparkSession, path: Path, trace: Trace) -> dict[str, float]:
    """Return the median milliseconds of a point, a range and a full query."""
    names, table = days(), f"delta.`{path}`"
    texts = {
        "point": f"SELECT amount FROM {table} WHERE id = {trace.rows // 2}",
        "range": f"SELECT sum(amount) FROM {table} WHERE day BETWEEN '{names[8]}' AND '{names[11]}'",
        "full": f"SELECT count(*), sum(amount), max(name) FROM {table}",
    }
    medians = {}
    for name, text in texts.items():
        took = []
        for _ in range(QUERY_WARM_UPS + QUERY_RUNS):
            began = time.perf_counter()
            spark.sql(text).collect()
            took.append(1e3 * (time.perf_counter() - began))
        medians[name] = round(statistics.median(took[QUERY_WARM_UPS:]), 1)
    return medians
