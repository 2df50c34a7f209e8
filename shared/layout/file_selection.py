"""Grouping: which small files of a partition are rewritten together, so that every group obeys the promotion rule.

Small files are taken in ascending size. The longest prefix that the promotion rule permits is chosen (smallest first
removes the most files per byte, and lets several levels carry in one rewrite); below the target it is one group, at
the target or more it is covered by several. Then it is chosen again among what is left, until nothing qualifies. Of
what is left then, the smallest files go along with outputs that reach the target, as far as these stay near to it: they
become full at once, instead of one level after another.

Packing: which files become which outputs, replacing as few bytes as possible.

Below the target in all, the chosen files become one group. At the target or more it is bin covering: as many outputs
of at least T as possible, by first-fit-decreasing modified for covering (Assmann, Johnson, Kleitman, Leung 1984).
Every input is smaller than T, so the overshoot of an output is bounded by its last file.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from shared.layout.partition_stats import IDLE_COMPACTED_TAG, PartitionStats, stats_of_file, stats_of_files
from shared.policy.levels import FULL, SMALL_LEVELS, SizeLevels
from shared.policy.policy import Policy
from shared.table import DataFile
from shared.whole_numbers import whole_number

GENERATED_TAG = "lakewright.generated-ms"
"""AddFile tag of a rewritten file: the start of its window; its modification time is the rewrite's."""

MAX_LEFTOVERS = Fraction(1, 4)
"""Share of the target by which an output may exceed it with leftovers: in replays twice as much took few more along."""


def small_files(files: Iterable[DataFile], size_levels: SizeLevels) -> list[DataFile]:
    """Return the files below the full size, ascending by size."""
    small = [file for file in files if size_levels.level(file.size_bytes) < FULL]
    small.sort(key=lambda file: (file.size_bytes, file.path))
    return small


def generated_ms(file: DataFile) -> int:
    """Return the event time of a file's rows: its tag if it has one, otherwise when it was written."""
    tagged_ms = _tagged_ms(file.tags)
    return file.modified_ms if tagged_ms is None else tagged_ms


def _tagged_ms(tags: Mapping[str, str]) -> int | None:
    return whole_number(tags.get(GENERATED_TAG, ""))


def tagged_window_start_ms(tags: Mapping[str, str], window_s: int | None) -> int | None:
    """Return the start in ms of the window that tags name; None where they name none, or the table has none."""
    tagged_ms = _tagged_ms(tags)
    return None if tagged_ms is None or window_s is None else tagged_ms // (window_s * 1000) * (window_s * 1000)


def window_start_ms(file: DataFile, window_s: int | None) -> int | None:
    """Return the start in ms of the window that a file belongs to, None where the table has no windows."""
    return None if window_s is None else generated_ms(file) // (window_s * 1000) * (window_s * 1000)


def has_window_ended(file: DataFile, window_s: int | None, by_ms: int) -> bool:
    """Return whether the window of a file was over by then; always where there are none."""
    start_ms = window_start_ms(file, window_s)
    return start_ms is None or start_ms + (window_s or 0) * 1000 <= by_ms


def file_contribution(file: DataFile, policy: Policy) -> PartitionStats:
    """Return what one live file adds to the state of its partition and of its window."""
    return stats_of_file(file, policy.size_levels).in_window(window_start_ms(file, policy.time_window_s))


def group_by_window(small: Sequence[DataFile], window_s: int | None) -> list[list[DataFile]]:
    """Return the small files by window, oldest first, each in the order given; one window where there are none."""
    if window_s is None:
        return [list(small)]
    found: defaultdict[int, list[DataFile]] = defaultdict(list)
    for file in small:
        found[window_start_ms(file, window_s) or 0].append(file)
    return [files for _, files in sorted(found.items())]


def stats_by_window(
    windows: Iterable[Sequence[DataFile]], size_levels: SizeLevels, window_s: int | None
) -> tuple[tuple[int, PartitionStats], ...]:
    """Return the start in ms and the state of each window of small files; nothing where the table has no windows."""
    if window_s is None:
        return ()
    return tuple((window_start_ms(inside[0], window_s) or 0, stats_of_files(inside, size_levels)) for inside in windows)


