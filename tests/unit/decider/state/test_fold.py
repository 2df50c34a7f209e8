"""Folding: a commit changes the partitions it touches exactly, or says why the table must be rebuilt."""

from typing import Any

import pyarrow as pa
import pytest

from decider.state.file_columns import COLUMNS, FileColumns, LiveFiles, count_live, live_ids_of
from decider.state.fold import REPLACING_OPERATIONS, fold
from decider.state.refused_partitions import RefusedPartitions
from shared.errors import RefusedFiles
from shared.layout.file_selection import GENERATED_TAG
from shared.layout.partition_stats import EMPTY_STATS, IDLE_COMPACTED_TAG, SORT_LEVEL_TAG, PartitionStats
from shared.partition_refusals import NOTHING, PartitionRefusals, TableFingerprint, live_ids
from shared.partitions import WHOLE_TABLE
from shared.policy.levels import SMALL_LEVELS
from shared.policy.policy import MIB, Policy
from shared.queue.model import RefusalsChange
from shared.refusals import RefusalReason
from shared.table import (
    CommitOrigin,
    DataFile,
    DeleteFile,
    DeleteKind,
    PartitionColumn,
    PartitionKey,
    RemovedFile,
    Snapshot,
    TableMetadata,
    TableProtocol,
)
from tests.support.memory_log import commit, count_live_files, file, removed

POLICY = Policy()
HERE = TableMetadata("t-1")
PROTOCOL = TableProtocol(1, 2)
OTHER = PartitionKey('{"dt":"2026-01-02"}')


def test_adds_and_removes_change_each_touched_partition() -> None:
    old = file("a", 3 * MIB)
    made = fold(commit(added=(file("b"), file("c", partition=OTHER)), removed=(removed(old),)), HERE, POLICY)
    assert made.rebuild_reason is None
    before = count_live_files([old], POLICY)
    after = count_live_files([file("b"), file("c", partition=OTHER)], POLICY)
    assert {
        partition: before.get(partition, EMPTY_STATS) + change for partition, change in made.changes.items()
    } == after


def test_a_delete_by_deletion_vector_changes_deleted_rows_and_no_sizes() -> None:
    before, after = file("a"), file("a", dv_id="u1", deleted_rows=7)
    made = fold(commit(operation="DELETE", added=(after,), removed=(removed(before),)), HERE, POLICY)
    (change,) = made.changes.values()
    assert (change.files, change.bytes, change.dv_files, change.deleted_rows) == (0, 0, 1, 7)


def test_a_removal_without_size_is_completed_by_the_add_of_the_same_path() -> None:
    after = file("a", dv_id="u1", deleted_rows=7)
    made = fold(commit(added=(after,), removed=(RemovedFile("a"),)), HERE, POLICY)
    assert made.rebuild_reason is None
    assert made.changes[WHOLE_TABLE].files == 0


def test_settled_files_are_counted_and_a_removal_that_has_no_tags_never_hides_what_there_is_to_settle() -> None:
    settled, fresh = file("a", tags={IDLE_COMPACTED_TAG: "1"}), file("b")
    state = count_live_files([settled, fresh], POLICY)[WHOLE_TABLE]
    assert (state.small_files, state.idle_compaction_inputs(SMALL_LEVELS)) == (2, 1)

    def after(gone: DataFile, **more) -> PartitionStats:
        made = fold(commit(removed=(removed(gone, **more),)), HERE, POLICY)
        return (state + made.changes[WHOLE_TABLE]).clamped()

    assert after(settled) == count_live_files([fresh], POLICY)[WHOLE_TABLE]
    assert after(fresh) == count_live_files([settled], POLICY)[WHOLE_TABLE]
    assert after(settled, tags=None).idle_compaction_inputs(SMALL_LEVELS) == 1
    assert after(fresh, tags=None).idle_compaction_inputs(SMALL_LEVELS) == 1
    rewritten = fold(
        commit(added=(file("a", dv_id="u", tags=settled.tags),), removed=(removed(settled, tags=None),)), HERE, POLICY
    )
    assert rewritten.changes[WHOLE_TABLE].idle_compacted == EMPTY_STATS.idle_compacted


