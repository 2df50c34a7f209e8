"""Sorting again: where the ranges of too many full files overlap, these files become files with disjoint ranges.

Files have a sort level: how often their bytes were sorted again since they became full. Where more than `max-depth`
files of one level overlap at a point of the key, they are sorted into files of the next level, together with all files
of lower levels there, which are the smallest part of the work. So

- each byte is sorted again at most `SORT_LEVELS` times: a sort raises its level, and files of the last are left alone;
- where nothing is left to do, at most `max-depth` files of each level below the last overlap at a point that the state
  knows (`key_depth`): with L levels in use the depth there is at most L * max-depth.

Below the full size files belong to compaction. Its groups that reach the full size are sorted without extra work,
because their rows are encoded anyway, and all of one plan together, so that their outputs are disjoint.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shared.jobs.payload import SORT
from shared.layout.eligibility import DecisionReason, Evaluation
from shared.layout.file_selection import output_tags
from shared.layout.key_depth import covers
from shared.layout.partition_stats import (
    SORT_LEVEL_TAG,
    SORT_LEVELS,
    PartitionStats,
    sort_level,
    stats_of_files,
)
from shared.layout.planner import FileGroup, Plan, RewriteMode, in_sort_order, predict
from shared.policy.levels import FULL
from shared.policy.policy import Policy
from shared.table import DataFile, PartitionKey


class SortReason(DecisionReason):
    """Why the files of a partition are, or are not, sorted again."""

    TOO_DEEP = "too_deep", "More files of one sort level overlap at a point of the key than `max-depth` allows."
    WITHIN_DEPTH = (
        "within_depth",
        "No more files of one sort level overlap at any known point than `max-depth` allows.",
        "pruned_by_levels",
    )
    NO_SORT_ORDER = (
        "no_sort_order",
        "The table has no sort order: neither `sort-by` nor `zorder-by` is set.",
        "pruned_by_levels",
    )
    CURVE_OF_OTHERS = (
        "curve_of_others",
        "The partition has files of a Z-cube of another engine; they are left as they are.",
        "refused",
    )


@dataclass(frozen=True, slots=True)
class Overlap:
    """The lowest sort level with too many files at a point, the point, and how many."""

    level: int
    point: int
    files: int


def find_overlap(state: PartitionStats, policy: Policy) -> Overlap | None:
    """Return where files have to be sorted again, None where the depth is within the bound."""
    for level, depth in state.depths:
        files, point = depth.deepest
        if level < SORT_LEVELS and files > policy.max_depth:
            return Overlap(level, point, files)
    return None


def evaluate_sort(state: PartitionStats, policy: Policy) -> SortReason:
    """Return whether files of a partition in this state are sorted again, as a reason."""
    if policy.sort_order is None:
        return SortReason.NO_SORT_ORDER
    if state.cube_files:
        return SortReason.CURVE_OF_OTHERS
    return SortReason.WITHIN_DEPTH if find_overlap(state, policy) is None else SortReason.TOO_DEEP


def plan_sort(partition: PartitionKey, files: Sequence[DataFile], policy: Policy) -> Plan:
    """Plan the sorts of one partition; the plan has groups exactly where the state of these files is too deep."""
    levels = policy.size_levels
    before = stats_of_files(files, levels)
    reason = evaluate_sort(before, policy)
    groups: list[FileGroup] = []
    left, state = [file for file in files if levels.level(file.size_bytes) >= FULL], before
    spent = 0
    is_truncated = False
    while reason is SortReason.TOO_DEEP and (overlap := find_overlap(state, policy)) is not None:
        group = _group(partition, _inputs(left, overlap, policy), overlap, policy)
        spent += group.bytes
        if groups and spent > policy.max_bytes_per_job:
            is_truncated = True
            break
        groups.append(group)
        taken = {file.key for file in group.files}
        left = [file for file in left if file.key not in taken]
        state = stats_of_files(left, levels)
    worth = Evaluation(reason, None)
    return Plan(SORT, partition, worth, tuple(groups), before, predict(before, groups, levels), is_truncated)


def _inputs(full: Iterable[DataFile], overlap: Overlap, policy: Policy) -> list[DataFile]:
    """Return the files to sort at a point: of the level in excess and below it, as far as one job may take them.

    Of the level itself there are always more than `max-depth`, so that a level is as much work as the bound says.
    """
    there = [
        file
        for file in full
        if file.key_range is not None
        and covers(file.key_range, overlap.point)
        and sort_level(file.tags) <= overlap.level
    ]
    there.sort(key=lambda file: (-sort_level(file.tags), file.size_bytes, file.path))
    total, kept = 0, 0
    for file in there:
        total += file.size_bytes
        if kept > policy.max_depth and total > policy.max_bytes_per_job:
            break
        kept += 1
    return there[:kept]


def _group(partition: PartitionKey, inputs: Sequence[DataFile], overlap: Overlap, policy: Policy) -> FileGroup:
    tags = {**output_tags(inputs, policy.time_window_s), SORT_LEVEL_TAG: str(overlap.level + 1)}
    return in_sort_order(FileGroup(partition, tuple(inputs), RewriteMode.SORT, tags), policy)
