"""A commit takes the groups whose inputs are live, removes what hides nothing after it, and is found by its own id."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import pytest

from actor.formats.iceberg.commit import IcebergTarget
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.newest_inputs import Inputs
from actor.formats.iceberg.staged import IcebergFile, NewDeletes, Replacement, StagedGroup
from actor.proofread.model import Proof, Reading
from actor.rewrite.late_rows import Comparisons, Positions
from actor.rewrite.model import Attempt
from shared.errors import OtherTable, RetryableError
from shared.formats.iceberg.deletes import deletes_id
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.names import COMMIT_KEY, PROOFREAD_KEY, TAGS_KEY, WRITE_KEY, YIELD, YIELD_KEY
from shared.formats.iceberg.orphans import MIN_ORPHAN_AGE_MS
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import CommitOrigin, DataFile, DeleteKind, PartitionKey, TableMetadata, TableProtocol

MARK = CommitMetadata(CommitOrigin("j", 1)).encode()
TAGGED = {"lakewright.idle_compacted": "1"}


class FakeTable:
    """A table of snapshots; `removed`: data files that others removed, `of_stream`: new deletes of the partition.

    rows: by the name of a delete file, the positions that it names by data file.
    """

    location = "catalog://c/db/t"

    def __init__(self, deletes: tuple[AppliedDelete, ...] = ()) -> None:
        self.removed: set[str] = set()
        self.deletes = deletes
        self.changes: list[Replacement] = []
        self.chain = [SnapshotRecord(1, None, 1, 100, "m", "append", {"total-data-files": "2"})]
        self.rolled_back_to: int | None = None
        self.refused: Exception | None = None
        self.of_stream: tuple[AppliedDelete, ...] = ()
        self.rows: dict[str, dict[str, list[int]]] = {}
        self.followings: list[tuple[int, int]] = []
        self.read: list[tuple[str, tuple[str, ...]]] = []
        self.compared: list[tuple[Positions, list[int]]] = []
        self.is_same = True
        self.hidden: dict[str, Sequence[int]] = {}
        self.rest: dict[str, Sequence[str]] = {}
        self.failure: Exception | None = None
        self.deleted: list[str] = []
        self.updated_later_ms = 0
        self.configuration: dict[str, str] = {}

    def target(self) -> IcebergTarget:
        made = IcebergTarget(self, self, self.head(), MARK, Comparisons(self._compare))
        made.write_id = "w-1"
        return made

    def _compare(self, _: StagedGroup, chosen: Positions, places: Sequence[int]) -> bool:
        self.compared.append((chosen, list(places)))
        return self.is_same

    def check(self, head: TableHead) -> None:
        if self.refused is not None:
            raise self.refused

    def head(self) -> TableHead:
        snapshots = {one.id: one for one in self.chain}
        last = self.chain[-1]
        current = self.rolled_back_to or last.id
        return TableHead(
            "file:///t",
            TableMetadata("u", (), self.configuration),
            TableProtocol(2, 2),
            last.timestamp_ms + self.updated_later_ms,
            current,
            {},
            snapshots,
        )

    refresh = head

    def others_commit(self, *removed: str) -> None:
        self.removed |= set(removed)
        self.add({})

    def add(self, summary: Mapping[str, str]) -> None:
        last = self.chain[-1]
        self.chain.append(SnapshotRecord(last.id + 1, last.id, 0, last.timestamp_ms + 1, "m", "replace", summary))

    def inputs(
        self, head: TableHead, snapshot: int, *, partitions: Collection[PartitionKey] | None
    ) -> Mapping[str, LiveInput]:
        assert (snapshot, partitions, len(self.chain)) == (1, None, 1), "before the table is refreshed"
        return {path: live_input(path, *self.deletes) for path in ("a1", "a2")}

    def live(self, snapshot: int, groups: Iterable[FileGroup]) -> Inputs:
        raise AssertionError("a table is scanned again")

    def followed(self, inputs: Inputs, since: int, until: int) -> Inputs | None:
        assert since < until == self.chain[-1].id
        self.followings.append((since, until))
        return {path: live_input(path, *self.of_stream) for path in inputs if path not in self.removed}

    def named(self, path: str, deletes: Sequence[AppliedDelete]) -> Sequence[int] | None:
        self.read.append((path, tuple(one.path for one in deletes)))
        return sorted({row for one in deletes for row in self.rows.get(one.path, {}).get(path, ())})

    def hide(self, output: object, places: Sequence[int]) -> NewDeletes:
        if self.failure is not None and self.hidden:
            raise self.failure
        self.hidden[str(output)] = places
        return NewDeletes(f"late-{output}", f"late-{output}", 20)

    def without(self, shared: AppliedDelete, paths: Sequence[str]) -> NewDeletes | None:
        self.rest[shared.path] = paths
        is_left = any(path not in paths for path in self.rows[shared.path])
        return NewDeletes(f"rest-{shared.path}", f"rest-{shared.path}", 20, sequence=7) if is_left else None

    def commit(self, change: Replacement, *, since: int, summary: Mapping[str, str]) -> None:
        assert since == 1
        self.changes.append(change)
        self.add(summary)

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int | None]:
        return dict.fromkeys(paths, 20)

    def delete(self, paths: Iterable[str]) -> None:
        self.deleted += paths


def live_input(path: str, *deletes: AppliedDelete) -> LiveInput:
    return LiveInput(path, 10, 5, 0, deletes, DataFile(path, 10, WHOLE_TABLE, rows=5))


def written(name: str, tags: Mapping[str, str] | None = None, deletes: tuple[AppliedDelete, ...] = ()) -> StagedGroup:
    inputs = (live_input(f"{name}1", *deletes), live_input(f"{name}2", *deletes))
    group = FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.FULL, tags=tags or {})
    output = IcebergFile(DataFile(f"data/out-{name}", 20, WHOLE_TABLE, rows=10), f"java {name}")
    return StagedGroup(InputGroup(group, inputs), (output,), 10, in_order=True)


A, B = written("a"), written("b", TAGGED)


def begin(table: FakeTable, after: Sequence[str] | None = ()) -> Attempt[StagedGroup]:
    """Begin an attempt after others have committed, having removed these files; None: others have not."""
    target = table.target()
    if after is not None:
        table.others_commit(*after)
    return target.begin((A, B))


def test_a_commit_carries_job_token_write_and_tags_and_is_found_by_its_write() -> None:
    table = FakeTable()
    target = table.target()
    attempt = target.begin((A, B))
    assert target.find(attempt) is None
    assert (target.commit(attempt), attempt.groups, target.find(attempt)) == (101, (A, B), 101)
    assert table.changes == [Replacement((A, B), (), 1)]
    assert table.chain[-1].summary == {
        COMMIT_KEY: MARK,
        WRITE_KEY: "w-1",
        PROOFREAD_KEY: "unverified",
        TAGS_KEY: '{"out-b":{"lakewright.idle_compacted":"1"}}',
    }
    assert TAGS_KEY not in target.summary([A])


def test_a_commit_follows_the_metadata_that_it_was_made_upon_unless_others_came_between() -> None:
    table = FakeTable()
    target = table.target()
    assert target.follows(101) is None
    table.others_commit()
    table.updated_later_ms = 7
    attempt = target.begin((A, B))
    assert target.commit(attempt) == 102
    assert [target.follows(version) for version in (102, 101)] == [108, None]
    beaten = target.begin((A, B))
    table.others_commit()
    target.write_id = "w-2"
    assert target.commit(beaten) == 104
    assert target.follows(104) is None


def test_each_write_has_an_id_of_its_own_that_people_can_search_for() -> None:
    table = FakeTable()
    comparisons: Comparisons[StagedGroup] = Comparisons(lambda *_: True)
    one, two = (IcebergTarget(table, table, table.head(), MARK, comparisons) for _ in range(2))
    assert one.write_id != two.write_id
    assert one.mark == f"job j, token 1, {WRITE_KEY} {one.write_id}"


def test_a_group_whose_input_is_gone_is_left_out_before_the_commit() -> None:
    attempt = begin(FakeTable(), ["a2"])
    assert (attempt.groups, attempt.set_aside) == ((B,), {A.live.group: "input_gone"})


STREAMED = AppliedDelete("d", DeleteKind.POSITION, 2, is_exact=False, partition=WHOLE_TABLE)


def test_deletes_of_a_streams_own_new_files_are_no_conflict_with_an_input() -> None:
    """They apply to every file of the partition; read, they name none of these, and later ones are still validated."""
    table = FakeTable()
    table.of_stream = (STREAMED,)
    attempt = begin(table)
    assert (attempt.groups, attempt.made_good) == ((A, B), {})
    assert sorted(table.read) == [(path, ("d",)) for path in ("a1", "a2", "b1", "b2")]
    assert attempt.base == Replacement((A, B), (), 2), "they hide rows of the stream's files, and stay"


def test_a_commit_is_validated_from_the_snapshot_whose_deletes_were_read() -> None:
    """Also where no delete file is new: then that is known until this snapshot."""
    table = FakeTable()
    assert (begin(table).base.checked_until, table.read) == (2, [])


def test_rows_of_inputs_that_others_deleted_are_hidden_in_the_same_commit() -> None:
    """The delete file that names them goes, and what it names in other files is written again."""
    table = FakeTable()
    table.of_stream = (STREAMED,)
    table.rows["d"] = {"a1": [0, 4], "a2": [3], "other": [1]}
    attempt = begin(table)
    assert (attempt.groups, table.hidden) == ((A, B), {"java a": (0, 4, 8)})
    assert table.compared == [([[0, 4], [3]], [0, 4, 8])]
    late, b = attempt.committed
    assert [one.name for one in late.deletes] == ["late-java a", "rest-d"]
    assert [one.sequence for one in late.deletes] == [None, 7]
    assert (late.rows, late.outputs[0].file.deleted_rows, b) == (7, 3, B)
    assert late.outputs[0].file.dv_id == deletes_id(["late-java a"], has_values=False)
    assert table.rest == {"d": ["a1", "a2", "b1", "b2"]}
    assert attempt.base == Replacement(attempt.committed, (STREAMED,), 2)
    assert late.sizes == {"data/out-a": 20, "late-java a": 20, "rest-d": 20}


def test_each_attempt_hides_what_is_deleted_in_the_snapshot_that_it_is_made_upon() -> None:
    table, more = FakeTable(), replace(STREAMED, path="e")
    target = table.target()
    table.rows |= {"d": {"a1": [0]}, "e": {"a1": [1]}}
    for of_stream, places in (((STREAMED,), (0,)), ((STREAMED, more), (0, 1))):
        table.others_commit()
        table.of_stream = of_stream
        attempt = target.begin((A, B))
        assert (table.hidden, attempt.base.deletes) == ({"java a": places}, of_stream)
        assert attempt.base.checked_until == table.chain[-1].id
        assert attempt.groups == (A, B), "the next attempt begins with what was written"
    assert table.followings == [(1, 2), (2, 3)], "nothing is read twice"


def test_rows_of_a_group_that_is_set_aside_stay_deleted() -> None:
    """The delete file that names them goes with the late rows of another group: it is written again with these."""
    table = FakeTable()
    table.of_stream, table.rows["d"] = (STREAMED,), {"a1": [0], "b1": [1]}
    target, b = table.target(), replace(B, in_order=False)
    table.others_commit()
    attempt = target.begin((A, b))
    assert (attempt.groups, table.rest) == ((A,), {"d": ["a1", "a2"]})
    assert [one.name for one in attempt.committed[0].deletes] == ["late-java a", "rest-d"]


def test_late_rows_that_no_reader_compares_take_their_group() -> None:
    table = FakeTable()
    table.of_stream, table.rows["d"], table.is_same = (STREAMED,), {"b2": [0]}, False
    attempt = begin(table)
    assert (attempt.groups, attempt.set_aside) == ((A,), {B.live.group: "not_compared"})


def test_what_was_written_for_an_attempt_that_cannot_be_made_is_deleted() -> None:
    table = FakeTable()
    table.of_stream, table.rows["d"] = (STREAMED,), {"a1": [0], "b1": [0]}
    table.failure = RetryableError("the disk is full")
    with pytest.raises(RetryableError, match="full"):
        begin(table)
    assert table.deleted == ["late-java a"]


def test_a_table_without_snapshots_has_no_live_inputs() -> None:
    table = FakeTable()
    target, empty = table.target(), replace(table.head(), current=None)
    table.refresh = lambda: empty  # type: ignore[method-assign]
    assert target.begin((A, B)).groups == ()


def test_inputs_of_a_snapshot_that_main_no_longer_leads_through_are_not_committed() -> None:
    table = FakeTable()
    target = table.target()
    table.chain = [SnapshotRecord(2, None, 1, 100, "m", "append")]
    attempt = target.begin((A, B))
    assert (attempt.groups, {*attempt.set_aside.values()}) == ((), {"no_history"})


def test_another_table_is_not_committed_to() -> None:
    table = FakeTable()
    table.refused = OtherTable("another", field="table_uuid")
    with pytest.raises(OtherTable):
        begin(table, None)


def test_a_commit_of_the_same_job_and_token_by_another_write_is_not_this_one() -> None:
    table = FakeTable()
    target = table.target()
    attempt = target.begin((A, B))
    table.add({COMMIT_KEY: MARK, WRITE_KEY: "w-0"})
    assert target.find(attempt) is None


def test_a_commit_that_the_catalog_has_undone_for_a_writer_is_not_taken_for_made() -> None:
    """Its answer was lost: the writer's snapshot is in its place, and nothing names its files."""
    table = FakeTable()
    target = table.target()
    attempt = target.begin((A, B))
    assert target.commit(attempt) is not None
    ours = table.chain.pop()
    table.chain.append(SnapshotRecord(9, ours.parent, 0, ours.timestamp_ms - 1, "m", "append"))
    assert target.find(attempt) is None


