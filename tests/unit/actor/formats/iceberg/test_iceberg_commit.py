"""A commit takes the groups that are live, is made once, and deletes only what no snapshot can refer to."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from actor.formats.iceberg.commit import (
    MAX_OUTPUT_AGE_S,
    IcebergCommit,
    IcebergCommitter,
    Replacement,
    Signature,
    StagedGroup,
)
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from shared.commit_metadata import CommitMetadata
from shared.errors import Conflict, LeaseLost, OtherTable, RetryableError
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.names import COMMIT_KEY, TAGS_KEY, WRITE_KEY
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import CommitOrigin, DataFile, DeleteKind, TableMetadata, TableProtocol
from tests.unit.actor.formats.iceberg.test_iceberg_conflicts import java

MARK = CommitMetadata(CommitOrigin("j", 1)).encode()
SIGNATURE = Signature(MARK, "w-1")
TAGGED = {"lakewright.idle_compacted": "1"}


class FakeTable:
    """A table whose commits do what the test lists: None succeeds, an error is raised, before or after the commit."""

    location = "catalog://c/db/t"

    def __init__(self, *plan: Exception | None, made: bool = True) -> None:
        self.plan = list(plan)
        self.made = made
        self.removed: set[str] = set()
        self.deleted: list[str] = []
        self.commits: list[tuple[str, ...]] = []
        self.removed_deletes: list[str] = []
        self.chain = [SnapshotRecord(1, None, 1, 100, "m", "append")]
        self.rolled_back_to: int | None = None
        self.unreadable: Exception | None = None
        self.refused: Exception | None = None
        self.undeletable: Exception | None = None

    def head(self) -> TableHead:
        snapshots = {one.id: one for one in self.chain}
        last = self.chain[-1]
        current = self.rolled_back_to or last.id
        return TableHead(
            "file:///t", TableMetadata("u"), TableProtocol(2, 2), last.timestamp_ms, current, {}, snapshots, {}
        )

    def refresh(self) -> TableHead:
        if self.unreadable is not None:
            raise self.unreadable
        return self.head()

    def check(self, head: TableHead) -> None:
        if self.refused is not None:
            raise self.refused

    def others_commit(self, *removed: str) -> None:
        self.removed |= set(removed)
        self._add({})

    def _add(self, summary: Mapping[str, str]) -> None:
        last = self.chain[-1]
        self.chain.append(SnapshotRecord(last.id + 1, last.id, 0, last.timestamp_ms + 1, "m", "replace", summary))

    def live(self, snapshot: int, groups: Iterable[FileGroup]) -> Mapping[str, LiveInput]:
        assert snapshot == self.chain[-1].id
        paths = [file.path for group in groups for file in group.files]
        return {path: live_input(path) for path in paths if path not in self.removed}

    def commit(self, change: Replacement, *, since: int, summary: Mapping[str, str]) -> None:
        assert since == 1
        self.commits.append(tuple(one.path for group in change.groups for one in group.live.inputs))
        self.removed_deletes = [one.path for one in change.deletes]
        error = self.plan.pop(0) if self.plan else None
        if error is None or self.made:
            self._add(summary)
        if error is not None:
            raise error

    def delete(self, paths: Iterable[str]) -> None:
        if self.undeletable is not None:
            raise self.undeletable
        self.deleted += paths


class Allows:
    """Allows every commit, or none."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.refusal = refusal

    def may_commit(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    def should_stop(self) -> bool:
        return False

    def reached(self, point: str) -> None:
        """Nothing waits for it."""


def live_input(path: str) -> LiveInput:
    return LiveInput(path, 10, 5, 0, (), DataFile(path, 10, WHOLE_TABLE, rows=5))


def written(name: str, **more: Mapping[str, str]) -> StagedGroup:
    inputs = (live_input(f"{name}1"), live_input(f"{name}2"))
    group = FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.FULL, **more)
    return StagedGroup(InputGroup(group, inputs), (DataFile(f"data/out-{name}", 20, WHOLE_TABLE, rows=10),), 10)


A, B = written("a"), written("b", tags=TAGGED)