def output_tags(inputs: Sequence[DataFile], window_s: int | None) -> dict[str, str]:
    """Return the AddFile tags of the output of these files: idle compaction is inherited, and so is their window."""
    tags = {IDLE_COMPACTED_TAG: "1"} if any(IDLE_COMPACTED_TAG in file.tags for file in inputs) else {}
    start_ms = window_start_ms(inputs[0], window_s)
    return tags if start_ms is None else tags | {GENERATED_TAG: str(start_ms)}


def select_groups(small: list[DataFile], policy: Policy) -> list[list[DataFile]]:
    """Choose groups until no prefix of what is left is permitted, then add leftovers; `small` ascends by size."""
    size_levels, min_inputs, levels = policy.size_levels, policy.min_input_files, policy.automatic_levels
    groups: list[list[DataFile]] = []
    while True:
        prefix = _permitted_prefix(small, size_levels, min_inputs, levels)
        if not prefix:
            left = [file for file in small if size_levels.level(file.size_bytes) < levels]
            return _with_leftovers(groups, left, size_levels.cover_bytes)
        chosen, rest = small[:prefix], small[prefix:]
        if sum(file.size_bytes for file in chosen) < size_levels.cover_bytes:
            groups.append(chosen)
            small = rest
            continue
        covered, left = cover_files(chosen, size_levels.cover_bytes)
        groups += covered
        small = left + rest


def _with_leftovers(
    groups: Iterable[list[DataFile]], left: Sequence[DataFile], cover_bytes: int
) -> list[list[DataFile]]:
    """Return the groups, those that reach the target with files that are left; `left` ascends by size.

    The promotion rule holds, as such an output is full, and no prefix of what stays is permitted that was not before.
    """
    most_bytes = math.floor(cover_bytes * (1 + MAX_LEFTOVERS))
    filled, at = [], 0
    for group in groups:
        total, begins = sum(file.size_bytes for file in group), at
        while total >= cover_bytes and at < len(left) and total + left[at].size_bytes <= most_bytes:
            total += left[at].size_bytes
            at += 1
        filled.append([*group, *left[begins:at]])
    return filled


def pack_unconditionally(small: Sequence[DataFile], cover_bytes: int) -> list[list[DataFile]]:
    """Cover as many outputs as can be, and merge what is left if it is more than one file; no promotion is asked."""
    covered, left = cover_files(small, cover_bytes)
    return [*covered, left] if len(left) > 1 else covered


def _permitted_prefix(small: Sequence[DataFile], size_levels: SizeLevels, min_inputs: int, levels: int) -> int:
    """Return the length of the longest permitted prefix of the first levels; it ends at the end of a level."""
    counts, sizes = [0] * SMALL_LEVELS, [0] * SMALL_LEVELS
    for file in small:
        level = size_levels.level(file.size_bytes)
        counts[level] += 1
        sizes[level] += file.size_bytes
    highest = size_levels.highest_promotable(counts, sizes, min_inputs, levels=levels)
    return 0 if highest is None else sum(counts[: highest + 1])


def cover_files(files: Sequence[DataFile], target_bytes: int) -> tuple[list[list[DataFile]], list[DataFile]]:
    """Cover outputs of at least `target_bytes`; return the groups and, ascending by size, what is left."""
    bins, left = cover([file.size_bytes for file in files], target_bytes)
    return [[files[index] for index in sorted(indices)] for indices in bins], [files[index] for index in left]


def cover(sizes: Sequence[int], target_bytes: int) -> tuple[list[list[int]], list[int]]:
    """Cover bins of at least `target_bytes`: return the bins and what is left, both as indices into `sizes`.

    `sizes` must ascend and each must lie below the target. Each bin takes the largest file left, then again and again
    the largest that keeps it below the target, and is closed by the one that overshoots least. What is left sums to
    less than the target.
    """
    left = list(range(len(sizes)))
    keys = list(sizes)
    remaining = sum(keys)
    bins: list[list[int]] = []
    while remaining >= target_bytes:
        taken: list[int] = []
        total = 0
        while total < target_bytes:
            # First index whose file reaches the target; the one before it is the largest that stays below.
            closing = bisect_left(keys, target_bytes - total)
            at = closing if closing == 0 or _closes_exactly(keys, closing, target_bytes - total) else closing - 1
            total += keys.pop(at)
            taken.append(left.pop(at))
        bins.append(taken)
        remaining -= total
    return bins, left


def _closes_exactly(keys: Sequence[int], at: int, missing: int) -> bool:
    return at < len(keys) and keys[at] == missing
