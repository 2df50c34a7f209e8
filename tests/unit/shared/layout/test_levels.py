"""Levels at the default policy: the bounds that the documentation names."""

from fractions import Fraction

from shared.layout.levels import FULL, build_size_levels
from shared.policy import KIB, MIB, Policy


def test_bounds_at_128_mib_and_fan_in_8() -> None:
    assert Policy().size_levels.floors == (0, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 96 * MIB)


def test_bounds_are_rounded_up_once_so_that_a_file_on_a_bound_is_above_it() -> None:
    size_levels = build_size_levels(100_003, 7, Fraction(3, 4))
    for level in range(1, FULL):
        assert size_levels.floors[level] * 7 ** (FULL - level) >= 100_003
        assert (size_levels.floors[level] - 1) * 7 ** (FULL - level) < 100_003
        assert size_levels.level(size_levels.floors[level]) == level
        assert size_levels.level(size_levels.floors[level] - 1) == level - 1


def test_top_level_must_reach_the_whole_target() -> None:
    size_levels = Policy().size_levels
    assert size_levels.required_bytes(5) == 128 * MIB
    assert size_levels.required_bytes(4) == 16 * MIB
    assert not size_levels.permits_rewrite(largest_bytes=20 * MIB, total_bytes=127 * MIB, inputs=50, min_inputs=8)
    assert size_levels.permits_rewrite(largest_bytes=20 * MIB, total_bytes=128 * MIB, inputs=2, min_inputs=8)


def test_too_few_inputs_below_the_target_are_not_worth_a_job() -> None:
    size_levels = Policy().size_levels
    assert not size_levels.permits_rewrite(largest_bytes=KIB, total_bytes=7 * KIB, inputs=7, min_inputs=8)
    assert size_levels.permits_rewrite(largest_bytes=KIB, total_bytes=8 * KIB, inputs=8, min_inputs=8)
