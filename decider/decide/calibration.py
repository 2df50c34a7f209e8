"""Calibration: a table's predicted rewrites against its measured ones, and the correction of the next prediction.

Only sums over the newest runs are kept. Each ratio is drawn towards 1, which holds before anything is measured, and
bounded, so that one odd run moves little. Everything is exact fractions: the same sums give the same
decision, on any machine.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from shared.jobs.payload import RunMeasure
from shared.policy.policy import Policy

DOUBT_RUNS = 4
"""Weight of the initial ratio of 1 in costs, in runs: after as many runs, the measurements count for half."""

SHRINK_DOUBT_RUNS = 1
"""The same for shrink factors: how rows compress hardly changes from run to run, and an output whose size is predicted
too large misses its level."""

SHRINK_FLOOR = Fraction(1, 4)
"""Files that shrink to less when they are merged are an accident: a quarter is what compression explains."""

SHRINK_STEPS = 32
"""Shrink factors are rounded down to steps of 1/32, so that they change seldom; down, because a too large one would let
outputs miss their level."""

WEEK_HOURS = 7 * 24

MOST_READ_STEPS = 9
"""Reads per hour count from 2^-9 to 2^9, about the bounds of `lakewright.read-weight`."""

RATIO_BOUND = 4
"""A prediction is corrected by this factor at most, up or down."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Sums over `runs` newest runs of a table that rewrote something; bytes, and files removed.

    merged_bytes, merged_into_bytes: inputs and outputs of groups without deleted rows that total less than a full file;
    filled_bytes, filled_into_bytes: the same of larger groups. weekly_reads: reported reads, at their
    rate of the last seven days; 0: none were reported.
    """

    runs: int = 0
    predicted_bytes: int = 0
    measured_bytes: int = 0
    predicted_removed: int = 0
    measured_removed: int = 0
    merged_bytes: int = 0
    merged_into_bytes: int = 0
    filled_bytes: int = 0
    filled_into_bytes: int = 0
    weekly_reads: int = 0

    @staticmethod
    def of(sums: Mapping[str, int], weekly_reads: int = 0) -> "Calibration":
        """Read the sums by the names of `RunMeasure`; what is missing is 0."""
        return Calibration(**{str(name): sums.get(name, 0) for name in RunMeasure}, weekly_reads=weekly_reads)

    @property
    def shrink(self) -> Fraction:
        """Predicted size of an output as a share of its inputs, where these total less than a full file."""
        return self._stepped(self.merged_into_bytes, self.merged_bytes)

    @property
    def full_shrink(self) -> Fraction:
        """Predicted size of an output as a share of its inputs, where these total a full file or more."""
        return self._stepped(self.filled_into_bytes, self.filled_bytes)

    @property
    def bytes_ratio(self) -> Fraction:
        """Bytes that a rewrite reads for each one that the state predicts."""
        return self._bounded(self._drawn(self.measured_bytes, self.predicted_bytes))

    @property
    def removed_ratio(self) -> Fraction:
        """Files that a rewrite removes for each one that the state predicts."""
        return self._bounded(self._drawn(self.measured_removed, self.predicted_removed))

    @property
    def read_weight(self) -> Fraction | None:
        """Reported reads per hour, rounded down to a power of two, so that it changes seldom; None: none reported."""
        if self.weekly_reads <= 0:
            return None
        more, fewer = self.weekly_reads // WEEK_HOURS, -(-WEEK_HOURS // self.weekly_reads)
        steps = more.bit_length() - 1 if more else -(fewer - 1).bit_length()
        return Fraction(2) ** min(MOST_READ_STEPS, max(-MOST_READ_STEPS, steps))

    def applied_to(self, policy: Policy) -> Policy:
        """Return a policy with the shrink factors and the reads of the table."""
        learned = replace(
            policy.learned, shrink=self.shrink, full_shrink=self.full_shrink, read_weight=self.read_weight
        )
        return policy if learned == policy.learned else replace(policy, learned=learned)

    def _stepped(self, into_bytes: int, from_bytes: int) -> Fraction:
        believed = self._drawn(into_bytes, from_bytes, SHRINK_DOUBT_RUNS)
        stepped = Fraction(math.floor(believed * SHRINK_STEPS), SHRINK_STEPS)
        return min(Fraction(1), max(SHRINK_FLOOR, stepped))

    def _drawn(self, measured: int, predicted: int, doubt_runs: int = DOUBT_RUNS) -> Fraction:
        if predicted <= 0:
            return Fraction(1)
        return (Fraction(measured, predicted) * self.runs + doubt_runs) / (self.runs + doubt_runs)

    @staticmethod
    def _bounded(ratio: Fraction) -> Fraction:
        return min(Fraction(RATIO_BOUND), max(Fraction(1, RATIO_BOUND), ratio))


UNCALIBRATED = Calibration()
"""A table before its first rewrite: predictions are assumed to be right, and nothing shrinks."""
