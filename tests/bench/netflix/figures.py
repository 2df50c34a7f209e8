"""The seven figures: what each counts, the baseline that it is compared with, and Netflix's published change.

Source: Netflix Technology Blog, Optimizing data warehouse storage, 2020. The post defines neither its workload nor how
each figure was measured; the baselines here are the readings of it that `docs/benchmarks.md` states.

What a simulation cannot say: bytes in storage and the time of real queries, on a small real table.

The trace of `make bench-delta` is played on real Spark and Delta, left alone and under Lakewright. Then both tables are
queried in turn, so that what else the machine does slows both alike; the CPU seconds of Spark and this process, which
hardly depend on that, are reported beside the time.
"""

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from decider.whatif.baselines import BaselineRule, ObservedPartition
from decider.whatif.comparison import MS_PER_HOUR, CostModel
from decider.whatif.simulator import SimulationResult, replay_lakewright, replay_peer, replay_untouched
from decider.whatif.trace import SimulatedMerge
from shared.policy.policy import GIB, Policy
from tests.bench.delta.merging import SparkTable
from tests.bench.delta.ours import Lakewright
from tests.bench.delta.playing import Meter, play, query_texts
from tests.bench.delta.rules import DeltaRule
from tests.bench.delta.trace import Trace, make_trace
from tests.bench.netflix.warehouse import HOUR_MS, WrittenTable
from tests.bench.spark import started_spark

PRICES = CostModel()
READ_S_PER_GIB = 5.0
"""Core-seconds that a query takes to decode 1 GiB, at some 200 MB/s; assumed, as the prices of what-if are."""

TAIL_MS = 24 * HOUR_MS
"""A day without commits at the end: timers fire, and readers read what was left."""

LAG_COMMITS = 1
"""Commits between a decision and its run, for every rule."""


@dataclass(slots=True)
class Totals:
    """Sums over all tables under one rule.

    overwritten: files that the same merges would have replaced as whole partitions; query_s: core-seconds of queries.
    """

    scans: int = 0
    merges: int = 0
    files_replaced: int = 0
    overwritten: int = 0
    bytes_rewritten: int = 0
    query_s: float = 0.0
    file_hours: float = 0.0
    end_files: int = 0

    def add(self, done: SimulationResult, table: WrittenTable, read_byte_ms: int) -> None:
        """Add one table."""
        self.scans += done.scans
        self.merges += done.jobs
        self.files_replaced += done.files_replaced
        self.overwritten += done.full_overwrite_files
        self.bytes_rewritten += done.bytes_rewritten
        self.file_hours += done.all_file_ms / MS_PER_HOUR
        self.end_files += done.files_at_end
        opened_s = done.all_file_ms / MS_PER_HOUR * PRICES.open_s
        self.query_s += table.queries_per_hour * (opened_s + read_byte_ms / MS_PER_HOUR / GIB * READ_S_PER_GIB)

    @property
    def compute_s(self) -> float:
        """Core-seconds of rewriting."""
        return self.bytes_rewritten / GIB * PRICES.write_s_per_gib


def _whole_partition(observed: ObservedPartition) -> list[SimulatedMerge]:
    """Merge everything in a partition with two small files or more into files of the target size."""
    partition = observed.partition
    if len(partition.small) < 2:
        return []
    files = (*partition.small.values(), *partition.nearly.values(), *partition.full.values())
    whole, rest = divmod(sum(file.size_bytes for file in files), observed.target_bytes)
    return [SimulatedMerge(files, (observed.target_bytes,) * whole + ((rest,) if rest else ()))]


def periodic(hours: int) -> BaselineRule:
    """Return the rule that merges whole partitions periodically; 0: after each commit."""
    return BaselineRule(
        f"whole_partition_{hours}h",
        "whole partitions after each commit" if not hours else f"whole partitions, every {hours} h",
        "the periodic merge of whole partitions that Netflix's principles are stated against",
        _whole_partition,
        every_ms=hours * HOUR_MS,
        idle_ms=hours * HOUR_MS,
    )


UNTOUCHED, OURS = "left alone", "Lakewright"