def commit(table: FakeTable, control: Allows | None = None, *, attempts: int = 3) -> IcebergCommit:
    return IcebergCommitter(table, SIGNATURE, control or Allows(), since=1).commit((A, B), attempts=attempts)


def test_a_commit_carries_job_token_write_and_tags_and_is_found_by_its_write() -> None:
    table = FakeTable()
    result = commit(table)
    assert (result.version, result.committed, result.conflicts) == (101, (A, B), 0)
    assert table.chain[-1].summary == {
        COMMIT_KEY: MARK,
        WRITE_KEY: "w-1",
        TAGS_KEY: '{"out-b":{"lakewright.idle_compacted":"1"}}',
    }
    assert TAGS_KEY not in SIGNATURE.summary([A])
    assert table.deleted == []


def test_a_group_whose_input_is_gone_is_left_out_before_the_commit_and_its_output_deleted() -> None:
    table = FakeTable()
    table.others_commit("a2")
    result = commit(table)
    assert (result.committed, result.conflicted, result.conflicts) == ((B,), (A.live.group,), 1)
    assert table.commits == [("b1", "b2")]
    assert table.deleted == ["data/out-a"]


def test_a_refused_commit_is_tried_again_with_the_groups_that_are_left() -> None:
    table = FakeTable(java("ValidationException"), made=False)
    real = table.commit

    def refuse_once(change: Replacement, **more: object) -> None:
        if not table.commits:
            table.others_commit("b1")
        real(change, **more)  # type: ignore[arg-type]

    table.commit = refuse_once  # type: ignore[method-assign]
    result = commit(table)
    assert (result.committed, result.conflicted, result.conflicts) == ((A,), (B.live.group,), 1)
    assert table.commits == [("a1", "a2", "b1", "b2"), ("a1", "a2")]
    assert table.deleted == ["data/out-b"]


def test_where_no_group_is_left_nothing_is_committed() -> None:
    table = FakeTable()
    table.others_commit("a1", "b1")
    result = commit(table)
    assert (result.version, result.committed, result.conflicts) == (None, (), 1)
    assert table.commits == []
    assert table.deleted == ["data/out-a", "data/out-b"]


def test_a_table_without_snapshots_has_no_live_inputs() -> None:
    table = FakeTable()
    empty = replace(table.head(), current=None)
    table.refresh = lambda: empty  # type: ignore[method-assign]
    assert commit(table).version is None


def test_others_that_are_always_faster_end_in_a_conflict_without_files() -> None:
    table = FakeTable(*[java("CommitFailedException")] * 3, made=False)
    with pytest.raises(Conflict, match="3 times"):
        commit(table)
    assert len(table.commits) == 3
    assert table.deleted == ["data/out-a", "data/out-b"]


@pytest.mark.parametrize("name", ["CommitStateUnknownException", "SocketTimeoutException", "CommitFailedException"])
def test_a_commit_that_was_made_is_found_although_its_answer_was_an_error(name: str) -> None:
    table = FakeTable(java(name))
    result = commit(table)
    assert (result.version, result.committed) == (101, (A, B))
    assert len(table.commits) == 1
    assert table.deleted == []


def test_after_an_unknown_outcome_nothing_is_deleted_and_nothing_tried_again() -> None:
    table = FakeTable(java("CommitStateUnknownException"), made=False)
    with pytest.raises(RetryableError, match="no snapshot shows it"):
        commit(table)
    assert len(table.commits) == 1
    assert table.deleted == []


def test_an_unknown_outcome_of_a_table_that_cannot_be_read_deletes_nothing() -> None:
    table = FakeTable(java("CommitFailedException"), made=False)
    real = table.commit

    def then_down(change: Replacement, **more: object) -> None:
        table.unreadable = ConnectionError("down")
        real(change, **more)  # type: ignore[arg-type]

    table.commit = then_down  # type: ignore[method-assign]
    with pytest.raises(RetryableError, match="cannot be read"):
        commit(table)
    assert table.deleted == []


def test_a_commit_of_the_same_job_and_token_by_another_write_is_not_this_one() -> None:
    table = FakeTable(java("CommitStateUnknownException"), made=False)
    table._add({COMMIT_KEY: MARK, WRITE_KEY: "w-0"})
    with pytest.raises(RetryableError):
        commit(table)


