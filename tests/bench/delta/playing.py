"""One rule is played over the trace and measured: bytes, files, CPU, aborted MERGEs, queries, and the rows at last."""

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psutil
from pyspark.sql import SparkSession

from tests.bench.delta.trace import MERGE_COMMITS, Trace, days
from tests.bench.machine import cpu_s

T = TypeVar("T")

QUERY_RUNS, QUERY_WARM_UPS = 5, 2
QUIET_S, QUIET_CPU_S, MAX_SETTLE_S = 1.0, 0.05, 30.0
"""A JVM that uses so little in a second compiles nothing any more; it is waited for that long at most."""


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
    jit_s: float = 0.0  # Of the compiler, in its own time: more than CPU where cores are busy.
    python_s: float = 0.0
    jit_s_by_round: list[float] = field(default_factory=list)
    python_s_by_round: list[float] = field(default_factory=list)
    cost_error: float | None = None  # Share by which the rule's own predictions of cost were off.


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


class LeaveAlone:
    """No compaction at all: what the queries take before. Other rules do something at one of these moments."""

    title = "left alone"

    def begin(self, table: Any) -> None:
        """Get to know the table, which has no data yet."""
        self.table = table

    def append(self, adds: Iterable[Mapping[str, Any]]) -> bool:
        """Commit some files; False if the rule leaves that to a foreign writer."""
        return False

    def look(self) -> None:
        """Learn of the table what an event would say of a commit, at no cost; called before `after`."""

    def after(self, number: int) -> None:
        """Do what the rule does once commit `number`, from 1 on, is there."""

    def end(self) -> None:
        """Let go of what was begun."""

    def cost_error(self) -> float | None:
        """Return the share by which the mean of predicted costs was off, None for a rule that predicts none."""
        return None


class Meter:
    """CPU seconds of this process and of Spark's JVM: what a compaction costs, wherever it runs.

    python_s, jvm_s: what each used in all that was measured.
    """

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._python, self._jvm = psutil.Process(os.getpid()), psutil.Process(gateway.proc.pid)
        self._compiler = gateway.jvm.java.lang.management.ManagementFactory.getCompilationMXBean()
        self.python_s = self.jvm_s = 0.0

    def cpu_s(self, work: Callable[[], object]) -> float:
        """Do something and return what it cost."""
        python_s, jvm_s = cpu_s(self._python), cpu_s(self._jvm)
        work()
        python_s, jvm_s = cpu_s(self._python) - python_s, cpu_s(self._jvm) - jvm_s
        self.python_s += python_s
        self.jvm_s += jvm_s
        return python_s + jvm_s

    def jvm_now_s(self) -> float:
        """Return what the JVM has used until now."""
        return cpu_s(self._jvm)

    def jit_now_s(self) -> float:
        """Return how long the JVM has compiled until now."""
        return float(self._compiler.getTotalCompilationTime()) / 1_000

    def settle(self) -> None:
        """Wait until the JVM has compiled what the last work made worth it."""
        until_s = time.monotonic() + MAX_SETTLE_S
        while time.monotonic() < until_s:
            before_s = self.jvm_now_s()
            time.sleep(QUIET_S)
            if self.jvm_now_s() - before_s < QUIET_CPU_S:
                return


def play_rounds(spark: SparkSession, rule: LeaveAlone, trace: Trace, tables: Sequence[Table]) -> Played:
    """Play the trace on one table after another in one JVM; returns what the last round measured, with CPU of each.

    In the first round the JVM compiles the code that it has not run before.
    """
    rounds: list[Played] = []
    for number, table in enumerate(tables, 1):
        print(f"{rule.title}: round {number} of {len(tables)}", flush=True)
        rounds.append(play(spark, rule, trace, table))
    return replace(
        rounds[-1],
        cpu_s_by_round=[one.compaction_cpu_s for one in rounds],
        jit_s_by_round=[one.jit_s for one in rounds],
        python_s_by_round=[one.python_s for one in rounds],
    )


def play(spark: SparkSession, rule: LeaveAlone, trace: Trace, table: Table) -> Played:
    """Play the whole trace under one rule; the table is empty, and known in this session."""
    played, meter, foreign = Played(rule.title), Meter(spark), Meter(spark)
    rule.begin(table)
    began = time.monotonic()
    jvm_s, jit_s = meter.jvm_now_s(), meter.jit_now_s()
    try:
        _play_commits(rule, trace, table, played, (meter, foreign))
        meter.settle()
    finally:
        rule.end()
    # Between the rule's windows the JVM does nothing but MERGEs: what it used beside them, it compiled for the rule.
    played.compaction_cpu_s += meter.jvm_now_s() - jvm_s - meter.jvm_s - foreign.jvm_s
    played.jit_s, played.python_s = meter.jit_now_s() - jit_s, meter.python_s
    played.wall_s = time.monotonic() - began
    played.bytes_rewritten, played.rewrites = table.bytes_rewritten, table.rewrites
    played.files_end, played.bytes_end = table.files, table.live_bytes
    played.cost_error = rule.cost_error()
    played.rows = _rows(spark, table.sql_name)
    played.queries_ms = _queries(spark, table.sql_name, trace)
    return played


def _play_commits(rule: LeaveAlone, trace: Trace, table: Table, played: Played, meters: tuple[Meter, Meter]) -> None:
    """Play all commits; meters: of the rule, and of what writers do in the JVM."""
    meter, foreign = meters
    merging: list[tuple[int, PendingMerge]] = []
    inside: list[tuple[float, bool]] = []
    for number, commit in enumerate(trace.commits, 1):
        if commit.merge_day is not None:
            begun = _measured(foreign, partial(table.merge, commit.merge_day))
            merging.append((number + MERGE_COMMITS - 1, begun))
        table.bring(trace.folder, commit.adds)
        if not _appended(rule, commit.adds, table, inside, meter):
            table.append(commit.adds)
        rule.look()
        played.compaction_cpu_s += meter.cpu_s(lambda number=number: rule.after(number))  # type: ignore[misc]
        table.follow()
        while merging and merging[0][0] <= number:
            _, ended = merging.pop(0)
            played.merges += 1
            played.merges_aborted += not _measured(foreign, ended.commit)
        table.follow()
        played.curve.append(table.files)
        if number % 60 == 0:
            print(f"  {rule.title}: {number} commits, {table.files} files, {table.rewrites} rewrites", flush=True)
    played.compaction_cpu_s += _inside_s(inside)


def _measured(meter: Meter, work: Callable[[], T]) -> T:
    """Do something, note what it cost, and return what it returned."""
    returned: list[T] = []
    meter.cpu_s(lambda: returned.append(work()))
    return returned[0]


def _appended(
    rule: LeaveAlone, adds: tuple[Any, ...], table: Table, inside: list[tuple[float, bool]], meter: Meter
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
