"""The typical size of a table's new files: learned from commits of its writers alone, and only where there is one."""

import pytest

from decider.state.appended_sizes import MIN_COMMITS, NO_SIZES, WINDOW_COMMITS, AppendedFiles, AppendedSizes
from shared.policy.policy import Policy
from shared.table import Commit, CommitOrigin, DataFile, PartitionKey

LEVELS = Policy(target_bytes=1_000).size_levels


def commit(*sizes: int, partitions: int = 1, is_change: bool = True, origin: CommitOrigin | None = None) -> Commit:
    files = tuple(DataFile(f"f{n}", size, PartitionKey(f"{n % partitions}")) for n, size in enumerate(sizes))
    return Commit(1, 1, "WRITE", files, data_change=is_change, origin=origin)


def window(*sizes: int, files: int = 1) -> AppendedSizes:
    return AppendedSizes(tuple(AppendedFiles(size, files) for size in sizes))


@pytest.mark.parametrize(
    "ignored",
    [commit(), commit(750), commit(10, is_change=False), commit(10, origin=CommitOrigin("j", 1))],
    ids=["no files", "full files", "other rewrites", "own rewrites"],
)
def test_only_small_files_of_writers_count(ignored: Commit) -> None:
    assert NO_SIZES.after(ignored, LEVELS) is NO_SIZES


def test_the_size_of_a_commit_is_that_of_half_of_its_bytes_and_its_files_are_counted_by_partition() -> None:
    found = NO_SIZES.after(commit(1, 1, 1, 90, 100, 749, 750, partitions=3), LEVELS)
    assert found.commits == (AppendedFiles(749, 2),)
    assert NO_SIZES.after(commit(40, 40, 90), LEVELS).commits == (AppendedFiles(90, 3),)
    assert NO_SIZES.after(commit(50, 40, 90), LEVELS).commits == (AppendedFiles(50, 3),)


def test_the_window_forgets_its_oldest_commit() -> None:
    found = NO_SIZES
    for size in range(1, WINDOW_COMMITS + 3):
        found = found.after(commit(size), LEVELS)
    assert [one.size_bytes for one in found.commits] == list(range(3, WINDOW_COMMITS + 3))


def test_no_size_is_typical_before_there_are_commits_enough() -> None:
    assert window(*[10] * (MIN_COMMITS - 1)).typical_bytes(8) == 0
    assert window(*[10] * MIN_COMMITS).typical_bytes(8) == 10


def test_one_odd_load_in_four_changes_nothing_and_a_table_that_changes_has_no_typical_size() -> None:
    assert window(*[10, 10, 10, 700] * 16).typical_bytes(8) == 10
    assert window(*[100] * 32, *[125] * 32).typical_bytes(8) == 125
    assert window(*[100] * 32, *[126] * 32).typical_bytes(8) == 0


def test_files_of_which_a_commit_brings_enough_for_a_merge_climb_from_what_that_makes() -> None:
    assert window(*[10] * 64, files=7).typical_bytes(8) == 10
    assert window(*[10] * 64, files=8).typical_bytes(8) == 80
