"""Levels are fitted where that saves, at most once a day, and never against their owner."""

from dataclasses import replace
from fractions import Fraction

import pytest

from decider.state.appended_sizes import AppendedFiles, AppendedSizes
from decider.state.level_fit import (
    EVERY_MS,
    MIN_SAVING,
    NOT_FITTED,
    LevelFit,
    least_rewrites,
    predicted_saving,
    rewriting_over_least,
)
from shared.policy.policy import MIB, Policy
from shared.table import Commit, DataFile, PartitionKey
from tests.bench.offline_optimum import equal_files

POLICY = Policy(target_bytes=512 * MIB)
NOW_MS = 1_000 * EVERY_MS


def learned(size_bytes: int, files: int = 1) -> LevelFit:
    return LevelFit(sizes=AppendedSizes((AppendedFiles(size_bytes, files),) * 64))


GAINING, NOT_GAINING = 7_000_000, MIB
"""Sizes in bytes that lie badly and exactly between the levels at T / 8^i."""


def test_levels_are_fitted_where_the_prediction_says_that_enough_is_saved() -> None:
    found = learned(GAINING).refitted(POLICY, NOW_MS)
    assert found.typical_file_bytes in (GAINING, GAINING * 9 // 10)
    assert found.checked_ms == NOW_MS
    fitted = POLICY.fitted_to(found.typical_file_bytes)
    assert found.saving == predicted_saving(found.sizes, POLICY, fitted) > MIN_SAVING
    assert found.reason.startswith(f"levels fitted to new files of {found.typical_file_bytes / MIB:.3g} MiB: ")
    kept = learned(NOT_GAINING).refitted(POLICY, NOW_MS)
    assert (kept.typical_file_bytes, kept.checked_ms) == (0, NOW_MS)


@pytest.mark.parametrize("checked_ms", [NOW_MS - EVERY_MS + 1, NOW_MS - EVERY_MS])
def test_a_change_is_considered_once_a_day(checked_ms: int) -> None:
    found = replace(learned(GAINING), checked_ms=checked_ms).refitted(POLICY, NOW_MS)
    assert (found.typical_file_bytes > 0) is (checked_ms == NOW_MS - EVERY_MS)


def test_levels_that_are_fitted_already_stay() -> None:
    fitted = learned(GAINING).refitted(POLICY, NOW_MS)
    policy = POLICY.fitted_to(fitted.typical_file_bytes)
    near = replace(fitted, sizes=learned(fitted.typical_file_bytes * 5 // 4).sizes)
    assert near.refitted(policy, NOW_MS + EVERY_MS) is near
    other = replace(fitted, sizes=learned(fitted.typical_file_bytes * 5).sizes)
    assert other.refitted(policy, NOW_MS + EVERY_MS).checked_ms == NOW_MS + EVERY_MS


@pytest.mark.parametrize("policy", [replace(POLICY, fits_levels=False), replace(POLICY, enabled=False)])
def test_a_fan_in_of_the_owner_and_a_disabled_table_keep_their_levels(policy: Policy) -> None:
    assert learned(GAINING).refitted(policy, NOW_MS) == learned(GAINING)


def test_without_a_typical_small_size_nothing_is_considered() -> None:
    full = learned(POLICY.target_bytes // 8, files=8)
    assert full.refitted(POLICY, NOW_MS) is full
    assert NOT_FITTED.refitted(POLICY, NOW_MS) is NOT_FITTED


def test_a_commit_adds_to_what_is_known_and_a_commit_without_files_does_not() -> None:
    added = Commit(1, 1, "WRITE", (DataFile("f", 5, PartitionKey("{}")),))
    found = NOT_FITTED.after(added, POLICY)
    assert found == LevelFit(sizes=AppendedSizes((AppendedFiles(5, 1),)))
    assert found.after(Commit(2, 2, "WRITE"), POLICY) is found


def test_a_saving_counts_only_where_both_halves_of_the_window_show_it() -> None:
    halves = AppendedSizes((AppendedFiles(GAINING, 1),) * 32 + (AppendedFiles(NOT_GAINING, 1),) * 32)
    fitted = POLICY.fitted_to(GAINING)
    assert predicted_saving(halves, POLICY, fitted) <= 0
    assert predicted_saving(AppendedSizes(halves.commits[:32]), POLICY, fitted) > MIN_SAVING


def test_where_nothing_is_rewritten_nothing_is_saved() -> None:
    one = AppendedSizes((AppendedFiles(400 * MIB, 1),) * 2)
    assert rewriting_over_least(one, POLICY) == 0
    assert predicted_saving(one, POLICY, POLICY.fitted_to(MIB)) == 0


@pytest.mark.parametrize(("files", "slots"), [(1, 5), (5, 5), (69, 17), (500, 20), (10, 3), (6, 1)])
def test_the_least_is_below_the_optimum_and_near_it(files: int, slots: int) -> None:
    least, optimum = least_rewrites(files, slots), Fraction(equal_files(files, slots), files)
    assert least <= max(optimum, 1)
    if slots > 10:
        assert optimum < least * Fraction(104, 100)