def test_a_commit_that_expired_at_once_is_reported() -> None:
    table = FakeTable()
    table._add = lambda _: None  # type: ignore[method-assign]
    with pytest.raises(RetryableError, match="no snapshot shows it"):
        commit(table)


@pytest.mark.parametrize("error", [None, java("CommitFailedException"), java("SocketTimeoutException")])
def test_a_commit_that_was_rolled_back_at_once_keeps_its_files_whatever_its_answer(error: Exception | None) -> None:
    table = FakeTable(error)
    real = table.commit

    def then_rolled_back(change: Replacement, **more: object) -> None:
        table.rolled_back_to = 1
        real(change, **more)  # type: ignore[arg-type]

    table.commit = then_rolled_back  # type: ignore[method-assign]
    with pytest.raises(RetryableError, match="rolled back since"):
        commit(table)
    assert len(table.commits) == 1
    assert table.deleted == []


@pytest.mark.parametrize("name", ["CommitFailedException", "ValidationException", "CommitStateUnknownException"])
def test_a_commit_whose_snapshot_may_have_expired_since_keeps_its_files(name: str) -> None:
    """Its answer was lost, others appended, and all snapshots but the newest expired: the outputs are live."""
    table = FakeTable(java(name))
    real = table.commit

    def then_expired(change: object, **more: object) -> None:
        try:
            real(change, **more)  # type: ignore[arg-type]
        finally:
            table.others_commit()
            table.chain = table.chain[-1:]

    table.commit = then_expired  # type: ignore[method-assign,assignment]
    with pytest.raises(RetryableError, match="as orphans"):
        commit(table)
    assert len(table.commits) == 1
    assert table.deleted == []


def test_inputs_of_a_snapshot_that_main_no_longer_leads_through_are_not_committed() -> None:
    table = FakeTable()
    table.chain = [SnapshotRecord(2, None, 1, 100, "m", "append")]
    result = commit(table)
    assert (result.version, result.committed, result.conflicts) == (None, (), 1)
    assert table.commits == []
    assert table.deleted == ["data/out-a", "data/out-b"]


def test_outputs_that_a_vacuum_could_take_for_orphans_are_not_committed() -> None:
    times = [0.0]

    class Clocked(IcebergCommitter):
        clock_s = staticmethod(lambda: times[0])

    table = FakeTable()
    committer = Clocked(table, SIGNATURE, Allows(), since=1)
    times[0] = MAX_OUTPUT_AGE_S + 1.0
    with pytest.raises(Conflict, match="a vacuum deletes files that no snapshot names"):
        committer.commit((A, B), attempts=3)
    assert (table.commits, table.deleted) == ([], ["data/out-a", "data/out-b"])


@pytest.mark.parametrize("where", ["lease", "check", "refresh"])
def test_what_forbids_the_commit_leaves_no_files(where: str) -> None:
    table, control = FakeTable(), Allows()
    error: Exception = LeaseLost("gone")
    if where == "lease":
        control.refusal = error
    elif where == "check":
        error = table.refused = OtherTable("another")
    else:
        error = table.unreadable = ConnectionError("down")
    with pytest.raises(type(error)):
        commit(table, control)
    assert table.commits == []
    assert table.deleted == ["data/out-a", "data/out-b"]


def test_files_that_cannot_be_deleted_do_not_hide_why_they_should_be() -> None:
    table = FakeTable()
    table.others_commit("a1", "b1")
    table.undeletable = OSError("read-only")
    assert commit(table).version is None


def test_delete_files_that_hide_nothing_afterwards_are_removed_in_the_same_commit() -> None:
    table = FakeTable()
    delete = AppliedDelete("d", DeleteKind.POSITION, 1, is_exact=False, partition=WHOLE_TABLE)
    inputs = tuple(replace(live_input(path), deletes=(delete,)) for path in ("a1", "a2"))
    group = replace(A, live=InputGroup(A.live.group, inputs))
    committer = IcebergCommitter(table, SIGNATURE, Allows(), since=1, at_read={one.path: one for one in inputs})
    assert committer.commit([group], attempts=1).committed == (group,)
    assert table.removed_deletes == ["d"]
