"""A plan is a value: which files become which outputs, decided on one snapshot of one partition, before anything runs.

Plans of commits obey the promotion rule (see `file_selection`). A purge takes single files with many deleted rows; an
idle compaction and a full rewrite are requested by a timer or a person, and bounded by the files that they leave alone.

Planning on a plan's own output yields no work, so a job is never followed by another without a commit by others.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from shared.jobs.payload import COMPACT, RewriteKind
from shared.layout.eligibility import (
    Evaluation,
    Reason,
    evaluate_full,
    evaluate_idle,
    evaluate_layout,
    has_harmful_path,
    is_purgeable,
)
from shared.layout.file_order import promoted_runs, runs_to_pack, time_tags
from shared.layout.file_selection import (
    group_by_window,
    has_window_ended,
    output_tags,
    pack_unconditionally,
    select_groups,
    small_files,
    stats_by_window,
)
from shared.layout.partition_stats import (
    IDLE_COMPACTED_TAG,
    SORT_LEVEL_TAG,
    PartitionStats,
    file_stats,
    sort_level,
    stats_of_file,
    stats_of_files,
)
from shared.policy.levels import SMALL_LEVELS, SizeLevels
from shared.policy.policy import Policy
from shared.policy.row_order import INPUT_ORDER, RowOrder
from shared.table import DataFile, PartitionKey

MAX_SORTED_OUTPUTS = 16
"""Outputs of one sort by compaction: it is one Spark job with a shuffle, and what fails in it is written again."""


class RewriteMode(StrEnum):
    """Mode of a file group as users see it: minor stays below the top level of small files, major does not.

    `full`, `idle` and `purge` are rewrites that a timer or a person requests rather than the levels. `sort` makes full
    files of full files, with ranges that do not overlap.
    """

    MINOR = "minor"
    MAJOR = "major"
    FULL = "full"
    IDLE = "idle"
    PURGE = "purge"
    SORT = "sort"


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Inputs of one partition that become one output file, or several if `order` says so; they carry `tags` in the log.

    `order`: of the rows; None: any.
    """

    partition: PartitionKey
    files: tuple[DataFile, ...]
    mode: RewriteMode
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    order: RowOrder | None = None

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
    that knows the state passes it as `before`, and may then omit from `files` the full ones without deleted rows,
    unless the table keeps the order of time.
    """
    size_levels, window_s = policy.size_levels, policy.time_window_s
    windows = group_by_window(small_files(files, size_levels), window_s)
    by_window = stats_by_window(windows, size_levels, window_s)
    before = stats_of_files(files, size_levels) if before is None else before
    purgeable = [file for file in files if is_purgeable(file, policy)]
    worth = evaluate_layout(replace(before, windows=by_window), policy, len(purgeable))
    merged = _promoted(files, windows, policy) if worth.through_level is not None else []
    taken = {file.key for inputs in merged for file in inputs}
    groups = [_group(partition, inputs, _mode(inputs, size_levels), policy) for inputs in merged]
    groups = _full_ones_sorted(groups, policy)
    groups += [
        _group(partition, (file,), RewriteMode.PURGE, policy)
        for file in purgeable
        if worth.purges and file.key not in taken
    ]
    if worth.needs_rewrite and not groups:
        worth = Evaluation(Reason.NO_NEIGHBORS, None)
    return _truncate(partition, worth, groups, before, policy)


def _promoted(files: Sequence[DataFile], windows: Iterable[list[DataFile]], policy: Policy) -> list[list[DataFile]]:
    """Return the inputs of each merge that the promotion rule permits; `windows`: the small files by window."""
    if policy.is_ordered:
        return promoted_runs(files, policy)
    return [inputs for small in windows for inputs in select_groups(small, policy)]


def _packed(files: Sequence[DataFile], policy: Policy, may_merge: Callable[[DataFile], bool]) -> list[list[DataFile]]:
    """Return the inputs of each merge of these files, whether or not they are promoted."""
    size_levels, window_s = policy.size_levels, policy.time_window_s
    if policy.is_ordered:
        return runs_to_pack(files, size_levels, window_s, may_merge)
    windows = group_by_window([file for file in small_files(files, size_levels) if may_merge(file)], window_s)
    return [inputs for window in windows for inputs in pack_unconditionally(window, size_levels.cover_bytes)]


def _group(partition: PartitionKey, inputs: Sequence[DataFile], mode: RewriteMode, policy: Policy) -> FileGroup:
    tags, order = output_tags(inputs, policy.time_window_s), None
    if policy.is_ordered:
        tags, order = tags | time_tags(inputs), INPUT_ORDER
    elif policy.sort_order is not None:
        level = max(sort_level(file.tags) for file in inputs)
        tags = tags | {SORT_LEVEL_TAG: str(level)} if level else tags
        order = INPUT_ORDER if len(inputs) == 1 else None
    return FileGroup(partition, tuple(inputs), mode, tags, order)


def in_sort_order(group: FileGroup, policy: Policy) -> FileGroup:
    """Return a group with its rows in the table's sort order, split into as many files as reach the target.

    They are never more than the inputs.
    """
    order = policy.sort_order
    predicted = math.floor(group.bytes * policy.size_levels.full_shrink)
    outputs = max(1, min(predicted // policy.target_bytes, len(group.files)))
    return group if order is None else replace(group, order=replace(order, outputs=outputs))


def _full_ones_sorted(groups: Sequence[FileGroup], policy: Policy) -> list[FileGroup]:
    """Return the groups with the rows of full outputs in the table's sort order; that is no extra work.

    Those of one plan become one group, as far as `MAX_SORTED_OUTPUTS` allows, because the ranges of the outputs of one
    group are disjoint.
    """
    if policy.sort_order is None:
        return list(groups)
    full_bytes = policy.size_levels.full_bytes / policy.size_levels.full_shrink
    most_bytes = min(policy.max_bytes_per_job, MAX_SORTED_OUTPUTS * policy.target_bytes)
    kept = [group for group in groups if len(group.files) == 1 or group.bytes < full_bytes]
    joined: list[FileGroup] = []
    for group in groups:
        if len(group.files) == 1 or group.bytes < full_bytes:
            continue
        last = joined[-1] if joined else None
        if last is None or last.tags != group.tags or last.bytes + group.bytes > most_bytes:
            joined.append(group)
        else:
            joined[-1] = replace(last, files=last.files + group.files)
    return [in_sort_order(group, policy) for group in joined] + kept


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
    size_levels, window_s = policy.size_levels, policy.time_window_s
    before = stats_of_files(files, size_levels) if before is None else before
    worth = evaluate_idle(before, policy)

    def is_input(file: DataFile) -> bool:
        is_fresh = IDLE_COMPACTED_TAG not in file.tags
        is_permitted = size_levels.level(file.size_bytes) < policy.automatic_levels
        return is_fresh and is_permitted and (ended_by_ms is None or has_window_ended(file, window_s, ended_by_ms))

    merged = _packed(files, policy, is_input) if worth.needs_rewrite else []
    groups = [_group(partition, inputs, RewriteMode.IDLE, policy) for inputs in merged]
    groups = [replace(group, tags={**group.tags, IDLE_COMPACTED_TAG: "1"}) for group in groups]
    groups = _full_ones_sorted(groups, policy)
    if worth.needs_rewrite and not groups and policy.is_ordered:
        worth = Evaluation(Reason.NO_NEIGHBORS, None)
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
    merged = _packed(files, policy, lambda file: size_levels.level(file.size_bytes) < SMALL_LEVELS)
    taken = {file.key for inputs in merged for file in inputs}
    alone = (file for file in files if file.dv_id is not None or has_harmful_path(file, policy.portable_paths))
    merged += [[file] for file in alone if file.key not in taken]
    groups = _full_ones_sorted([_group(partition, inputs, RewriteMode.FULL, policy) for inputs in merged], policy)
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
    predicted = predict(before, chosen, policy.size_levels)
    return Plan(COMPACT, partition, evaluation, chosen, before, predicted, is_truncated=kept < len(groups))


def _mode(inputs: Sequence[DataFile], size_levels: SizeLevels) -> RewriteMode:
    top = max(size_levels.level(file.size_bytes) for file in inputs)
    return RewriteMode.MAJOR if top >= SMALL_LEVELS - 1 else RewriteMode.MINOR


def predict(before: PartitionStats, groups: Iterable[FileGroup], size_levels: SizeLevels) -> PartitionStats:
    """Return the state after these groups; outputs of one group are equally large, and their key ranges unknown."""
    state = before
    for group in groups:
        for file in group.files:
            state -= stats_of_file(file, size_levels)
        outputs = 1 if group.order is None else group.order.outputs
        size_bytes = -(-size_levels.predicted_bytes(group.bytes) // outputs)
        for _ in range(outputs):
            state += file_stats(size_levels, size_bytes, is_idle_compacted=IDLE_COMPACTED_TAG in group.tags)
    return state