@pytest.mark.parametrize(
    ("text", "is_asked"), [("on", True), ("TRUE", True), ("off", False), ("maybe", False), (None, False)]
)
def test_a_rewrite_lets_itself_be_undone_where_the_newest_properties_of_the_table_ask_for_it(
    text: str | None, is_asked: bool
) -> None:
    table = FakeTable()
    target = table.target()
    table.configuration = {} if text is None else {"lakewright.yield-to-writers": text}
    attempt = target.begin((A, B))
    target.commit(attempt)
    assert (table.chain[-1].summary.get(YIELD_KEY) == YIELD) is is_asked


def test_a_commit_that_was_rolled_back_at_once_is_not_taken_for_refused() -> None:
    """Its snapshot still refers to its files."""
    table = FakeTable()
    target = table.target()
    attempt = target.begin((A, B))
    target.commit(attempt)
    table.rolled_back_to = 1
    with pytest.raises(RetryableError, match="rolled back since"):
        target.find(attempt)


def test_a_commit_whose_snapshot_may_have_expired_since_is_not_taken_for_refused() -> None:
    """Its answer was lost, others appended, and all snapshots but the newest expired: the outputs are live."""
    table = FakeTable()
    target = table.target()
    attempt = target.begin((A, B))
    target.commit(attempt)
    table.others_commit()
    table.chain = table.chain[-1:]
    with pytest.raises(RetryableError, match="as orphans"):
        target.find(attempt)


