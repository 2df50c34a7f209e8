"""When the size levels of a table are fitted to the files that its writers append, and to which size.

A change of levels has the whole table counted again, so it has to save enough: the sizes that were appended are
replayed under both, and what each rewrites is divided by the least that any rule could rewrite with as many small
files. The promotion rule bounds the rewrites under each of them: a byte that lived under n sets of
levels is rewritten at most n times as often as there are levels.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, cycle, islice
from math import comb
from typing import NamedTuple

from shared.policy.levels import FULL, SMALL_LEVELS, SizeLevels
from shared.policy.policy import MIB, Policy
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
    """Sizes that the newest commits with data changes have appended, oldest first: a bounded window.

    A size is typical if it is the median of both halves: one odd load is not, and a table that is changing has none.
    """

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


MIN_SAVING = Fraction(5, 100)
"""Share of the bytes rewritten that other levels must be predicted to save: less would not show between two days, and
every change reads the table's snapshot."""

EVERY_MS = 86_400_000
"""Time between two considered changes, in milliseconds: a day, so that a table is counted again at most once a day for
it, and a byte meets few sets of levels on its way."""

SHARES = (Fraction(1), Fraction(9, 10))
"""Shares of the typical size that are tried: files of equal size climb best from exactly there, others from below it,
so that a few that are too small do not keep a group under its level."""

OUTPUTS = 3
"""Length of a replay, in targets."""

MAX_COMMITS = 512
"""Maximum length of a replay in commits; six of them, for two halves and two candidates, take about 30 ms a day."""


@dataclass(frozen=True, slots=True)
class LevelFit:
    """The size that a table's levels are fitted to (0: they lie at T / k^i), and what it is learned from.

    checked_ms: when a change was considered last, 0 if never; saving: share of the bytes rewritten that the last
    change is predicted to save.
    """

    typical_file_bytes: int = 0
    checked_ms: int = 0
    saving: Fraction = Fraction(0)
    sizes: AppendedSizes = NO_SIZES

    @property
    def reason(self) -> str:
        """Why a table is counted again with these levels."""
        size = f"{self.typical_file_bytes / MIB:.3g} MiB"
        return f"levels fitted to new files of {size}: {float(self.saving):.0%} less rewriting predicted"

    def after(self, commit: Commit, policy: Policy) -> "LevelFit":
        """Return the fit after a commit, which adds to what is known and changes no levels."""
        sizes = self.sizes.after(commit, policy.size_levels)
        return self if sizes is self.sizes else replace(self, sizes=sizes)

    def refitted(self, policy: Policy, now_ms: int) -> "LevelFit":
        """Return the fit as of now: to another size if there is one, and a change is due, permitted and worth it."""
        is_due = not self.checked_ms or now_ms - self.checked_ms >= EVERY_MS
        if not (is_due and policy.enabled and policy.fits_levels):
            return self
        typical = self.sizes.typical_bytes(policy.min_input_files)
        if not 0 < typical < policy.size_levels.full_bytes or agree(typical, self.typical_file_bytes):
            return self
        candidates = [policy.fitted_to(int(typical * share)) for share in SHARES]
        saving, best = max(
            ((predicted_saving(self.sizes, policy, candidate), candidate) for candidate in candidates),
            key=lambda one: one[0],
        )
        if saving <= MIN_SAVING:
            return replace(self, checked_ms=now_ms)
        return replace(self, typical_file_bytes=best.learned.typical_file_bytes, checked_ms=now_ms, saving=saving)


NOT_FITTED = LevelFit()


def predicted_saving(sizes: AppendedSizes, before: Policy, after: Policy) -> Fraction:
    """Return the share of the bytes rewritten that a policy saves over another one; negative where it adds some.

    The smaller one of both halves of the window: what sizes that vary widely seem to save is often chance.
    """
    return min(_saving(half, before, after) for half in sizes.halves)


def _saving(sizes: AppendedSizes, before: Policy, after: Policy) -> Fraction:
    now, then = (rewriting_over_least(sizes, policy) for policy in (before, after))
    return 1 - then / now if now else Fraction(0)


def rewriting_over_least(sizes: AppendedSizes, policy: Policy) -> Fraction:
    """Return what levels rewrite while the window repeats, as a multiple of the least for as many small files.

    0 where nothing is rewritten.
    """
    climbed = _Climb(policy)
    for appended in islice(cycle(sizes.commits), MAX_COMMITS):
        climbed.append(appended)
        if climbed.bytes_added >= OUTPUTS * policy.target_bytes:
            break
    files_per_output = climbed.files_added * policy.target_bytes // max(climbed.bytes_added, policy.target_bytes)
    least = least_rewrites(max(1, files_per_output), climbed.small_max)
    return Fraction(climbed.bytes_rewritten, climbed.bytes_added) / least


class _Climb:
    """Files of one partition that climb the levels of a policy: sums per level, without a list of files."""

    def __init__(self, policy: Policy) -> None:
        self._levels = policy.size_levels
        self._min_inputs, self._automatic = policy.min_input_files, policy.automatic_levels
        self._counts, self._sizes = [0] * SMALL_LEVELS, [0] * SMALL_LEVELS
        self.bytes_added = self.bytes_rewritten = self.files_added = self.small_max = 0

    def append(self, appended: AppendedFiles) -> None:
        """Add the files of one commit, and merge what the levels permit."""
        self._put(appended.size_bytes, appended.files)
        self.files_added += appended.files
        self.bytes_added += appended.files * appended.size_bytes
        self.small_max = max(self.small_max, sum(self._counts))
        top = self._levels.highest_promotable(self._counts, self._sizes, self._min_inputs, levels=self._automatic)
        if top is not None:
            merged = sum(self._sizes[: top + 1])
            self._counts[: top + 1] = self._sizes[: top + 1] = [0] * (top + 1)
            self.bytes_rewritten += merged
            self._put(merged, 1)

    def _put(self, size_bytes: int, files: int) -> None:
        level = self._levels.level(size_bytes)
        if level < FULL:
            self._counts[level] += files
            self._sizes[level] += files * size_bytes


def least_rewrites(files: int, slots: int) -> Fraction:
    """Return how often each byte of equal files is rewritten at least until they are one, with so many slots for files.

    The last merge takes a file per slot, each built with one slot less than the one before it: merges of depth d take
    C(slots + d - 1, d) files, and each file beyond the depth before is rewritten d times. Slightly too low.
    """
    held, rewritten, depth = 0, 0, 0
    while held < files:
        depth += 1
        more = min(comb(max(2, slots) + depth - 1, depth), files) - held
        held, rewritten = held + more, rewritten + more * depth
    return Fraction(rewritten, files)
