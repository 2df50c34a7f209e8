"""The state of a partition by example: what each file adds, what a state may be, and what merging could remove."""

from dataclasses import replace

import pytest

from shared.layout.partition_stats import (
    EMPTY_STATS,
    IDLE_COMPACTED_TAG,
    UNKNOWN_WINDOW,
    PartitionStats,
    file_stats,
    stats_of_file,
    stats_of_sizes,
)
from shared.policy.levels import SMALL_LEVELS
from shared.policy.policy import Policy
from shared.table import DataFile, PartitionKey

POLICY = Policy(target_bytes=100, fan_in=10)
RUNGS = POLICY.size_levels
"""Levels begin at 0, 1, 1, 1, 1, 10, 75."""


def test_a_small_file_counts_on_its_level_with_its_shortfall() -> None:
    assert file_stats(RUNGS, 60) == PartitionStats(
        1, 60, 1600, 1600, 0, 0, (0, 0, 0, 0, 0, 1), (0, 0, 0, 0, 0, 60), (0,) * SMALL_LEVELS
    )


def test_a_full_file_counts_on_no_level_and_has_a_shortfall_only_below_the_target() -> None:
    assert file_stats(RUNGS, 80) == PartitionStats(1, 80, 400)
    assert file_stats(RUNGS, 100) == PartitionStats(1, 100, 0)
    assert file_stats(RUNGS, 500) == PartitionStats(1, 500, 0), "overshoot is no shortfall"


def test_deletion_vectors_and_settled_files_are_counted() -> None:
    file = DataFile("f", 60, PartitionKey("{}"), dv_id="v", rows=9, deleted_rows=3, tags={IDLE_COMPACTED_TAG: "1"})
    state = stats_of_file(file, RUNGS)
    assert (state.dv_files, state.deleted_rows, state.idle_compacted) == (1, 3, (0, 0, 0, 0, 0, 1))
    plain = stats_of_file(replace(file, dv_id=None, deleted_rows=0, tags={}), RUNGS)
    assert (plain.dv_files, plain.deleted_rows, sum(plain.idle_compacted)) == (0, 0, 0)


def test_adding_and_taking_away_are_inverse_in_every_number_and_window() -> None:
    one = stats_of_file(
        DataFile("f", 60, PartitionKey("{}"), dv_id="v", deleted_rows=3, tags={IDLE_COMPACTED_TAG: ""}), RUNGS
    )
    other = stats_of_sizes(RUNGS, [5, 80]).in_window(7)
    assert (one.in_window(5) + other) - other == replace(one, windows=((5, one), (7, EMPTY_STATS)))
    assert one + EMPTY_STATS == one
    assert (one - one) == EMPTY_STATS


@pytest.mark.parametrize(
    ("sizes", "excess"),
    [
        ([50, 50], 5000),  # One output of just the target leaves nothing.
        ([50, 49], 50**2 + 51**2 - 1),
        ([74, 74], 2 * 26**2),  # Beyond the target nothing is left either, whatever the overshoot.
        ([60], 0),
        ([80, 100], 0),
        ([], 0),
    ],
)
def test_what_merging_can_remove_is_the_shortfall_less_what_one_output_of_all_leaves(
    sizes: list[int], excess: int
) -> None:
    assert stats_of_sizes(RUNGS, sizes).excess(100) == excess


def test_files_that_are_left_to_settle_are_those_on_the_first_levels_that_were_not() -> None:
    state = stats_of_sizes(RUNGS, [5, 5, 20]) + file_stats(RUNGS, 5, is_idle_compacted=True)
    assert [state.idle_compaction_inputs(levels) for levels in (4, 5, 6)] == [0, 2, 3]


@pytest.mark.parametrize("name", ["files", "bytes", "shortfall", "small_shortfall", "dv_files", "deleted_rows"])
def test_no_number_may_be_below_nothing(name: str) -> None:
    assert replace(EMPTY_STATS, **{name: 0}).is_consistent
    assert not replace(EMPTY_STATS, **{name: -1}).is_consistent


@pytest.mark.parametrize("name", ["counts", "sizes"])
def test_no_level_may_be_below_nothing(name: str) -> None:
    assert not replace(EMPTY_STATS, **{name: (0, 0, 0, 0, 0, -1)}).is_consistent


def test_settled_files_that_were_never_seen_are_none() -> None:
    state = stats_of_sizes(RUNGS, [5]) - file_stats(RUNGS, 5, is_idle_compacted=True)
    assert state.clamped().idle_compacted == (0,) * SMALL_LEVELS
    assert state.is_consistent


def test_the_two_newest_windows_are_kept_and_a_file_from_somewhere_is_taken_out_of_each() -> None:
    states = [stats_of_sizes(RUNGS, [5] * number).in_window(number * 10) for number in (1, 2, 3)]
    state = states[0] + states[1] + states[2]
    kept = state.clamped()
    assert [(at, one.files) for at, one in kept.windows] == [(20, 2), (30, 3)]
    gone = replace(EMPTY_STATS, windows=((UNKNOWN_WINDOW, stats_of_sizes(RUNGS, [5] * 2)),))
    less = (kept - gone).clamped()
    assert [(at, one.files, one.bytes) for at, one in less.windows] == [(20, 0, 0), (30, 1, 5)]
    assert less.files == kept.files, "the partition's own numbers are those of the log"


def test_a_window_has_nothing_negative_and_no_bytes_without_files() -> None:
    state = stats_of_sizes(RUNGS, [5]).in_window(10) - replace(
        EMPTY_STATS, windows=((10, stats_of_sizes(RUNGS, [4, 20])),)
    )
    ((_, window),) = state.clamped().windows
    assert window == EMPTY_STATS
    heavy = DataFile("f", 5, PartitionKey("{}"), dv_id="v", deleted_rows=3, tags={IDLE_COMPACTED_TAG: ""})
    one = stats_of_file(heavy, RUNGS)
    ((_, window),) = (
        (stats_of_sizes(RUNGS, [5]).in_window(10) - replace(EMPTY_STATS, windows=((10, one),))).clamped().windows
    )
    assert (window.dv_files, window.deleted_rows, sum(window.idle_compacted)) == (0, 0, 0)
    ((_, window),) = (one + one).in_window(10).clamped().windows
    assert (window.dv_files, window.deleted_rows, sum(window.idle_compacted)) == (2, 6, 2)
    lighter = stats_of_sizes(RUNGS, [5, 5]).in_window(10) - replace(
        EMPTY_STATS, windows=((10, stats_of_sizes(RUNGS, [9])),)
    )
    ((_, window),) = lighter.clamped().windows
    assert (window.files, window.bytes, window.sizes) == (1, 1, (0, 0, 0, 0, 1, 0))


def test_a_state_with_everything_in_it_is_read_back() -> None:
    one = stats_of_file(
        DataFile("f", 60, PartitionKey("{}"), dv_id="v", deleted_rows=3, tags={IDLE_COMPACTED_TAG: ""}), RUNGS
    )
    state = one.in_window(-5) + stats_of_sizes(RUNGS, [5, 80]).in_window(7)
    assert PartitionStats.decode(state.encode()) == state
    assert state.total == replace(state, windows=())
    assert (state.small_files, state.small_bytes) == (2, 65)
    assert stats_of_sizes(RUNGS, [60, 80]).mse() == 1000
    assert EMPTY_STATS.mse() == 0


@pytest.mark.parametrize("count", [17, 19, 23, 26])
def test_a_state_of_another_length_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"18, 24 or 25 integers, found {count}"):
        PartitionStats.decode(",".join(["0"] * count))