@pytest.mark.parametrize("others", [None, ["b1"]])
def test_delete_files_that_hide_nothing_afterwards_are_removed_in_the_same_commit(others: list[str] | None) -> None:
    """Judged by all files of the table at the read, whatever others have done since."""
    delete = replace(STREAMED, is_of_one_file=True)
    table = FakeTable((delete,))
    table.of_stream = (delete,)
    group = written("a", deletes=(delete,))
    target = table.target()
    for attempt in (1, 2):
        if attempt == 2 and others is not None:
            table.others_commit(*others)
        assert target.begin((group,)).base == Replacement((group,), (delete,), table.chain[-1].id)


@pytest.mark.parametrize(
    ("readings", "text"),
    [
        ((Reading.ROWS, Reading.ROWS), "rows"),
        ((Reading.ROWS, Reading.BYTES), "bytes"),
        ((Reading.BYTES, Reading.NONE), "unverified"),
        ((Reading.ROWS, None), "unverified"),
    ],
)
def test_a_commit_says_what_all_of_its_groups_were_compared_by_at_least(
    readings: tuple[Reading | None, ...], text: str
) -> None:
    groups = [replace(A, proof=None if one is None else Proof(one)) for one in readings]
    assert FakeTable().target().summary(groups)[PROOFREAD_KEY] == text


def test_files_are_measured_and_deleted_by_the_table_and_not_committed_at_half_the_age_of_an_orphan() -> None:
    table = FakeTable()
    target = table.target()
    assert target.sizes(["a"]) == {"a": 20}
    target.delete(["a"])
    assert (table.deleted, target.max_output_age_s * 2_000) == (["a"], MIN_ORPHAN_AGE_MS)
