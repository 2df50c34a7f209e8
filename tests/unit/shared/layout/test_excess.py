"""What merging can still gain: nothing where one file is left, and never across partitions or clustered files."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.layout.excess import NO_EXCESS, Excess
from shared.layout.partition_stats import PartitionStats, stats_of_sizes
from shared.policy.levels import SizeLevels
from shared.policy.policy import Policy

LEVELS: SizeLevels = Policy(target_bytes=1_000_000).size_levels
TARGET = LEVELS.target_bytes


def partition(*sizes: int) -> PartitionStats:
    return stats_of_sizes(LEVELS, sizes)


@given(st.lists(st.integers(750_000, 5_000_000), max_size=5), st.integers(0, 749_999))
def test_full_files_and_one_small_file_are_as_compact_as_they_can_be(full: list[int], small: int) -> None:
    assert Excess.of([partition(*full, small)], TARGET) == Excess.of([partition(*full)], TARGET) == NO_EXCESS


@given(st.lists(st.integers(0, 749_999), min_size=2, max_size=40))
def test_of_two_small_files_one_can_always_be_spared_and_never_all(sizes: list[int]) -> None:
    found = Excess.of([partition(*sizes)], TARGET)
    assert 1 <= found.files < len(sizes)
    assert 0 < found.ratio(len(sizes), TARGET) <= 1


@pytest.mark.parametrize(
    ("sizes", "spare"), [([1] * 60, 59), ([500_000] * 8, 4), ([100_000] * 20 + [1_000_000], 18), ([], 0), ([0, 0], 1)]
)
def test_as_many_files_would_do_as_the_same_bytes_fill(sizes: list[int], spare: int) -> None:
    assert Excess.of([partition(*sizes)], TARGET).files == spare


def test_files_of_two_partitions_are_not_merged() -> None:
    assert Excess.of([partition(10), partition(10)], TARGET) == NO_EXCESS
    assert Excess.of([partition(10, 20), partition(5, 6, 7)], TARGET).files == 3


def test_the_files_of_a_z_cube_are_not_merged() -> None:
    assert Excess.of([replace(partition(10, 10), cube_files=1)], TARGET) == NO_EXCESS


def test_without_files_there_is_nothing_to_gain() -> None:
    assert NO_EXCESS.ratio(0, TARGET) == 0