def replay_all(tables: Sequence[WrittenTable], hours: int, rules: Sequence[BaselineRule]) -> dict[str, Totals]:
    """Replay every table left alone, under Lakewright and under each rule; returns the sums by title."""
    policy = Policy()
    totals = {title: Totals() for title in (UNTOUCHED, OURS, *(rule.title for rule in rules))}
    for table in tables:
        if not table.history.commits:
            continue
        read = table.byte_ms(hours * HOUR_MS + TAIL_MS)
        late = {"lag_commits": LAG_COMMITS, "tail_ms": TAIL_MS}
        totals[UNTOUCHED].add(replay_untouched(table.history, policy, tail_ms=TAIL_MS), table, read)
        totals[OURS].add(replay_lakewright(table.history, policy, **late), table, read)
        for rule in rules:
            totals[rule.title].add(replay_peer(table.history, policy, rule, **late), table, read)
    return totals


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: what is counted, in which unit, under the baseline and ours, and Netflix's change in percent."""

    name: str
    unit: str
    baseline: str
    before: float
    ours: float
    published: int
    how: str = field(default="simulated")

    @property
    def change(self) -> float:
        """The change in percent; negative is less."""
        return 100 * (self.ours / self.before - 1) if self.before else 0.0

    @property
    def is_reached(self) -> bool:
        """Whether ours is reduced by as much as Netflix's."""
        return self.change <= self.published


def figures(totals: dict[str, Totals], baseline: str) -> list[Figure]:
    """Return the six figures that a simulation has, replacements by two baselines; storage is measured."""
    theirs, ours, nothing = totals[baseline], totals[OURS], totals[UNTOUCHED]
    same = "the same merges, of whole partitions"
    return [
        Figure("partition scans", "listings", baseline, theirs.scans, ours.scans, -22),
        Figure("merge actions", "merges", baseline, theirs.merges, ours.merges, -2),
        Figure("file replacements", "files", baseline, theirs.files_replaced, ours.files_replaced, -72),
        Figure("file replacements", "files", same, ours.overwritten, ours.files_replaced, -72),
        Figure("files", "file-hours", UNTOUCHED, nothing.file_hours, ours.file_hours, -80),
        Figure("compute", "core-seconds of rewriting", baseline, theirs.compute_s, ours.compute_s, -70),
        Figure("query time", "core-seconds", UNTOUCHED, nothing.query_s, ours.query_s, -60),
    ]


ROUNDS, WARM_UPS = 11, 3
"""Rounds in which each query is run once on each table; the first ones do not count."""


def measure(commits: int, seed: int) -> list[Figure]:
    """Return storage and query time as measured; raises RuntimeError if rows differ."""
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-netflix-") as made:
        folder = Path(made)
        trace = make_trace(folder / "trace", commits=commits, seed=seed)
        with started_spark(folder / "spark") as spark:
            done, tables = [], []
            for rule in (DeltaRule(spark), Lakewright(spark, DeltaEngine(spark))):
                tables.append(SparkTable(spark, folder / f"t{len(done)}", rule.configuration()))
                done.append(play(spark, rule, trace, tables[-1]))
            nothing, ours = done
            if nothing.rows != ours.rows:
                raise RuntimeError(f"rows differ: {nothing.rows} left alone, {ours.rows} under Lakewright")
            before, after = _queried(spark, [table.sql_name for table in tables], trace)
    how = f"measured, {nothing.files_end} and {ours.files_end} files"
    three = "of a point, a range and a full query"
    return [
        Figure("query time", f"ms {three}", UNTOUCHED, before[0], after[0], -60, how),
        Figure("query time", f"CPU ms {three}", UNTOUCHED, before[1], after[1], -60, how),
        Figure("storage", "bytes of live files", UNTOUCHED, nothing.bytes_end, ours.bytes_end, -1, how),
    ]


def _queried(spark: SparkSession, tables: Sequence[str], trace: Trace) -> list[tuple[float, float]]:
    """Return for each table the sum over the queries of the median milliseconds, and of the median CPU milliseconds."""
    meter = Meter(spark)
    took: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for _ in range(ROUNDS):
        for table in tables:
            for name, text in query_texts(table, trace).items():
                began = time.perf_counter()
                cpu_s = meter.cpu_s(spark.sql(text).collect)
                took[table, name].append((1e3 * (time.perf_counter() - began), 1e3 * cpu_s))
    sums = []
    for table in tables:
        counted = [took[table, name][WARM_UPS:] for name in query_texts(table, trace)]
        sums.append(tuple(sum(statistics.median(one[at] for one in runs) for runs in counted) for at in (0, 1)))
    return [(wall, cpu) for wall, cpu in sums]
