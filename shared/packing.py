"""Packing: which files become which outputs, replacing as few bytes as possible.

Below the target in all, the chosen files become one group. At the target or more it is bin covering: as many outputs
of at least T as possible, by first-fit-decreasing modified for covering (Assmann, Johnson, Kleitman, Leung 1984).
Every input is smaller than T, so the overshoot of an output is bounded by its last file.

Where the order of files matters, outputs are runs of neighbours and the best of all ways to break the row is taken,
as Knuth and Plass break lines (Breaking Paragraphs into Lines, 1981).
"""

from bisect import bisect_left
from collections.abc import Sequence


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


Badness = tuple[int, int]
"""What a way to break the row costs, first things first: squared shortfall of the files left, squared overshoot."""


def cover_in_order(sizes: Sequence[int], target_bytes: int, limit_bytes: int) -> tuple[list[range], Badness]:
    """Break a row of files into runs of at least the target and below the limit; return the runs and their badness.

    A file in no run stays as it is: its badness is (T - size)^2, that of a run (sum - T)^2, the former counting
    before any of the latter. The optimum is exact. Each size must lie below the target; only runs below the limit
    are tried, which keeps the time near linear.
    """
    count = len(sizes)
    best: list[Badness] = [(0, 0)] * (count + 1)
    stops = [0] * count
    for start in range(count - 1, -1, -1):
        kept, over = best[start + 1]
        best[start], stops[start] = (kept + (target_bytes - sizes[start]) ** 2, over), start
        total = 0
        for stop in range(start + 1, count + 1):
            total += sizes[stop - 1]
            if total >= limit_bytes:
                break
            if total < target_bytes:
                continue
            kept, over = best[stop]
            badness = (kept, over + (total - target_bytes) ** 2)
            if badness < best[start]:
                best[start], stops[start] = badness, stop
    runs: list[range] = []
    start = 0
    while start < count:
        stop = stops[start]
        if stop > start:
            runs.append(range(start, stop))
        start = max(stop, start + 1)
    return runs, best[0]


def _closes_exactly(keys: Sequence[int], at: int, missing: int) -> bool:
    return at < len(keys) and keys[at] == missing
