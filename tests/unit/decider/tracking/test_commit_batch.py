"""A batch requests what is left to do after its last commit, whatever its commits requested one by one."""

from dataclasses import replace
from fractions import Fraction

import pytest

from decider.decide.calibration import UNCALIBRATED
from decider.decide.decision import TableSignals
from decider.state.commit_pace import NO_COMMITS
from decider.state.contention import NO_CONTENTION
from decider.state.fold import fold
from decider.store.tables.table_state import PartitionStates
from decider.tracking.commit_batch import CommitBatch
from shared.jobs.payload import JobPayload, RewriteKind
from shared.layout.eligibility import evaluate_full, reaches_delete_files
from shared.layout.partition_stats import PartitionStats, stats_of_files
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from shared.queue.model import JobRequest
from shared.table import Commit, DataFile, DeleteFile, DeleteKind, RemovedFile, TableId, TableMetadata, TableRef

POLICY = Policy(tolerance=Fraction(0))
HERE = TableMetadata("u-1")
LIVE = [DataFile(name, 200 * MIB, WHOLE_TABLE, rows=100) for name in "abc"]


def removed(file: DataFile) -> RemovedFile:
    return RemovedFile(file.path, file.dv_id, file.size_bytes, file.partition, file.deleted_rows, file.tags)


def deleted_from(file: DataFile, dv_id: str, rows: int = 50) -> DataFile:
    return DataFile(file.path, file.size_bytes, file.partition, dv_id, file.rows, rows)


def jobs(*commits: tuple[list[DataFile], list[DataFile]]) -> list[JobRequest]:
    batch = CommitBatch(TableRef(TableId("t"), "t", "memory:///t"), POLICY, HERE)
    for version, (added, gone) in enumerate(commits):
        commit = Commit(version, version, "WRITE", tuple(added), tuple(map(removed, gone)))
        batch.add(commit, fold(commit, HERE, POLICY))
    known = PartitionStates({WHOLE_TABLE: stats_of_files(LIVE, POLICY.size_levels)}, UNCALIBRATED)
    return batch.decide(known, NO_CONTENTION, TableSignals(0), 9).step.jobs


def test_a_purge_is_asked_for_only_while_its_file_is_there() -> None:
    a, b, _ = LIVE
    hidden = deleted_from(a, "d")
    assert len(jobs(([hidden], [a]))) == 1
    assert jobs(([hidden], [a]), ([], [hidden])) == []
    assert len(jobs(([hidden], [a]), ([], [b]))) == 1
    again = deleted_from(a, "e", 60)
    assert len(jobs(([hidden], [a]), ([again], [hidden]))) == 1
    assert jobs(([hidden], [a]), ([deleted_from(a, "f", 1)], [hidden])) == []


def test_a_purge_outlasts_a_merge_that_was_asked_for_after_it_and_done_by_others() -> None:
    a, *_ = LIVE
    hidden, small = deleted_from(a, "d"), [DataFile(f"s{n}", MIB, WHOLE_TABLE) for n in range(9)]
    (job,) = jobs(([hidden], [a]), (small, []), ([], small))
    assert JobPayload.decode(job.payload).reason == "single_file_rewrite"
    assert jobs(([hidden], [a]), (small, []), ([], [hidden, *small])) == []


def test_a_partition_with_delete_files_and_no_data_files_is_kept_until_these_are_removed() -> None:
    batch = CommitBatch(TableRef(TableId("t"), "t", "memory:///t"), POLICY, HERE)
    delete = DeleteFile("d", WHOLE_TABLE, DeleteKind.POSITION, rows=3)
    change = Commit(1, 1, "DELETE", removed=tuple(map(removed, LIVE)), added_deletes=(delete,))
    batch.add(change, fold(change, HERE, POLICY))
    known = PartitionStates({WHOLE_TABLE: stats_of_files(LIVE, POLICY.size_levels)}, UNCALIBRATED)
    (kept,) = batch.decide(known, NO_CONTENTION, TableSignals(0), 9).step.partitions.values()
    assert kept is not None
    left = PartitionStats.decode(kept)
    assert (left.files, left.dv_files, left.deleted_rows) == (0, 1, 3)
    assert not evaluate_full(left).needs_rewrite, "there is no file to rewrite"
    assert evaluate_full(replace(left, files=1)).needs_rewrite


