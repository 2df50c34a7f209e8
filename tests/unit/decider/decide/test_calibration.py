"""Calibration: ratios come from sums alone, are drawn towards 1, and never leave their bounds."""

from dataclasses import replace
from fractions import Fraction

import pytest

from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.evaluate import calibrate_prediction
from decider.decide.job_request import priority, read_weight
from shared.layout.partition_stats import stats_of_sizes
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from tests.support.decisions import decide_on_state

POLICY = Policy(target_bytes=8 * MIB)


def after(runs: int, *, into: int = 100, filled: int = 100, read: int = 100, removed: int = 100) -> Calibration:
    """So many runs that were predicted to read and remove 100 each, half of them for full files."""
    cost = (100 * runs, read * runs, 100 * runs, removed * runs)
    return Calibration(runs, *cost, 100 * runs, into * runs, 100 * runs, filled * runs)


def test_before_the_first_run_predictions_are_believed() -> None:
    assert Calibration.of({}) == UNCALIBRATED
    assert (UNCALIBRATED.shrink, UNCALIBRATED.full_shrink) == (1, 1)
    assert (UNCALIBRATED.bytes_ratio, UNCALIBRATED.removed_ratio) == (1, 1)
    assert UNCALIBRATED.applied_to(POLICY) is POLICY


def test_one_odd_run_moves_costs_by_little_and_many_convince() -> None:
    shrinks = [after(runs, into=50).shrink for runs in (1, 4, 16, 63)]
    assert shrinks == [Fraction(24, 32), Fraction(19, 32), Fraction(16, 32), Fraction(16, 32)]
    assert [after(runs, filled=50).full_shrink for runs in (1, 4, 16, 63)] == shrinks
    ratios = [after(runs, read=200).bytes_ratio for runs in (1, 4, 16)]
    assert ratios == [Fraction(6, 5), Fraction(3, 2), Fraction(9, 5)]


def test_full_files_and_smaller_ones_shrink_by_factors_of_their_own() -> None:
    """Copies below the target keep their size: they are promoted as if nothing shrank."""
    policy = after(60, filled=80).applied_to(POLICY)
    assert (policy.learned.shrink, policy.learned.full_shrink) == (1, Fraction(25, 32))
    levels, believed = policy.size_levels, POLICY.size_levels
    assert [levels.required_bytes(level) for level in range(5)] == [
        believed.required_bytes(level) for level in range(5)
    ]
    assert levels.required_bytes(5) == levels.cover_bytes == -(-POLICY.target_bytes * 32 // 25)
    below, cover = levels.full_bytes - 1, levels.cover_bytes
    assert levels.predicted_bytes(below) == below
    assert POLICY.target_bytes <= levels.predicted_bytes(cover) <= POLICY.target_bytes + 1, "both are rounded up"
    assert after(60, into=80).applied_to(POLICY).learned.full_shrink == 1


def test_a_prediction_is_corrected_and_keeps_what_the_state_said_to_be_measured_against() -> None:
    made = decide_on_state(WHOLE_TABLE, stats_of_sizes(POLICY.size_levels, [100_000] * 10), POLICY, 1)
    assert made.prediction is not None
    better = calibrate_prediction(made.prediction, after(4, read=200, removed=60))
    assert (better.bytes, better.files_removed) == (1_500_000, round(9 * Fraction(4, 5)))
    assert (better.state_bytes, better.state_removed) == (1_000_000, 9)
    assert priority(better, POLICY) >= priority(made.prediction, POLICY)


@pytest.mark.parametrize(
    ("weekly", "weight"),
    [
        *((0, None), (1, Fraction(1, 256)), (83, Fraction(1, 4)), (84, Fraction(1, 2)), (167, Fraction(1, 2))),
        *((168, 1), (335, 1), (336, 2), (168 * 512, 512), (10**12, 512)),
    ],
)
def test_reads_per_hour_weigh_by_powers_of_two_unless_the_owner_says_how_much(
    weekly: int, weight: Fraction | None
) -> None:
    learned = Calibration(weekly_reads=weekly)
    assert learned.read_weight == weight
    assert read_weight(learned.applied_to(POLICY)) == (weight or 1)
    own = replace(POLICY, read_weight=Fraction(3))
    assert read_weight(learned.applied_to(own)) == 3
