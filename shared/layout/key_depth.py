"""Clustering depth: how many files' ranges of a key overlap at a point, kept exactly while files come and go.

A file's range runs from the least to the greatest value of its key in the log. The state of a partition holds, for each
bucket of the key, how many more ranges begin in it than end in it. The sum up to a bucket is the number of ranges that
cross its upper end: at these points, and nowhere else, the depth is known, and there it is exact. It never exceeds the
true depth, so it never asks for a sort that finds nothing to do; a range inside one bucket adds nothing.

Buckets are equal parts of the key's values, each a power of two wide. Where there are more than `MAX_BUCKETS`, two
become one. So two states are added at the wider buckets of the two: whatever the order of commits, the state is as of
a count of the live files at its own width.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

MAX_BUCKETS = 64
"""Buckets with different numbers of beginnings and ends, at most: a state takes some 500 bytes."""

KeyRange = tuple[int, int]
"""The least and the greatest value of a key in a file, as whole numbers in the order of the values."""


@dataclass(frozen=True, slots=True)
class KeyDepth:
    """Beginnings less ends by bucket, ascending, without zeros; a bucket is a value divided by two to the `shift`."""

    shift: int = 0
    net: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: "KeyDepth") -> "KeyDepth":
        return _combined(self, other, 1)

    def __sub__(self, other: "KeyDepth") -> "KeyDepth":
        return _combined(self, other, -1)

    @property
    def is_consistent(self) -> bool:
        """False where a range was removed that was never added."""
        return min(self._depths, default=0) >= 0 and sum(count for _, count in self.net) == 0

    @property
    def deepest(self) -> tuple[int, int]:
        """The greatest depth, and a point in the middle of where it is found; 0 and 0 without ranges."""
        depths = self._depths
        depth = max(depths, default=0)
        if depth <= 0:
            return 0, 0
        at = depths.index(depth)
        # The depth is the same at the upper ends of all buckets from this one on, up to the next one of the state.
        first, last = self.net[at][0] + 1, self.net[at + 1][0]
        return depth, (first + last) // 2 << self.shift

    @property
    def _depths(self) -> list[int]:
        return list(accumulate(count for _, count in self.net))

    def at_shift(self, shift: int) -> "KeyDepth":
        """Return the state in wider buckets; a narrower `shift` changes nothing."""
        widened = self
        if shift > self.shift:
            widened = _build(shift, ((bucket >> shift - self.shift, count) for bucket, count in self.net))
        return widened

    def encode(self) -> str:
        """Write the state as whole numbers: shift, first bucket, and for each bucket its distance and its count."""
        first = self.net[0][0] if self.net else 0
        return ",".join(
            map(str, (self.shift, first, *(n for bucket, count in self.net for n in (bucket - first, count))))
        )

    @staticmethod
    def decode(text: str) -> "KeyDepth":
        """Read what `encode` wrote; raises ValueError for anything else."""
        shift, first, *rest = map(int, text.split(","))
        if len(rest) % 2 or shift < 0:
            raise ValueError("a key depth has a shift, a first bucket, and pairs of numbers")
        return KeyDepth(shift, tuple((first + at, count) for at, count in zip(rest[::2], rest[1::2], strict=True)))


NO_DEPTH = KeyDepth()


def depth_of(ranges: Iterable[KeyRange]) -> KeyDepth:
    """Count ranges."""
    return _build(0, (pair for low, high in ranges for pair in ((low, 1), (high, -1))))


def covers(found: KeyRange, point: int) -> bool:
    """Return whether a range has values on both sides of a point: below it, and not below it."""
    low, high = found
    return low < point <= high


def combined_levels(
    mine: tuple[tuple[int, KeyDepth], ...], theirs: tuple[tuple[int, KeyDepth], ...], *, adds: bool
) -> tuple[tuple[int, KeyDepth], ...]:
    """Add or subtract the depths of each sort level; a level without ranges is left out."""
    if not theirs:
        return mine
    left: Mapping[int, KeyDepth] = dict(mine)
    right: Mapping[int, KeyDepth] = dict(theirs)
    sums = (
        (level, _combined(left.get(level, NO_DEPTH), right.get(level, NO_DEPTH), 1 if adds else -1))
        for level in sorted(left.keys() | right.keys())
    )
    return tuple((level, depth) for level, depth in sums if depth.net)


def _combined(one: KeyDepth, other: KeyDepth, sign: int) -> KeyDepth:
    shift = max(one.shift, other.shift)
    mine, theirs = one.at_shift(shift), other.at_shift(shift)
    return _build(shift, (*mine.net, *((bucket, sign * count) for bucket, count in theirs.net)))


def _build(shift: int, counts: Iterable[tuple[int, int]]) -> KeyDepth:
    """Add up counts by bucket, in buckets wide enough that there are not too many."""
    sums: defaultdict[int, int] = defaultdict(int)
    for bucket, count in counts:
        sums[bucket] += count
    while len(net := {bucket: count for bucket, count in sums.items() if count}) > MAX_BUCKETS:
        shift += 1
        sums = defaultdict(int)
        for bucket, count in net.items():
            sums[bucket >> 1] += count
    return KeyDepth(shift, tuple(sorted(net.items())))
