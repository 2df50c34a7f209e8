"""Packing: which files become which outputs, replacing as few bytes as possible.

Below the target in all, the chosen files become one group. At the target or more it is bin covering: as many outputs
of at least T as possible, by first-fit-decreasing modified for covering (Assmann, Johnson, Kleitman, Leung 1984).
Every input is smaller than T, so the overshoot of an output is bounded by its last file.
"""

from bisect import bisect_left
from collections.abc import Sequence

from shared.table import DataFile


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
