"""Levels at the default policy: the bounds that the documentation names."""

from fractions import Fraction

import pytest

from shared.policy.levels import FULL, build_size_levels, fitted_steps
from shared.policy.policy import KIB, MIB, Policy, PolicyLayer, apply


def test_bounds_at_128_mib_and_fan_in_8() -> None:
    assert Policy().size_levels.floors == (0, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 96 * MIB)


def test_bounds_are_rounded_up_once_so_that_a_file_on_a_bound_is_above_it() -> None:
    size_levels = build_size_levels(100_003, 7, Fraction(3, 4))
    for level in range(1, FULL):
        assert size_levels.floors[level] * 7 ** (FULL - level) >= 100_003
        assert (size_levels.floors[level] - 1) * 7 ** (FULL - level) < 100_003
        assert size_levels.level(size_levels.floors[level]) == level
        assert size_levels.level(size_levels.floors[level] - 1) == level - 1


def test_fitted_levels_rise_from_the_typical_size_to_the_target_in_equal_steps() -> None:
    floors = build_size_levels(512 * MIB, 8, Fraction(3, 4), typical_file_bytes=4 * MIB).floors
    assert floors[-3:-1] == (4 * MIB, 47_453_133), "two steps of the root of 128"
    assert floors[1:4] == (8 * KIB, 64 * KIB, 512 * KIB), "below the typical size, the fan-in is 8"
    assert floors[FULL] == 384 * MIB


def test_every_bound_of_fitted_levels_is_rounded_up_once() -> None:
    target, typical = 100_003, 333
    size_levels = build_size_levels(target, 8, Fraction(3, 4), typical_file_bytes=typical)
    steps = fitted_steps(target, 8, typical)
    assert (steps, size_levels.floors[FULL - steps]) == (3, typical)
    for step in range(steps):
        bound = size_levels.floors[FULL - steps + step]
        assert bound**steps >= target**step * typical ** (steps - step) > (bound - 1) ** steps


@pytest.mark.parametrize(
    ("typical", "steps"),
    [(0, 0), (1 << 9, 6), (1 << 10, 6), (1 << 14, 5), (1 << 26, 1), (19_271_961, 1), (19_271_960, 2), (1 << 29, 0)],
)
def test_steps_are_the_logarithm_rounded_down_up_to_six_tenths_and_at_most_as_many_as_levels(
    typical: int, steps: int
) -> None:
    assert fitted_steps(1 << 29, 8, typical) == steps


def test_levels_are_not_fitted_to_a_size_at_which_files_are_full() -> None:
    fixed = build_size_levels(1_000, 8, Fraction(3, 4))
    assert build_size_levels(1_000, 8, Fraction(3, 4), typical_file_bytes=750) == fixed
    assert build_size_levels(1_000, 8, Fraction(3, 4), typical_file_bytes=749).floors[5] == 749
    assert build_size_levels(1_000, 8, Fraction(1, 7), typical_file_bytes=30) == build_size_levels(
        1_000, 8, Fraction(1, 7)
    ), "the step before the target would begin at more than a full file"


def test_a_policy_whose_fan_in_is_set_keeps_its_levels() -> None:
    fitted = Policy().fitted_to(3_000_000)
    assert fitted.size_levels.floors != Policy().size_levels.floors
    fixed = apply(fitted, PolicyLayer({"fan_in": 8}))
    assert (fixed.fits_levels, fixed.size_levels) == (False, Policy().size_levels)
    assert apply(fitted, PolicyLayer({"tolerance": Fraction(1)})).fits_levels
