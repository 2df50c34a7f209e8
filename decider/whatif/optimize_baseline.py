"""Rewrites of other tools for the same commits, computed by their own rules: baselines of comparisons."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

Added = Mapping[str, Sequence[int]]
"""One commit: partition to the sizes in bytes of the files it adds."""


def optimize_after_each_commit(commits: Iterable[Added], *, target_bytes: int) -> int:
    """Return the bytes that Delta's OPTIMIZE rewrites when it runs after every commit on the partitions it touched.

    Delta's rule (OptimizeExecutor, DeltaSQLConf): files below the target in ascending size, next-fit into bins of at
    most the target, bins of one file are left alone. Outputs are assumed to be as large as their inputs.
    """
    live: dict[str, list[int]] = defaultdict(list)
    rewritten = 0
    for commit in commits:
        for partition, sizes in commit.items():
            live[partition].extend(sizes)
            kept = [size for size in live[partition] if size >= target_bytes]
            for packed in next_fit(sorted(size for size in live[partition] if size < target_bytes), target_bytes):
                kept.append(sum(packed))
                rewritten += sum(packed) if len(packed) > 1 else 0
            live[partition] = kept
    return rewritten


def next_fit(ascending: Sequence[int], limit_bytes: int) -> list[list[int]]:
    """Pack ascending sizes in their order, opening a bin when the next one would exceed the limit, as Delta does."""
    bins: list[list[int]] = []
    total = 0
    for size in ascending:
        if not bins or total + size > limit_bytes:
            bins.append([])
            total = 0
        bins[-1].append(size)
        total += size
    return bins
