"""What a table's log removed, folded commit by commit in bounded memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.layout.removals import BUCKET_MS, MAX_BUCKETS, NO_REMOVALS, Removals
from shared.table import Commit, DataFile, PartitionKey, RemovedFile, VacuumMark

PARTITION = PartitionKey("{}")
REMOVED = st.lists(st.tuples(st.integers(0, 10_000 * BUCKET_MS), st.integers(0, 2**40)), max_size=200)


@given(removed=REMOVED, cutoff_ms=st.integers(0, 10_001 * BUCKET_MS))
def test_never_more_is_expired_than_was_removed_before_and_memory_is_bounded(
    removed: list[tuple[int, int]], cutoff_ms: int
) -> None:
    found = NO_REMOVALS
    for one in removed:
        found = found.with_files([one])
    assert len(found.buckets) <= MAX_BUCKETS
    assert (found.files, found.bytes) == (len(removed), sum(size for _, size in removed))
    files, size = found.expired(cutoff_ms)
    before = [size for at_ms, size in removed if at_ms < cutoff_ms]
    assert files <= len(before)
    assert size <= sum(before)
    # And what is older than the cutoff by a bucket is expired.
    assert files >= sum(at_ms < cutoff_ms - found.width_ms for at_ms, _ in removed)


def test_a_commit_adds_what_it_removes_but_not_what_it_adds_again() -> None:
    gone, vector = RemovedFile("a", None, 5, PARTITION), RemovedFile("b", None, 7, PARTITION)
    again = DataFile("b", 7, PARTITION, dv_id="u1")
    unknown = RemovedFile("c", None, None, None)
    found = NO_REMOVALS.after(Commit(1, 3, "DELETE", added=(again,), removed=(gone, vector, unknown)))
    assert (found.files, found.bytes, found.first_end_ms) == (2, 5, BUCKET_MS)
    assert NO_REMOVALS.first_end_ms is None
    assert NO_REMOVALS.after(Commit(2, 3, "WRITE", added=(again,))) == NO_REMOVALS


@pytest.mark.parametrize(("until_ms", "left"), [(BUCKET_MS - 1, 2), (BUCKET_MS, 1), (10 * BUCKET_MS, 0)])
def test_the_end_of_a_vacuum_ends_the_buckets_that_it_covers(until_ms: int, left: int) -> None:
    found = Removals.of([(0, 5), (BUCKET_MS, 7)])
    ended = found.after(Commit(1, 99, "VACUUM END", vacuum=VacuumMark(until_ms)))
    assert (ended.files, ended.vacuumed_ms, ended.listed_ms) == (left, 99, 0)
    listed = ended.after(Commit(2, 120, "VACUUM END", vacuum=VacuumMark(until_ms, with_orphans=True)))
    assert (listed.vacuumed_ms, listed.listed_ms) == (120, 120)


def test_an_emptied_table_begins_with_short_buckets_again() -> None:
    wide = Removals.of([(number * BUCKET_MS, 1) for number in range(2 * MAX_BUCKETS)])
    assert wide.width_ms > BUCKET_MS
    assert wide.after(Commit(1, 0, "VACUUM END", vacuum=VacuumMark(10**15))).width_ms == BUCKET_MS


def test_files_beside_data_files_that_only_older_versions_need_are_removed_with_the_commit() -> None:
    found = NO_REMOVALS.after(Commit(1, 3, "WRITE", superseded_files=2))
    assert (found.files, found.bytes, found.first_end_ms) == (2, 0, BUCKET_MS)
    ended = Commit(
        2, 4 * BUCKET_MS, "VACUUM END", superseded_files=1, vacuum=VacuumMark(2 * BUCKET_MS, with_orphans=True)
    )
    found = found.after(ended)
    assert (found.files, found.vacuumed_ms, found.listed_ms) == (1, 4 * BUCKET_MS, 4 * BUCKET_MS)
