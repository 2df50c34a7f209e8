"""Applies a commit: it becomes a change of each partition it touches, at the cost of the commit and never of the table.

A commit that the rolling state cannot apply exactly is not guessed: the result has the reason, and the table is rebuilt
from its log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from decider.state.batch_files import BatchFiles, PriorState
from shared.layout.eligibility import has_harmful_path
from shared.layout.file_selection import file_contribution, tagged_window_start_ms
from shared.layout.partition_stats import (
    CUBE_TAG,
    EMPTY_STATS,
    IDLE_COMPACTED_TAG,
    UNKNOWN_WINDOW,
    PartitionStats,
    file_depths,
    file_stats,
    stats_of_delete,
)
from shared.layout.stats_sum import PartitionSums
from shared.policy.policy import Policy
from shared.table import Commit, DataFile, PartitionKey, RemovedFile, TableMetadata

REPLACING_OPERATIONS = frozenset(
    {
        "RESTORE",
        "CLONE",
        "REPLACE TABLE",
        "REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE",
        "CREATE OR REPLACE TABLE AS SELECT",
    }
)
"""Operations after which the table is another one: the state is rebuilt rather than carried over."""


@dataclass(frozen=True, slots=True)
class FoldedCommit:
    """Changes of one commit to the partitions; `rebuild_reason`: why it cannot be applied (None: it could).

    `purge_candidates` keeps, per partition, the added files that have deletion vectors, or paths that the policy
    forbids: the input of decisions about purges.
    """

    version: int
    changes: dict[PartitionKey, PartitionStats] = field(default_factory=dict)
    rebuild_reason: str | None = None
    purge_candidates: dict[PartitionKey, list[DataFile]] = field(default_factory=dict)


def fold(commit: Commit, metadata: TableMetadata, policy: Policy, batch: BatchFiles | None = None) -> FoldedCommit:
    """Convert a commit into changes per partition, as states to be added to the partitions' states.

    `metadata` is that before the commit. `batch` knows the files of the commits applied before this one and adds those
    of this one: a file that was added counts once, and one that was removed is not removed again.
    """
    reason = _rebuild_reason(commit, metadata)
    if reason:
        return FoldedCommit(commit.version, rebuild_reason=reason)
    batch = batch or BatchFiles()
    # As Delta replays a commit: first what it removes, then what it adds.
    taken = [(removed, batch.remove(removed)) for removed in commit.removed]
    sums = PartitionSums(policy)
    with_deletes: dict[PartitionKey, list[DataFile]] = {}
    for file in commit.added:
        if file.dv_id is not None or has_harmful_path(file, policy.portable_paths):
            with_deletes.setdefault(file.partition, []).append(file)
        sums.add(file)
        replaced = batch.add(file)
        if replaced is not None:
            sums.of(replaced.partition).subtract(file_contribution(replaced, policy))
    rewritten, full_bytes = rewritten_windows(commit, policy), policy.size_levels.full_bytes
    is_sorted = metadata.sort_key is not None
    has_partial = any(_is_partial(removed) or (is_sorted and not removed.has_bounds) for removed in commit.removed)
    added_by_path = {file.path: file for file in commit.added} if has_partial else {}
    _count_deletes(commit, sums)
    for removed, before in taken:
        if before is PriorState.REMOVED:
            continue
        if isinstance(before, DataFile):
            sums.of(before.partition).subtract(file_contribution(before, policy))
            continue
        known = _completed(removed, added_by_path.get(removed.path))
        if known.size_bytes is None or known.partition is None:
            return FoldedCommit(
                commit.version, rebuild_reason=f"removal of {removed.path} names no size or no partition"
            )
        if is_sorted and not known.has_bounds and known.size_bytes >= full_bytes:
            return FoldedCommit(
                commit.version, rebuild_reason=f"removal of {removed.path} names no bounds, and the table is sorted"
            )
        gone = _removed_stats(known, known.size_bytes, rewritten.get(known.partition), policy)
        sums.of(known.partition).subtract(gone)
    return FoldedCommit(commit.version, sums.stats(), purge_candidates=with_deletes)


def _count_deletes(commit: Commit, sums: PartitionSums) -> None:
    for delete in commit.added_deletes:
        sums.of(delete.partition).add_delete(delete)
    for delete in commit.removed_deletes:
        sums.of(delete.partition).subtract(stats_of_delete(delete))


def _completed(removed: RemovedFile, twin: DataFile | None) -> RemovedFile:
    """Return a removal, completed from the add of the same path in the same commit."""
    if twin is None:
        return removed
    return replace(
        removed,
        size_bytes=twin.size_bytes if removed.size_bytes is None else removed.size_bytes,
        partition=twin.partition if removed.partition is None else removed.partition,
        tags=twin.tags if removed.tags is None else removed.tags,
        key_range=removed.key_range if removed.has_bounds else twin.key_range,
        has_bounds=True,
    )


def _removed_stats(removed: RemovedFile, size_bytes: int, rewritten: set[int] | None, policy: Policy) -> PartitionStats:
    """Return what the removal of a file counted before this batch subtracts from its partition and windows."""
    gone = file_stats(
        policy.size_levels,
        size_bytes,
        has_dv=removed.dv_id is not None,
        deleted_rows=removed.deleted_rows,
        # Without tags it may have been an idle-compacted file, see `PartitionStats.clamped`.
        is_idle_compacted=removed.tags is None or IDLE_COMPACTED_TAG in removed.tags,
        is_cube=CUBE_TAG in (removed.tags or {}),
    )
    depths = file_depths(policy.size_levels, size_bytes, removed.key_range, removed.tags or {})
    gone = replace(gone, depths=depths) if depths else gone
    if policy.time_window_s is None:
        return gone
    inside = (
        replace(EMPTY_STATS, windows=((at, gone.total),)) for at in _possible_windows(removed.tags, rewritten, policy)
    )
    return sum(inside, gone)


def rewritten_windows(commit: Commit, policy: Policy) -> dict[PartitionKey, set[int]]:
    """Return the windows that a rewrite of ours took its files from, by partition: those that all its outputs name.

    Delta's OPTIMIZE, to which a rewrite may fall back, writes no tags; then the partition is unknown.
    """
    found: dict[PartitionKey, set[int | None]] = {}
    if commit.origin is not None and not commit.data_change and policy.time_window_s is not None:
        for file in commit.added:
            found.setdefault(file.partition, set()).add(tagged_window_start_ms(file.tags, policy.time_window_s))
    return {
        partition: {start_ms for start_ms in starts if start_ms is not None}
        for partition, starts in found.items()
        if None not in starts
    }


def _possible_windows(tags: Mapping[str, str] | None, rewritten: set[int] | None, policy: Policy) -> Iterable[int]:
    """Return the windows that a removed file can have lain in: its tag's, the rewrite's, or any."""
    start_ms = tagged_window_start_ms(tags or {}, policy.time_window_s)
    return (start_ms,) if start_ms is not None else rewritten or (UNKNOWN_WINDOW,)


def _rebuild_reason(commit: Commit, metadata: TableMetadata) -> str | None:
    if commit.external:
        return f"commit {commit.version} adds the file {commit.external}, which lies outside of the table"
    if commit.operation in REPLACING_OPERATIONS:
        return f"{commit.operation} replaced the table"
    if commit.metadata is not None and (change := _change_of_layout(commit.metadata, metadata)):
        return change
    if commit.added and not commit.data_change and not commit.removed:
        # Recomputed statistics and row-tracking backfills add files that are live already; they must not count twice.
        return "files were added again without a change of data"
    return None


def _change_of_layout(now: TableMetadata, before: TableMetadata) -> str | None:
    """Return why files count otherwise under new metadata than under that before."""
    if now.table_uuid != before.table_uuid:
        return "the table was replaced by another one"
    if now.partition_columns != before.partition_columns:
        return "the partition columns changed"
    return "the sort key changed" if now.sort_key != before.sort_key else None


def _is_partial(removed: RemovedFile) -> bool:
    return removed.size_bytes is None or removed.partition is None or removed.tags is None
