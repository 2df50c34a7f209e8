"""Entropy returns whether, levels say which: one example for each answer."""

from dataclasses import replace
from fractions import Fraction

from shared.layout.eligibility import Reason, delete_step, evaluate_layout
from shared.layout.partition_stats import stats_of_sizes
from shared.policy.policy import MIB, Policy

POLICY = Policy()


def reason(sizes: list[int], policy: Policy = POLICY) -> Reason:
    return evaluate_layout(stats_of_sizes(policy.size_levels, sizes), policy).reason


def test_one_small_file_is_nothing_to_merge() -> None:
    assert reason([MIB]) is Reason.NO_SMALL_FILES
    assert reason([]) is Reason.NO_SMALL_FILES


def test_few_small_files_among_many_full_ones_are_tolerated() -> None:
    assert reason([128 * MIB] * 1000 + [MIB] * 10) is Reason.WITHIN_TOLERANCE


def test_small_files_that_reach_no_higher_level_wait() -> None:
    assert reason([MIB] * 7) is Reason.NO_PROMOTION


def test_eight_files_of_one_level_are_worth_it() -> None:
    assert reason([MIB] * 8) is Reason.ELIGIBLE


def test_too_many_small_files_override_the_tolerance_but_not_the_levels() -> None:
    crowded = replace(POLICY, max_small_files=9)
    assert reason([128 * MIB] * 1000 + [MIB] * 10, crowded) is Reason.TOO_MANY_SMALL_FILES
    assert reason([128 * MIB] * 1000 + [MIB] * 10 + [90 * MIB], crowded) is Reason.TOO_MANY_SMALL_FILES
    assert reason([128 * MIB] * 1000 + [17 * MIB, 17 * MIB], replace(POLICY, max_small_files=1)) is Reason.NO_PROMOTION


def test_every_reason_has_a_sentence() -> None:
    assert all(reason.message.endswith(".") for reason in Reason)


def test_mse_is_the_published_mean_squared_shortfall() -> None:
    state = stats_of_sizes(POLICY.size_levels, [128 * MIB, 100 * MIB, 28 * MIB])
    assert state.mse() == Fraction((28 * MIB) ** 2 + (100 * MIB) ** 2, 3)
    assert state.counts == (0, 0, 0, 0, 0, 1)
    assert state.excess(POLICY.target_bytes) == 0


def test_deleted_rows_reach_four_steps_until_they_have_doubled() -> None:
    steps = [delete_step(rows) for rows in range(1_025)]
    assert steps == sorted(steps)
    assert [rows for rows in range(65, 129) if steps[rows] > steps[rows - 1]] == [80, 96, 112, 128]
    assert all(steps[2 * rows] == steps[rows] + 4 for rows in range(1, 513))
    assert steps[0] < steps[1], "the first deleted row is a step"
