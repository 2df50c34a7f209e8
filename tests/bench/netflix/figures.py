"""The seven figures: what each counts, the baseline that it is compared with, and Netflix's published change.

Source: Netflix Technology Blog, Optimizing data warehouse storage, 2020. The post defines neither its workload nor how
each figure was measured; the baselines here are the readings of it that `docs/benchmarks.md` states.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from decider.whatif.baselines import BaselineRule, ObservedPartition
from decider.whatif.comparison import MS_PER_HOUR, CostModel
from decider.whatif.simulator import SimulationResult, replay_lakewright, replay_peer, replay_untouched
from decider.whatif.trace import SimulatedMerge
from shared.policy.policy import GIB, Policy
from tests.bench.netflix.warehouse import HOUR_MS, WrittenTable

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
