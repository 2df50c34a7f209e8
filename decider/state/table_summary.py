"""The summary of a table: sums over its partitions that move with its state, so that lists of tables read no partition.

Partition statistics form a group, so the sums of a table change by what a commit changed in the partitions it touched.
The excess is no sum of files, but of partitions: it moves by the excess of the touched ones, after less before.

How a table's file layout changed, commit by commit, computed backwards from its present sums.

The sums before a commit are the sums after it, less what it added, plus what it removed; so no snapshot is read. The
history ends before a commit that does not record the sizes of the files that it removed.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from shared.layout.eligibility import NO_EXCESS, Excess
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats, stats_of_sizes
from shared.policy.levels import SizeLevels
from shared.policy.policy import Policy
from shared.table import Commit, PartitionKey


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table's live files and whether it is optimized, at the version of its state.

    files, bytes: all live files; small_files: those below the full size; shortfall: sum of (T - min(size, T))^2 over
    all files (bytes^2); target_bytes: T; is_enabled: the policy permits rewrites; last_rewrite_ms: commit time of the
    newest Lakewright commit, 0 if none was applied; excess: what merging can still gain; has_invalid_properties: some
    property of the table cannot be used. backlog_bytes: bytes that are still to be rewritten once, of the files that
    were there at the first read of the table, or at a change of its policy; undue_bytes: those of small files that
    were not eligible then, and that no rewrite took since.
    """

    files: int
    bytes: int
    small_files: int
    shortfall: int
    target_bytes: int
    is_enabled: bool
    last_rewrite_ms: int = 0
    excess: Excess = NO_EXCESS
    has_invalid_properties: bool = False
    backlog_bytes: int = 0
    undue_bytes: int = 0

    @staticmethod
    def of(partitions: Collection[PartitionStats], policy: Policy, last_rewrite_ms: int = 0) -> "TableSummary":
        """Return the summary of a table that has these partitions."""
        total = sum((one.total for one in partitions), start=EMPTY_STATS)
        return TableSummary(
            files=total.files,
            bytes=total.bytes,
            small_files=total.small_files,
            shortfall=total.shortfall,
            target_bytes=policy.size_levels.target_bytes,
            is_enabled=policy.enabled,
            last_rewrite_ms=last_rewrite_ms,
            excess=Excess.of(partitions, policy.size_levels.target_bytes),
        )

    def after(self, change: "SummaryChange", last_rewrite_ms: int = 0) -> "TableSummary":
        """Return the summary after commits that changed the partitions in this way; rewrites take from the backlog."""
        moved = self._moved(change.total, change.excess, last_rewrite_ms)
        if moved.excess.files <= 0:
            return replace(moved, backlog_bytes=0, undue_bytes=0)
        undue = self.undue_bytes - max(0, change.bytes_rewritten - self.backlog_bytes)
        left = self.backlog_bytes - change.bytes_rewritten
        return replace(moved, backlog_bytes=max(0, left), undue_bytes=max(0, undue))

    def steady_bytes(self, rewritten: int) -> int:
        """Return how many of these rewritten bytes are no file's first rewrite since the table was first read."""
        return max(0, rewritten - self.backlog_bytes - self.undue_bytes)

    def before(self, added: PartitionStats) -> "TableSummary":
        """Return the summary before a commit added these files; its excess has no meaning."""
        return self._moved(EMPTY_STATS - added, NO_EXCESS, 0)

    def _moved(self, change: PartitionStats, excess: Excess, last_rewrite_ms: int) -> "TableSummary":
        return replace(
            self,
            files=self.files + change.files,
            bytes=self.bytes + change.bytes,
            small_files=self.small_files + change.small_files,
            shortfall=self.shortfall + change.shortfall,
            last_rewrite_ms=max(self.last_rewrite_ms, last_rewrite_ms),
            excess=self.excess + excess,
        )

    @property
    def files_needed(self) -> int:
        """Number of files that would do for the same bytes."""
        return self.files - max(0, self.excess.files)

    @property
    def excess_ratio(self) -> float:
        """Root of the excess per file as a share of the target: 0 is as compact as possible, 1 is worst."""
        return self.excess.ratio(self.files, self.target_bytes)

    @property
    def rms_shortfall(self) -> float:
        """Root of the mean squared shortfall as a share of the target: 0 is optimal, 1 is worst."""
        # Division of integers is rounded once, whatever their size.
        return math.sqrt(self.shortfall / self.files) / self.target_bytes if self.files else 0.0


@dataclass(frozen=True, slots=True)
class SummaryChange:
    """Change of the sums of a table by some commits: of the sum over all partitions, and of the excess.

    bytes_added: of files that change data; bytes_rewritten: of files that rewrites replaced.
    """

    total: PartitionStats = EMPTY_STATS
    excess: Excess = NO_EXCESS
    bytes_added: int = 0
    bytes_rewritten: int = 0

    @staticmethod
    def of(
        before: Mapping[PartitionKey, PartitionStats], after: Mapping[PartitionKey, PartitionStats], target_bytes: int
    ) -> "SummaryChange":
        """Return the change when these states replace the old ones."""
        old = [before.get(partition, EMPTY_STATS) for partition in after]
        change = EMPTY_STATS
        for state, was in zip(after.values(), old, strict=True):
            change += state.total - was.total
        return SummaryChange(change, Excess.of(after.values(), target_bytes) - Excess.of(old, target_bytes))


NOTHING_COUNTED = TableSummary(0, 0, 0, 0, 1, is_enabled=False)
"""The value of a state whose partitions are still to be counted."""


@dataclass(frozen=True, slots=True)
class LayoutPoint:
    """The layout after one commit; `at_ms` is the commit's time, `is_rewrite`: it changed no data."""

    version: int
    at_ms: int
    is_rewrite: bool
    files_added: int
    files_removed: int
    summary: TableSummary


def layout_history(now: TableSummary, commits: Iterable[Commit], size_levels: SizeLevels) -> tuple[LayoutPoint, ...]:
    """Return the layout after each of these commits, newest first; `now` is the summary after the first of them.

    Stops where a removed file has no size, and where the sums would become negative.
    """
    points: list[LayoutPoint] = []
    for commit in commits:
        points.append(
            LayoutPoint(
                commit.version, commit.timestamp_ms, not commit.data_change, len(commit.added), len(commit.removed), now
            )
        )
        change = _change(commit, size_levels)
        if change is None:
            break
        now = now.before(change)
        if min(now.files, now.bytes, now.small_files, now.shortfall) < 0:
            break
    return tuple(points)


def _change(commit: Commit, size_levels: SizeLevels) -> PartitionStats | None:
    """Return what a commit added to the sums of the table, None if it does not say."""
    removed = [file.size_bytes for file in commit.removed]
    if None in removed:
        return None
    added = stats_of_sizes(size_levels, [file.size_bytes for file in commit.added])
    return added - stats_of_sizes(size_levels, [size for size in removed if size is not None])
