"""Entropy returns whether, levels say which: one example for each answer."""

from dataclasses import replace

from shared.layout.eligibility import Reason, delete_step, evaluate_layout
from shared.layout.partition_stats import stats_of_sizes
from shared.policy.policy import MIB, Policy

POLICY = Policy()


def reason(sizes: list[int], policy: Policy = POLICY) -> Reason:
    return evaluate_layout(stats_of_sizes(policy.size_levels, sizes), policy).reason


def test_too_many_small_files_override_the_tolerance_but_not_the_levels() -> None:
    crowded = replace(POLICY, max_small_files=9)
    assert reason([128 * MIB] * 1000 + [MIB] * 10, crowded) is Reason.TOO_MANY_SMALL_FILES
    assert reason([128 * MIB] * 1000 + [MIB] * 10 + [90 * MIB], crowded) is Reason.TOO_MANY_SMALL_FILES
    assert reason([128 * MIB] * 1000 + [17 * MIB, 17 * MIB], replace(POLICY, max_small_files=1)) is Reason.NO_PROMOTION


def test_deleted_rows_reach_four_steps_until_they_have_doubled() -> None:
    steps = [delete_step(rows) for rows in range(1_025)]
    assert steps == sorted(steps)
    assert [rows for rows in range(65, 129) if steps[rows] > steps[rows - 1]] == [80, 96, 112, 128]
    assert all(steps[2 * rows] == steps[rows] + 4 for rows in range(1, 513))
    assert steps[0] < steps[1], "the first deleted row is a step"
