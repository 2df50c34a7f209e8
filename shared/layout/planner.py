"""A plan is a value: which files become which outputs, decided on one snapshot of one partition, before anything runs.

Plans of commits obey the promotion rule (see `file_selection`). A purge takes single files with many deleted rows; an
idle compaction and a full rewrite are requested by a timer or a person, and bounded by the files that they leave alone.

Planning on a plan's own output yields no work, so a job is never followed by another without a commit by others.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from shared.job_payload import COMPACT, RewriteKind
from shared.layout.eligibility import (
    Evaluation,
    Reason,
    evaluate_full,
    evaluate_idle,
    evaluate_layout,
    has_harmful_path,
    is_purgeable,
)
from shared.layout.file_selection import (
    group_by_window,
    has_window_ended,
    output_tags,
    pack_unconditionally,
    select_groups,
    small_files,
    stats_by_window,
)
from shared.layout.levels import SMALL_LEVELS, SizeLevels
from shared.layout.partition_stats import IDLE_COMPACTED_TAG, PartitionStats, file_stats, stats_of_file, stats_of_files
from shared.policy import Policy
from shared.table import DataFile, PartitionKey


class RewriteMode(StrEnum):
    """Mode of a file group as users see it: minor stays below the top level of small files, major does not.

    `full`, `idle` and `purge` are rewrites that a timer or a person requests rather than the levels.
    """

    MINOR = "minor"
    MAJOR = "major"
    FULL = "full"
    IDLE = "idle"
    PURGE = "purge"


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Inputs of one partition that become one output file, which carries `tags` in the log."""

    partition: PartitionKey
    files: tuple[DataFile, ...]
    mode: RewriteMode
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def bytes(self) -> int:
        """Total size of the inputs in bytes."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Plan:
    """The file groups for one partition, with the state they were planned on and the one that is predicted after.

    `action`: kind of the jobs that run such a plan. `is_truncated`: more groups follow from the same state than one
    job may carry.
    """

    action: str
    partition: PartitionKey
    evaluation: Evaluation
    groups: tuple[FileGroup, ...]
    before: PartitionStats
    predicted: PartitionStats
    is_truncated: bool = False

    @property
    def files_removed(self) -> int:
        """Predicted decrease of the number of files."""
        return self.before.files - self.predicted.files

    @property
    def files_replaced(self) -> int:
        """Number of input files over all groups."""
        return sum(len(group.files) for group in self.groups)

    @property
    def bytes(self) -> int:
        """Bytes to read, and at most to write."""
        return sum(group.bytes for group in self.groups)

    @property
    def entropy_removed(self) -> int:
        """Predicted decrease of the total squared shortfall, in bytes^2."""
        return self.before.shortfall - self.predicted.shortfall


def plan(
    partition: PartitionKey, files: Sequence[DataFile], policy: Policy, before: PartitionStats | None = None
) -> Plan:
    """Plan one partition on its live files; the plan of a partition that is not eligible has no groups.

    Without time windows the plan is empty exactly when `evaluate_layout` finds the partition not eligible. With time
    windows the rolling state distinguishes only the newest ones, for which the same holds; here all are known. A caller
    that knows the state passes it as `before`, and may then omit from `files` the full ones without deleted rows.
    """
    size_levels = policy.size_levels
    windows = group_by_window(small_files(files, size_levels), policy)
    by_window = stats_by_window(windows, policy)
    before = stats_of_files(files, size_levels) if before is None else before
    purgeable = [file for file in files if is_purgeable(file, policy)]
    worth = evaluate_layout(replace(before, windows=by_window), policy, len(purgeable))
    merged = [
        tuple(inputs) for small in windows if worth.through_level is not None for inputs in select_groups(small, policy)
    ]
    taken = {file.key for inputs in merged for file in inputs}
    chosen = [(_mode(inputs, size_levels), inputs) for inputs in merged]
    chosen += [(RewriteMode.PURGE, (file,)) for file in purgeable if worth.purges and file.key not in taken]
    groups = [FileGroup(partition, inputs, mode, output_tags(inputs, policy)) for mode, inputs in chosen]
    return _truncate(partition, worth, groups, before, policy)


def plan_idle_compaction(
    partition: PartitionKey,
    files: Sequence[DataFile],
    policy: Policy,
    before: PartitionStats | None = None,
    *,
    ended_by_ms: int | None = None,
) -> Plan:
    """Plan the last merge of an idle partition: its small files at once, whether or not they are promoted.

    Only files without idle-compacted bytes on levels that the policy permits are inputs. The outputs, like every file
    made from them later, carry the tag of idle compaction: so no byte is idle-compacted twice, however often its
    partition becomes idle. With time windows only those that ended by `ended_by_ms` are idle-compacted (None: all).
    """
    size_levels = policy.size_levels
    before = stats_of_files(files, size_levels) if before is None else before
    worth = evaluate_idle(before, policy)
    fresh = [
        file
        for file in (small_files(files, size_levels) if worth.needs_rewrite else ())
        if IDLE_COMPACTED_TAG not in file.tags and size_levels.level(file.size_bytes) < policy.automatic_levels
    ]
    groups = [
        FileGroup(partition, tuple(inputs), RewriteMode.IDLE, {**output_tags(inputs, policy), IDLE_COMPACTED_TAG: "1"})
        for small in group_by_window(fresh, policy)
        if ended_by_ms is None or has_window_ended(small[0], policy, ended_by_ms)
        for inputs in pack_unconditionally(small, policy)
    ]
    return _truncate(partition, worth, groups, before, policy)


def plan_full(partition: PartitionKey, files: Sequence[DataFile], policy: Policy) -> Plan:
    """Plan a full rewrite, which is requested and never follows from a commit: all files but a single well-filled one.

    Small files are merged whether or not they are promoted, and every file with deleted rows, or on a path that the
    policy does not leave it on, is rewritten.
    """
    size_levels = policy.size_levels
    before = stats_of_files(files, size_levels)
    if before.cube_files:
        return _truncate(partition, evaluate_full(before), (), before, policy)
    groups: list[FileGroup] = []
    for small in group_by_window(small_files(files, size_levels), policy):
        packed = pack_unconditionally(small, policy)
        groups += [
            FileGroup(partition, tuple(inputs), RewriteMode.FULL, output_tags(inputs, policy)) for inputs in packed
        ]
    taken = {file.key for group in groups for file in group.files}
    groups += [
        FileGroup(partition, (file,), RewriteMode.FULL, output_tags((file,), policy))
        for file in files
        if (file.dv_id is not None or has_harmful_path(file, policy)) and file.key not in taken
    ]
    worth = Evaluation(Reason.REQUESTED, SMALL_LEVELS - 1) if groups else Evaluation(Reason.NO_SMALL_FILES, None)
    return _truncate(partition, worth, groups, before, policy)


def plan_rewrite(
    kind: RewriteKind,
    partition: PartitionKey,
    files: Sequence[DataFile],
    policy: Policy,
    before: PartitionStats | None = None,
    *,
    ended_by_ms: int | None = None,
) -> Plan:
    """Plan one partition to the extent that is requested; `before` and `ended_by_ms` as in the planners of each."""
    match kind:
        case RewriteKind.LEVELS:
            return plan(partition, files, policy, before)
        case RewriteKind.IDLE:
            return plan_idle_compaction(partition, files, policy, before, ended_by_ms=ended_by_ms)
        case RewriteKind.FULL:  # pragma: no branch - mypy proves that there is no other kind
            return plan_full(partition, files, policy)


def _truncate(
    partition: PartitionKey, evaluation: Evaluation, groups: Sequence[FileGroup], before: PartitionStats, policy: Policy
) -> Plan:
    """Cut at a group boundary what exceeds the bytes of one job; the first group always stays."""
    total, kept = 0, 0
    for group in groups:
        total += group.bytes
        if kept and total > policy.max_bytes_per_job:
            break
        kept += 1
    chosen = tuple(groups[:kept])
    predicted = _predict(before, chosen, policy.size_levels)
    return Plan(COMPACT, partition, evaluation, chosen, before, predicted, is_truncated=kept < len(groups))


def _mode(inputs: Sequence[DataFile], size_levels: SizeLevels) -> RewriteMode:
    top = max(size_levels.level(file.size_bytes) for file in inputs)
    return RewriteMode.MAJOR if top >= SMALL_LEVELS - 1 else RewriteMode.MINOR


def _predict(before: PartitionStats, groups: Iterable[FileGroup], size_levels: SizeLevels) -> PartitionStats:
    state = before
    for group in groups:
        for file in group.files:
            state -= stats_of_file(file, size_levels)
        state += file_stats(
            size_levels, math.ceil(group.bytes * size_levels.shrink), is_idle_compacted=IDLE_COMPACTED_TAG in group.tags
        )
    return state
