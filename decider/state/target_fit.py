"""The target size of a table that leaves it to Lakewright (`target-file-size=auto`), and when it changes.

Larger files cost readers less, because there are fewer to open, and writers more, because bytes climb more levels; and
below some number of files readers cannot share the work. So the target T is the smallest of three:

- B / 128, for B bytes of the table once it is merged: as many files as its readers' tasks;
- where the next byte of T costs rewriting what it saves readers: R o B ln k / A, for R reads of a whole table and A
  bytes added per week, o bytes rewritten for the cost of opening a file, and the fan-in k;
- 1 GiB; but 32 MiB at least, and a power of two.

A change has the table counted again, and a larger target has full files rewritten once. So there is one a week at most,
by a factor of two at least, and to a larger target only if readers get that back within a month.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from decider.state.commit_pace import DAY_MS
from decider.state.table_summary import TableSummary
from shared.policy.policy import GIB, MIB, Policy

LEAST_TARGET, GREATEST_TARGET = 32 * MIB, GIB
"""Bounds of a chosen target in bytes."""

FILES = 128
"""Files that a table keeps where its readers' tasks share them: as many cores as a small cluster has."""

OPEN_BYTES = 5 * MIB // 2
"""Bytes that can be rewritten for the cost of opening one more file: 0.05 core-seconds at 20 per GiB, as what-if has
them."""

WEEK_MS = 7 * DAY_MS
"""Time between two changes, in milliseconds: reads and additions are means over a week."""

ASSUMED_READS = 7 * 24
"""Reads per week of a table of which none were reported, as the order of jobs assumes them."""

PAYS_BACK_WEEKS = 4
"""Weeks within which readers get back what a larger target has rewritten."""

STEP = 2
"""Factor by which a target changes at least: it is a power of two, so the wanted one has to move by half of that."""

CHANGES_KEPT = 8
"""Changes of a table that its state remembers, for people to see."""


@dataclass(frozen=True, slots=True)
class TargetBasis:
    """Basis of a choice: bytes of the table once it is merged, bytes added per week, and reads per week.

    mean_file_bytes: mean size of its files, which the choice is judged by later.
    """

    merged_bytes: int
    weekly_bytes: int
    weekly_reads: int
    mean_file_bytes: int = 0

    @staticmethod
    def of(table: TableSummary, full_shrink: Fraction, daily_bytes: int, weekly_reads: int) -> "TargetBasis":
        """Take what is known of a table; without reported reads, those that the order of jobs assumes."""
        merged_bytes, mean_bytes = int(table.bytes * full_shrink), table.bytes // max(1, table.files)
        return TargetBasis(merged_bytes, 7 * daily_bytes, weekly_reads or ASSUMED_READS, mean_bytes)

    def wanted_bytes(self, fan_in: int) -> int:
        """Return the best target in bytes between the bounds, for a table to which something is added."""
        by_reads = int(self._opens_bytes * _natural_log(fan_in) / self.weekly_bytes)
        return max(LEAST_TARGET, min(self.merged_bytes // FILES, by_reads, GREATEST_TARGET))

    def pays_back(self, before_bytes: int, after_bytes: int, fan_in: int) -> bool:
        """Return whether readers save in time what a larger target has rewritten, once and for what is added."""
        saved = self._opens_bytes * (Fraction(1, before_bytes) - Fraction(1, after_bytes))
        more_levels = (_natural_log(after_bytes) - _natural_log(before_bytes)) / _natural_log(fan_in)
        return PAYS_BACK_WEEKS * (saved - self.weekly_bytes * more_levels) >= self.merged_bytes

    @property
    def _opens_bytes(self) -> int:
        return self.weekly_reads * OPEN_BYTES * self.merged_bytes


@dataclass(frozen=True, slots=True)
class TargetChange:
    """A change of a target, in bytes, at a time in milliseconds since 1970, and what it was decided by.

    judged_bytes: mean size of the table's files a week later or more; 0 until then.
    """

    at_ms: int
    before_bytes: int
    after_bytes: int
    basis: TargetBasis
    judged_bytes: int = 0

    def __str__(self) -> str:
        return (
            f"target of {self.after_bytes // MIB} MiB instead of {self.before_bytes / MIB:.3g} MiB: the table has "
            f"{self.basis.merged_bytes / GIB:.3g} GiB once merged, gets {self.basis.weekly_bytes / GIB:.3g} GiB and "
            f"{self.basis.weekly_reads} reads a week"
        )


@dataclass(frozen=True, slots=True)
class TargetFit:
    """The newest changes of a chosen target, oldest first; checked_ms: when one was considered, 0 if never."""

    checked_ms: int = 0
    changes: tuple[TargetChange, ...] = ()

    @property
    def target_bytes(self) -> int:
        """The target in bytes; 0: none was chosen yet."""
        return self.changes[-1].after_bytes if self.changes else 0

    def is_due(self, policy: Policy, now_ms: int) -> bool:
        """Return whether a change may be considered: once a day, and not within a week of the last one."""
        is_week_over = not self.changes or now_ms - self.changes[-1].at_ms >= WEEK_MS
        is_day_over = not self.checked_ms or now_ms - self.checked_ms >= DAY_MS
        return policy.enabled and policy.fits_target and is_day_over and is_week_over

    def refitted(self, policy: Policy, basis: TargetBasis, now_ms: int) -> "TargetFit":
        """Return the fit as of now, with a further change if it is due and worth it.

        The same fit while nothing is known to be added: on the first day that is followed, or without writers.
        """
        if not (basis.weekly_bytes and self.is_due(policy, now_ms)):
            return self
        checked, before = TargetFit(now_ms, self._judged(basis)), policy.target_bytes
        wanted = basis.wanted_bytes(policy.fan_in)
        after = _power_of_two(wanted)
        if before < STEP * wanted and wanted < STEP * before:
            return checked
        if after > before and not basis.pays_back(before, after, policy.fan_in):
            return checked
        change = TargetChange(now_ms, before, after, basis)
        return replace(checked, changes=(*checked.changes, change)[-CHANGES_KEPT:])

    def _judged(self, now: TargetBasis) -> tuple[TargetChange, ...]:
        """Return the changes, the last one with the files that it has led to, if it has none yet."""
        if not self.changes or self.changes[-1].judged_bytes:
            return self.changes
        return (*self.changes[:-1], replace(self.changes[-1], judged_bytes=now.mean_file_bytes))


NO_TARGET = TargetFit()


def _power_of_two(size_bytes: int) -> int:
    """Return the nearest power of two, by the ratio."""
    below = 1 << (size_bytes.bit_length() - 1)
    return below if size_bytes**2 < 2 * below**2 else 2 * below


def _natural_log(value: int) -> Fraction:
    """Return a logarithm as every machine computes it."""
    return Fraction(round(math.log(value) * 1000), 1000)
