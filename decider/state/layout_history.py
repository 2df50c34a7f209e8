"""How a table's file layout changed, commit by commit, computed backwards from its present sums.

The sums before a commit are the sums after it, less what it added, plus what it removed; so no snapshot is read. The
history ends before a commit that does not record the sizes of the files that it removed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from decider.state.table_summary import TableSummary
from shared.layout.partition_stats import PartitionStats, stats_of_sizes
from shared.policy.levels import SizeLevels
from shared.table import Commit


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