@pytest.mark.parametrize(
    ("before", "added", "looks"), [(0, 1, True), (8, 1, False), (8, 2, True), (1_000, 20, False), (1_000, 200, True)]
)
def test_files_are_examined_once_for_each_step_of_rows_that_delete_files_hide(
    before: int, added: int, looks: bool
) -> None:
    batch = CommitBatch(TableRef(TableId("t"), "t", "memory:///t"), POLICY, HERE)
    deletes = tuple(DeleteFile(f"d{n}", WHOLE_TABLE, DeleteKind.POSITION, rows=1) for n in range(added))
    change = Commit(1, 1, "DELETE", added_deletes=deletes)
    batch.add(change, fold(change, HERE, POLICY))
    state = replace(stats_of_files(LIVE, POLICY.size_levels), deleted_rows=before)
    known = PartitionStates({WHOLE_TABLE: state}, UNCALIBRATED)
    assert batch.with_more_deletes(known) == (frozenset({WHOLE_TABLE}) if looks else frozenset())
    made = batch.decide(known, NO_CONTENTION, TableSignals(0), 9, examined={WHOLE_TABLE: 1}).step.jobs
    assert [JobPayload.decode(job.payload).reason for job in made] == ["single_file_rewrite"]
    assert not batch.decide(known, NO_CONTENTION, TableSignals(0), 9).step.jobs
    off = CommitBatch(TableRef(TableId("t"), "t", "memory:///t"), replace(POLICY, delete_ratio_threshold=None), HERE)
    off.add(change, fold(change, HERE, POLICY))
    assert not off.with_more_deletes(known)


def requested_by_deletes(policy: Policy, before: int, *added: int) -> list[RewriteKind]:
    """Return the rewrites that commits request which add so many delete files each to a partition with some."""
    batch = CommitBatch(TableRef(TableId("t"), "t", "memory:///t"), policy, HERE)
    for version, count in enumerate(added):
        deletes = tuple(DeleteFile(f"d{version}-{n}", WHOLE_TABLE, DeleteKind.EQUALITY, rows=3) for n in range(count))
        commit = Commit(version, version, "DELETE", added_deletes=deletes)
        batch.add(commit, fold(commit, HERE, policy))
    state = replace(stats_of_files(LIVE, policy.size_levels), dv_files=before)
    known = PartitionStates({WHOLE_TABLE: state}, UNCALIBRATED)
    made = batch.decide(known, NO_CONTENTION, TableSignals(0), 9).step.jobs
    return [JobPayload.decode(job.payload).rewrite_kind for job in made]


@pytest.mark.parametrize(
    ("before", "added", "expected"),
    [
        (3, (1,), []),
        (4, (1,), [RewriteKind.FULL]),
        (4, (7,), [RewriteKind.FULL]),
        # Above the number, as where a rewrite could not remove them, the next multiple counts.
        (5, (1,), []),
        (9, (1,), [RewriteKind.FULL]),
        # What one commit requests outlasts the next ones.
        (4, (1, 1, 1), [RewriteKind.FULL]),
    ],
)
def test_each_multiple_of_delete_files_requests_one_full_rewrite(
    before: int, added: tuple[int, ...], expected: list[RewriteKind]
) -> None:
    assert requested_by_deletes(replace(POLICY, full_every_delete_files=5), before, *added) == expected


def test_delete_files_alone_request_nothing_without_their_property_or_without_data_files() -> None:
    assert requested_by_deletes(POLICY, 4, 1) == []
    policy = replace(POLICY, full_every_delete_files=5)
    empty, reached = PartitionStats(dv_files=4), PartitionStats(dv_files=5)
    assert not reaches_delete_files(empty, reached, policy)
    assert reaches_delete_files(replace(empty, files=1), replace(reached, files=1), policy)


@pytest.mark.parametrize(("due_at", "kind"), [(2, RewriteKind.FULL), (None, RewriteKind.LEVELS)])
def test_what_the_number_of_commits_requests_outlasts_a_merge_that_a_later_commit_requests(
    due_at: int | None, kind: RewriteKind
) -> None:
    policy = replace(POLICY, full_every_commits=due_at)
    batch = CommitBatch(TableRef(TableId("t"), "t", "memory:///t"), policy, HERE)
    counts = NO_COMMITS
    for version in range(3):
        added = tuple(DataFile(f"s{version}-{number}", MIB, WHOLE_TABLE) for number in range(9))
        commit = Commit(version, version, "WRITE", added)
        folded = fold(commit, HERE, policy)
        counts = counts.after_commit(commit, folded.changes, policy)
        batch.add(commit, folded, counts=counts)
    known = PartitionStates({WHOLE_TABLE: stats_of_files(LIVE, policy.size_levels)}, UNCALIBRATED)
    (job,) = batch.decide(known, NO_CONTENTION, TableSignals(0), 9).step.jobs
    assert JobPayload.decode(job.payload).rewrite_kind is kind