def test_a_rewrite_of_ours_tells_the_windows_of_what_it_removed_and_another_writers_does_not() -> None:
    policy = Policy(time_window_s=10)
    old = [file(f"o{n}", modified_ms=1_000) for n in range(3)]
    new = [file(f"n{n}", modified_ms=11_000) for n in range(3)]
    state = count_live_files([*old, *new], policy)[WHOLE_TABLE]
    assert [(at, one.small_files) for at, one in state.windows] == [(0, 3), (10_000, 3)]

    def after(tags: dict[str, str], *, by_us: bool = True) -> list[tuple[int, int]]:
        origin = CommitOrigin("j", 1) if by_us else None
        out = file("r", 3 * MIB, modified_ms=15_000, tags=tags)
        gone = tuple(removed(one) for one in old)
        made = commit(added=(out,), removed=gone, origin=origin, data_change=False)
        change = fold(made, HERE, policy).changes[WHOLE_TABLE]
        return [(at, one.small_files) for at, one in (state + change).clamped().windows]

    assert after({GENERATED_TAG: "0"}) == [(0, 1), (10_000, 3)]
    # Who does not say where the files lay has them taken out of both windows: nothing is promised that is not there.
    assert after({}) == after({}, by_us=False) == [(0, 0), (10_000, 1)]


@pytest.mark.parametrize("known", [{}, {"size_bytes": 5}, {"partition": WHOLE_TABLE}])
def test_a_removal_without_size_or_partition_is_not_guessed(known: dict[str, Any]) -> None:
    made = fold(commit(removed=(RemovedFile("gone", **known),)), HERE, POLICY)
    assert made.rebuild_reason is not None
    assert "gone" in made.rebuild_reason
    assert not made.changes


def test_files_that_are_added_again_without_data_change_do_not_count_twice() -> None:
    made = fold(commit(operation="COMPUTE STATS", added=(file("a"),), data_change=False), HERE, POLICY)
    assert made.rebuild_reason is not None


@pytest.mark.parametrize("operation", sorted(REPLACING_OPERATIONS))
def test_a_replaced_table_is_rebuilt(operation: str) -> None:
    assert fold(commit(operation=operation, added=(file("a"),)), HERE, POLICY).rebuild_reason is not None


@pytest.mark.parametrize("now", [TableMetadata("t-2"), TableMetadata("t-1", (PartitionColumn("dt", "dt", "date"),))])
def test_another_table_or_other_partition_columns_are_rebuilt(now: TableMetadata) -> None:
    assert fold(commit(metadata=now), HERE, POLICY).rebuild_reason is not None


def test_a_commit_without_file_actions_touches_nothing() -> None:
    made = fold(commit(operation="SET TBLPROPERTIES", metadata=TableMetadata("t-1", (), {"a": "b"})), HERE, POLICY)
    assert made.rebuild_reason is None
    assert not made.changes


def test_a_commit_with_a_file_outside_of_the_table_is_not_applied() -> None:
    made = fold(commit(added=(file("a"),), external="/lake/other/x"), HERE, POLICY)
    assert "/lake/other/x, which lies outside" in str(made.rebuild_reason)
    assert not made.changes


def test_delete_files_count_for_their_partition_from_the_commit_that_adds_them_to_the_one_that_removes_them() -> None:
    positions = DeleteFile("d1", WHOLE_TABLE, DeleteKind.POSITION, rows=7)
    values = DeleteFile("d2", OTHER, DeleteKind.EQUALITY, rows=3)
    made = fold(commit(operation="DELETE", added_deletes=(positions, values)), HERE, POLICY)
    assert {one: (state.dv_files, state.deleted_rows, state.files) for one, state in made.changes.items()} == {
        WHOLE_TABLE: (1, 7, 0),
        OTHER: (1, 0, 0),
    }
    counted = count_live(LiveFiles.of(Snapshot(1, 0, HERE, PROTOCOL, (), deletes=(positions, values))), POLICY)
    assert {partition: count.state for partition, count in counted.items()} == made.changes
    gone = fold(commit(2, added=(), removed_deletes=(positions, values)), HERE, POLICY)
    assert {made.changes[one] + change for one, change in gone.changes.items()} == {EMPTY_STATS}


KEYED = TableMetadata("t-1", sort_key=PartitionColumn("k", "k", "long"))
SORTED = Policy(sort_by="k")


