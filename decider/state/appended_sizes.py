"""Sizes of the files that a table's writers append: a bounded window over its newest commits.

A size is typical if it is the median of both halves of the window: one odd load is not, and a table that is changing
has none. What leaves the window is forgotten.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from shared.policy.levels import SizeLevels
from shared.table import Commit

WINDOW_COMMITS = 64
"""Commits that are remembered, in less than a kilobyte of a table's state: the median of files whose sizes double and
halve at random is then known within 10%."""

MIN_COMMITS = 32
"""Commits without which no size is typical: two halves of 16."""

AGREEMENT = Fraction(5, 4)
"""Factor within which two sizes are the same but for chance: the medians of both halves, and the typical size and the
one that the levels are fitted to. While a table changes its sizes tenfold its halves never agree, so that its levels
change once and not on the way."""


class AppendedFiles(NamedTuple):
    """The small files that one commit appended: their median size by bytes, and their number in each partition."""

    size_bytes: int
    files: int

    def climbing_bytes(self, min_inputs: int) -> int:
        """Return the size in bytes from which they climb: as many as a merge takes are merged at once, into one."""
        return self.size_bytes * self.files if self.files >= min_inputs else self.size_bytes


@dataclass(frozen=True, slots=True)
class AppendedSizes:
    """Sizes that the newest commits with data changes have appended, oldest first."""

    commits: tuple[AppendedFiles, ...] = ()

    def after(self, commit: Commit, size_levels: SizeLevels) -> "AppendedSizes":
        """Return the window after a commit; rewrites and commits without small files change nothing."""
        if commit.origin is not None or not commit.data_change:
            return self
        small = [file for file in commit.added if file.size_bytes < size_levels.full_bytes]
        if not small:
            return self
        partitions = len({file.partition for file in small})
        size_bytes = _median_of_bytes(file.size_bytes for file in small)
        appended = AppendedFiles(size_bytes, -(-len(small) // partitions))
        return AppendedSizes((*self.commits, appended)[-WINDOW_COMMITS:])

    def typical_bytes(self, min_inputs: int) -> int:
        """Return the size in bytes that files typically climb from; 0 where no size is typical."""
        if len(self.commits) < MIN_COMMITS:
            return 0
        older, newer = (_median([one.climbing_bytes(min_inputs) for one in half.commits]) for half in self.halves)
        # Once the older half has come round to another size, all commits of the newer one have it.
        return newer if agree(older, newer) else 0

    @property
    def halves(self) -> tuple["AppendedSizes", "AppendedSizes"]:
        """The older and the newer half, so that a conclusion can be required of both."""
        middle = len(self.commits) // 2
        return AppendedSizes(self.commits[:middle]), AppendedSizes(self.commits[middle:])


NO_SIZES = AppendedSizes()


def agree(one_bytes: int, other_bytes: int) -> bool:
    """Return whether two sizes are the same but for chance."""
    return max(one_bytes, other_bytes) <= min(one_bytes, other_bytes) * AGREEMENT


def _median(sizes: Sequence[int]) -> int:
    """Return the lower median: rather too small, because files that fall short of a bound climb once more."""
    return sorted(sizes)[(len(sizes) - 1) // 2]


def _median_of_bytes(sizes_bytes: Iterable[int]) -> int:
    """Return the smallest size such that files up to it hold half of the bytes: bytes are rewritten, not files."""
    ascending = sorted(sizes_bytes)
    sums = list(accumulate(ascending))
    return ascending[bisect_left(sums, -(-sums[-1] // 2))]
