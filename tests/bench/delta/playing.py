"""One rule is played over the trace and measured: bytes, files, CPU, aborted MERGEs, queries, and the rows at last."""

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import psutil
from pyspark.sql import SparkSession

from tests.bench.delta.trace import MERGE_COMMITS, Trace, days

QUERY_RUNS, QUERY_WARM_UPS = 5, 2


@dataclass(slots=True)
class Played:
    """What was measured under one rule; sizes in bytes, times in seconds, `curve` as live files after each commit."""

    title: str
    bytes_rewritten: int = 0
    rewrites: int = 0
    compaction_cpu_s: float = 0.0
    wall_s: float = 0.0
    merges: int = 0
    merges_aborted: int = 0
    files_end: int = 0
    bytes_end: int = 0
    queries_ms: dict[str, float] = field(default_factory=dict)
    curve: list[int] = field(default_factory=list)
    rows: tuple[Any, ...] = ()
    cpu_s_by_round: list[float] = field(default_factory=list)  # In the first the JVM compiles what it runs.


class PendingMerge(Protocol):
    """A MERGE under way."""

    def commit(self) -> bool:
        """Commit; False if it was aborted because another caller committed in between."""


class Table(Protocol):
    """A table that a rule is played on."""

    bytes_rewritten: int
    rewrites: int

    @property
    def sql_name(self) -> str:
        """What it is called in Spark's SQL."""

    @property
    def files(self) -> int:
        """Live files, as of the last look."""

    @property
    def live_bytes(self) -> int:
        """Bytes in live files, as of the last look."""

    def bring(self, folder: Path, adds: Iterable[Mapping[str, Any]]) -> None:
        """Link the data files of a commit into the table's folder."""

    def append(self, adds: Iterable[Mapping[str, Any]]) -> None:
        """Commit them as a foreign writer does."""

    def merge(self, day: str) -> PendingMerge:
        """Begin a MERGE of one day's partition."""

    def follow(self) -> int:
        """Read what was committed since the last look."""


class PlayedRule(Protocol):
    """One way to keep a table in shape; see `tests.bench.delta.rules.Rule`."""

    title: str

    def begin(self, table: Any) -> None:
        """Get to know the table, which has no data yet."""

    def append(self, adds: Iterable[Mapping[str, Any]]) -> bool:
        """Commit some files; False if the rule leaves that to a foreign writer."""

    def after(self, number: int) -> None:
        """Do what the rule does once commit `number`, from 1 on, is there."""

    def end(self) -> None:
        """Let go of what was begun."""


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


def play_rounds(spark: SparkSession, rule: PlayedRule, trace: Trace, tables: Sequence[Table]) -> Played:
    """Play the trace on one table after another in one JVM; returns what the last round measured, with CPU of each.

    In the first round the JVM compiles the code that it has not run before.
    """
    cpu_s: list[float] = []
    for number, table in enumerate(tables, 1):
        print(f"{rule.title}: round {number} of {len(tables)}", flush=True)
        played = play(spark, rule, trace, table)
        cpu_s.append(played.compaction_cpu_s)
    return replace(played, cpu_s_by_round=cpu_s)


def play(spark: SparkSession, rule: PlayedRule, trace: Trace, table: Table) -> Played:
    """Play the whole trace under one rule; the table is empty, and known in this session."""
    played, meter = Played(rule.title), Meter(spark)
    rule.begin(table)
    began = time.monotonic()
    try:
        _play_commits(rule, trace, table, played, meter)
    finally:
        rule.end()
    played.wall_s = time.monotonic() - began
    played.bytes_rewritten, played.rewrites = table.bytes_rewritten, table.rewrites
    played.files_end, played.bytes_end = table.files, table.live_bytes
    played.rows = _rows(spark, table.sql_name)
    played.queries_ms = _queries(spark, table.sql_name, trace)
    return played


def _play_commits(rule: PlayedRule, trace: Trace, table: Table, played: Played, meter: Meter) -> None:
    merging: PendingMerge | None = None
    until = 0
    inside: list[tuple[float, bool]] = []
    for number, commit in enumerate(trace.commits, 1):
        if commit.merge_day is not None and merging is None:
            merging, until = table.merge(commit.merge_day), number + MERGE_COMMITS - 1
        table.bring(trace.folder, commit.adds)
        if not _appended(rule, commit.adds, table, inside, meter):
            table.append(commit.adds)
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
    rule: PlayedRule, adds: tuple[Any, ...], table: Table, inside: list[tuple[float, bool]], meter: Meter
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


def _rows(spark: SparkSession, table: str) -> tuple[Any, ...]:
    """Return what tells two tables apart: the number of rows, and sums over all their values."""
    sums = ("count(*)", "sum(id)", "sum(cast(xxhash64(id, account, amount, name, day) as decimal(38,0)))")
    return tuple(spark.sql(f"SELECT {', '.join(sums)} FROM {table}").collect()[0])


def query_texts(table: str, trace: Trace) -> dict[str, str]:
    """Return a point, a range and a full query of a table."""
    names = days()
    return {
        "point": f"SELECT amount FROM {table} WHERE id = {trace.rows // 2}",
        "range": f"SELECT sum(amount) FROM {table} WHERE day BETWEEN '{names[8]}' AND '{names[11]}'",
        "full": f"SELECT count(*), sum(amount), max(name) FROM {table}",
    }


def _queries(spark: SparkSession, table: str, trace: Trace) -> dict[str, float]:
    """Return the median milliseconds of each query."""
    medians = {}
    for name, text in query_texts(table, trace).items():
        took = []
        for _ in range(QUERY_WARM_UPS + QUERY_RUNS):
            began = time.perf_counter()
            spark.sql(text).collect()
            took.append(1e3 * (time.perf_counter() - began))
        medians[name] = round(statistics.median(took[QUERY_WARM_UPS:]), 1)
    return medians