def test_depths_by_folding_are_those_of_a_count_of_the_live_files() -> None:
    full = [file(f"f{at}", 200 * MIB, key_range=(at, at + 5)) for at in range(6)]
    again = file("s", 200 * MIB, key_range=(0, 9), tags={SORT_LEVEL_TAG: "1"})
    state = count_live_files(full, SORTED)[WHOLE_TABLE]
    gone = [removed(one, key_range=one.key_range, has_bounds=True) for one in full[:4]]
    made = fold(commit(added=(again, file("small", key_range=(0, 99))), removed=tuple(gone)), KEYED, SORTED)
    live = [*full[4:], again, file("small", key_range=(0, 99))]
    assert (state + made.changes[WHOLE_TABLE]).clamped() == count_live_files(live, SORTED)[WHOLE_TABLE]


def test_a_removal_of_a_full_file_without_bounds_rebuilds_a_sorted_table() -> None:
    full, small = file("f", 200 * MIB, key_range=(0, 9)), file("s", key_range=(0, 9))
    reason = fold(commit(removed=(removed(full),)), KEYED, SORTED).rebuild_reason
    assert reason == "removal of f names no bounds, and the table is sorted"
    assert fold(commit(removed=(removed(small),)), KEYED, SORTED).rebuild_reason is None
    assert fold(commit(removed=(removed(full),)), HERE, POLICY).rebuild_reason is None
    twin = file("f", 200 * MIB, key_range=(0, 9), dv_id="u1", deleted_rows=3)
    made = fold(commit(added=(twin,), removed=(removed(full),)), KEYED, SORTED)
    assert made.rebuild_reason is None
    assert made.changes[WHOLE_TABLE].depths == ()


def test_another_sort_key_rebuilds_the_table() -> None:
    made = fold(commit(metadata=KEYED), HERE, SORTED)
    assert made.rebuild_reason == "the sort key changed"
    assert fold(commit(metadata=KEYED), KEYED, SORTED).rebuild_reason is None


def test_ids_of_live_files_are_those_of_the_partitions_asked_for_in_columns_or_not() -> None:
    usual = [("b", 0), ("c", 1), ("d", 0)]
    same = {"size_bytes": 1, "modified_ms": 1, "is_idle_compacted": False, "is_cube": False}
    table = pa.Table.from_pylist([{"path": path, "partition": at, **same} for path, at in usual], COLUMNS)
    vector, third, unknown = file("a", dv_id="u1"), PartitionKey('{"dt":"3"}'), PartitionKey('{"dt":"4"}')
    others = (vector, file("e", partition=third))
    live = LiveFiles(Snapshot(1, 0, HERE, PROTOCOL, ()), FileColumns(table, (WHOLE_TABLE, OTHER)), others)
    assert live_ids_of(live, [WHOLE_TABLE, unknown]) == {
        WHOLE_TABLE: live_ids([vector, file("b"), file("d")]),
        unknown: {},
    }
    assert live_ids_of(live, [third]) == {third: live_ids([file("e")])}
    assert live_ids_of(live, []) == {}


def test_a_rebuild_lifts_each_refusal_of_a_file_that_is_not_live_with_the_same_deletes() -> None:
    here = TableFingerprint.of(HERE, POLICY)

    def refused(one: DataFile) -> PartitionRefusals:
        error = RefusedFiles("no", reason=RefusalReason.TYPES)
        return NOTHING.in_force(here).added(error, [one], POLICY, now_ms=1)

    vector, other = file("a", dv_id="u1"), file("b", partition=OTHER)
    stored = RefusedPartitions.of([(WHOLE_TABLE, refused(vector).encode()), (OTHER, refused(other).encode())])
    kept = stored.among({WHOLE_TABLE: live_ids([vector, file("c")])}, here, 1)
    assert kept == {WHOLE_TABLE: refused(vector), OTHER: NOTHING.in_force(here)}
    assert list(stored.changes(kept)) == [RefusalsChange(OTHER, refused(other).encode(), "")]
    changed = {WHOLE_TABLE: live_ids([file("a", dv_id="u2")]), OTHER: live_ids([other])}
    assert {key: len(one.refusals) for key, one in stored.among(changed, here, 1).items()} == {WHOLE_TABLE: 0, OTHER: 1}
