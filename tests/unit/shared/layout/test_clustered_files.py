"""Files that are clustered and files that a log removed, folded commit by commit in bounded memory."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.layout.clustered_files import CUBE_BYTES, ClusteredFiles, ClusterReason
from shared.layout.partition_stats import CUBE_TAG
from shared.layout.removals import BUCKET_MS, MAX_BUCKETS, NO_REMOVALS, Removals
from shared.policy.policy import MIB, ClusterMode, Policy
from shared.table import Commit, DataFile, PartitionKey, RemovedFile, VacuumMark
from tests.support.memory_log import commit, file, removed

POLICY = Policy(cluster=ClusterMode.ON, target_bytes=8 * MIB).with_traits(is_clustered=True)
CUBE = {CUBE_TAG: "1"}


def test_commits_add_up_to_what_a_count_of_the_live_files_gives() -> None:
    dice = random.Random(20)
    live: dict[str, DataFile] = {}
    folded = ClusteredFiles()
    for version in range(300):
        tags = CUBE if dice.random() < 0.4 else {}
        added = [file(f"{version}-{n}", dice.randrange(1, 9 * MIB), tags=tags) for n in range(dice.randrange(4))]
        gone = dice.sample(sorted(live), dice.randrange(min(4, len(live) + 1)))
        # A deletion vector: the file goes and comes back; writers may leave out the tags and the size of what goes.
        again = [replace(live[path], dv_id=str(version)) for path in gone if dice.random() < 0.3]
        back = {one.path for one in again}
        going = [removed(live[path], **({"tags": None} if path in back else {})) for path in gone]
        going = [replace(one, size_bytes=None) if one.path in back else one for one in going]
        folded = folded.after(commit(version, added=(*added, *again), removed=tuple(going)))
        for path in gone:
            del live[path]
        live |= {one.path: one for one in (*added, *again)}
        counted = ClusteredFiles.of((one.size_bytes, CUBE_TAG in one.tags) for one in live.values())
        assert folded == counted
    assert folded.unclustered_files > 10
    assert folded.clustered_bytes > MIB


def test_a_removal_of_an_unknown_file_never_counts_below_nothing() -> None:
    gone = replace(removed(file("a", MIB), tags=None), size_bytes=None)
    assert ClusteredFiles().after(commit(removed=(gone, removed(file("b", MIB, tags=CUBE))))) == ClusteredFiles()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (ClusteredFiles(0, 0, 9 * MIB), ClusterReason.NOTHING),
        (ClusteredFiles(7, 8 * MIB - 1, 0), ClusterReason.FEW_FILES),
        (ClusteredFiles(8, 8, 0), ClusterReason.UNCLUSTERED),
        (ClusteredFiles(1, 8 * MIB, 32 * MIB), ClusterReason.UNCLUSTERED),
        (ClusteredFiles(8, 8 * MIB - 1, 32 * MIB), ClusterReason.BELOW_THRESHOLD),
        (ClusteredFiles(1001, 1001, 32 * MIB), ClusterReason.MANY_FILES),
        # What is full is not rewritten again, however much there is.
        (ClusteredFiles(8, CUBE_BYTES // 4, 10 * CUBE_BYTES), ClusterReason.UNCLUSTERED),
        (ClusteredFiles(8, CUBE_BYTES // 4 - 1, 10 * CUBE_BYTES), ClusterReason.BELOW_THRESHOLD),
    ],
)
def test_a_run_is_due_when_the_new_bytes_are_worth_what_is_rewritten_again(
    files: ClusteredFiles, reason: ClusterReason
) -> None:
    assert files.need(POLICY) is reason
    assert reason.is_due == (reason in (ClusterReason.UNCLUSTERED, ClusterReason.MANY_FILES))
    assert reason.message.endswith(".")


def test_a_run_reads_the_new_files_and_the_newest_cube_and_nothing_without_new_files() -> None:
    assert ClusteredFiles(1, 5, 7).rewritten_bytes == 12
    assert ClusteredFiles(1, 5, 3 * CUBE_BYTES).rewritten_bytes == CUBE_BYTES + 5
    assert ClusteredFiles(0, 0, 7).rewritten_bytes == 0


@pytest.mark.parametrize("threshold", [Fraction(1, 10), Fraction(1, 4), Fraction(1)])
def test_each_byte_is_rewritten_once_and_the_inverse_of_the_threshold_times_more_on_average(
    threshold: Fraction,
) -> None:
    dice = random.Random(3)
    policy = replace(POLICY, cluster_threshold=threshold)
    files, rewritten, ingested, runs = ClusteredFiles(), 0, 0, 0
    for _ in range(2_000):
        size = int(dice.lognormvariate(13, 1.5))
        files, ingested = files.plus(size, is_cube=False), ingested + size
        if files.need(policy).is_due:
            rewritten, runs = rewritten + files.rewritten_bytes, runs + 1
            files = ClusteredFiles(clustered_bytes=files.unclustered_bytes + files.clustered_bytes)
        most = max(Fraction(8, 1) * 8 * MIB, threshold * files.clustered_bytes)
        assert files.unclustered_bytes <= most
    assert runs > 3
    assert rewritten <= (1 + 1 / threshold) * ingested


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
