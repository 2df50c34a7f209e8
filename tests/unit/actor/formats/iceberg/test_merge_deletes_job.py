"""A job that merges delete files asks before each commit, says what it did, and leaves no file that nothing names."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from actor.formats.iceberg import delete_groups, merge_deletes_job
from actor.formats.iceberg.convert_deletes import Conversion
from actor.formats.iceberg.delete_groups import DeleteGroups, LiveDeletes, groups_of
from actor.formats.iceberg.inputs import AppliedDelete, LiveInput
from actor.formats.iceberg.merge_deletes_job import MOST_LOST, NOTHING, TOO_MANY, VALUES_TOO_MANY, MergeDeletesJob
from actor.formats.iceberg.staged import NewDeletes
from actor.ports import TableJob, TableJobOutcome
from actor.proofread.model import DeleteForm, Proof, Reading, Rewritten
from shared.errors import Conflict, Difference, LeaseLost, RefusedFiles, RetryableError, Unsupported
from shared.formats.iceberg import delete_merges
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import COMMIT_KEY, CONVERTED_KEY, PROOFREAD_KEY
from shared.formats.iceberg.positions import position_digest
from shared.layout import commit_metadata
from shared.layout.upkeep import CONVERT_DELETES, MERGE_DELETES
from shared.paths.boundary import Boundary
from shared.policy.policy import Policy
from shared.refusals import RefusalReason
from shared.table import CommitOrigin, DeleteKind, ExaminedTable
from tests.support.java_errors import JavaError
from tests.support.local_vacuum import Control
from tests.support.memory_snapshots import KEYS, Footers, MemorySnapshots

JOB = TableJob(MERGE_DELETES.kind, "t", Policy(), CommitOrigin("job", 7))
CONVERTS = replace(JOB, kind=CONVERT_DELETES.kind)


LOST = JavaError("NotFoundException", message="org.apache.iceberg.exceptions.NotFoundException: gone")


def proved(_: Rewritten) -> Proof:
    return Proof(Reading.ROWS, 0)


def run(
    table: MemorySnapshots,
    control: Control | None = None,
    job: TableJob = JOB,
    check: Callable[[TableHead], None] | None = None,
    prove: Callable[[Rewritten], Proof] = proved,
    boundary: Boundary = Boundary(),  # noqa: B008 - it is frozen
) -> TableJobOutcome:
    control, check = control or Control(), check or table.check
    conversion = Conversion(table, lambda _: KEYS, Footers(), prove) if job.kind == CONVERT_DELETES.kind else None
    return MergeDeletesJob(
        table, table, job, control, check, boundary, prove, pause=lambda _: None, conversion=conversion
    ).run()


def left_by(table: MemorySnapshots, **options: Any) -> str:
    """Return why a run leaves a table as it is, which holds the next one."""
    before, rows = table.current, table.rows()
    with pytest.raises(RefusedFiles) as refused:
        run(table, **options)
    assert (table.current, table.rows(), table.orphans()) == (before, rows, set())
    assert refused.value.reason is RefusalReason.UNSUPPORTED
    return str(refused.value)


def table_of(files: int, *, deletes: int = 2) -> tuple[MemorySnapshots, list[str]]:
    """Return a table of files with ten rows each, each with so many delete files of its own."""
    table = MemorySnapshots()
    paths = [table.write(range(10 * number, 10 * number + 10)) for number in range(files)]
    table.make(dict.fromkeys(paths), {})
    for place in range(deletes):
        table.delete_places([(path, place) for path in paths], in_one_file=False)
    return table, paths


def read(table: MemorySnapshots) -> LiveDeletes:
    found = table.look(table.head())
    assert found is not None
    return found


def test_one_delete_file_is_left_of_each_data_file_in_a_commit_of_the_job() -> None:
    table, _ = table_of(2)
    rows, control = table.rows(), Control()
    done = run(table, control)
    assert (done.figures, control.figures) == ({"replaced": 4, "written": 2, "removed": 0}, done.figures)
    assert (len(done.commits), done.is_complete, done.reason, control.changes) == (1, True, "", 1)
    mark = commit_metadata.decode(table.now.summary[COMMIT_KEY])
    assert mark is not None
    assert (mark.origin, mark.mode) == (JOB.origin, MERGE_DELETES.kind)
    assert table.now.summary[PROOFREAD_KEY] == "rows"
    assert (table.rows(), len(table.now.deletes)) == (rows, 2)
    again = run(table)
    assert (again.commits, again.reason) == ((), NOTHING)


def test_from_version_3_on_vectors_are_written_and_compared() -> None:
    table, _ = table_of(2, deletes=1)
    table.has_vectors = True
    rows, asked = table.rows(), list[DeleteForm]()

    def note(group: Rewritten) -> Proof:
        asked.extend(delete.form for one in group.outputs for delete in one.deletes)
        return proved(group)

    assert run(table, prove=note).figures == {"replaced": 2, "written": 2, "removed": 0}
    assert asked == [DeleteForm.PUFFIN_VECTOR] * 2
    assert {table.written[name].kind for name in table.now.deletes} == {DeleteKind.VECTOR}
    assert table.rows() == rows


def test_what_hides_nothing_goes_without_a_merge() -> None:
    table, (one, two) = table_of(2, deletes=1)
    table.make({}, {}, [one])
    done = run(table)
    assert done.figures == {"replaced": 0, "written": 0, "removed": 1}
    assert PROOFREAD_KEY not in table.now.summary
    assert table.rows() == list(range(11, 20))
    assert [delete.path for one in read(table).inputs for delete in one.deletes] == [
        name for name in table.now.deletes if table.written[name].only == two
    ]


def test_positions_that_no_file_has_leave_no_delete_file() -> None:
    table, (one,) = table_of(1, deletes=0)
    for _ in range(2):
        name = table._write(DeleteKind.POSITION, {one: (), "another": (1,), "third": (2,)})
        table.make({}, {name: None})
    done = run(table)
    assert (done.figures, table.now.deletes) == ({"replaced": 2, "written": 0, "removed": 0}, {})


def test_many_data_files_take_several_commits_and_a_stop_comes_between_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_deletes_job, "MOST_FILES", 2)
    table, _ = table_of(5)
    rows, control = table.rows(), Control()
    control.stop_after = 1
    done = run(table, control)
    assert (len(done.commits), done.figures["written"], done.is_complete) == (1, 2, False)
    done = run(table)
    assert (len(done.commits), done.figures["written"], done.is_complete) == (2, 3, True)
    assert table.rows() == rows


def test_data_files_that_are_named_together_are_committed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_deletes_job, "MOST_FILES", 2)
    table, paths = table_of(3, deletes=0)
    for place in range(2):
        table.delete_places([(path, place) for path in paths], in_one_file=True)
    rows, done = table.rows(), run(table)
    assert (len(done.commits), done.figures) == (1, {"replaced": 2, "written": 3, "removed": 0})
    assert table.rows() == rows


def test_a_job_that_is_not_wanted_or_a_table_without_snapshots_is_left_alone() -> None:
    table, _ = table_of(1)
    before = table.current
    changed = run(table, job=replace(JOB, policy_digest="of other properties"))
    assert "properties changed" in changed.reason

    def refuse(_head: TableHead) -> None:
        raise Unsupported("encrypted")

    with pytest.raises(Unsupported, match="encrypted"):
        run(table, check=refuse)
    assert table.current == before
    empty = MemorySnapshots()
    empty.head = lambda: replace(MemorySnapshots().head(), current=None)  # type: ignore[method-assign]
    assert run(empty).reason == NOTHING


def test_a_lost_lease_and_a_difference_leave_no_file() -> None:
    table, (one, _) = table_of(2)
    before, control = table.current, Control()

    def lost(_count: int) -> None:
        raise LeaseLost("gone")

    def differ(group: Rewritten) -> Proof:
        (old,), (new,) = ([one.deletes for one in files] for files in (group.inputs, group.outputs))
        assert (len(old), len(new)) == (2, 1)
        if group.inputs[0].path == one:
            return proved(group)
        raise Difference("2 deleted rows would be visible again")

    control.before_change = lost
    with pytest.raises(LeaseLost):
        run(table, control)
    with pytest.raises(Difference):
        run(table, prove=differ)
    assert (table.current, table.orphans()) == (before, set())


def test_a_merged_delete_file_has_no_greater_number_than_what_it_replaces() -> None:
    """A data file that is added again has a greater one, and all of its rows."""
    table, (one,) = table_of(1)
    run(table)
    table.make({}, {}, [one])
    table.make({one: None}, {})
    assert table.rows() == list(range(10))


def test_a_format_version_that_was_raised_meanwhile_is_a_conflict_and_leaves_nothing() -> None:
    table, _ = table_of(1)

    def upgrade() -> None:
        table.has_vectors = True

    with pytest.raises(Conflict, match="format version"):
        run(table, Interrupted(upgrade))
    assert (table.rows(), table.orphans()) == (list(range(2, 10)), set())


class Interrupted(Control):
    """Others act each time that the job has read the delete files."""

    def __init__(self, others: Callable[[], Any]) -> None:
        super().__init__()
        self.others = others

    def reached(self, point: str, done: int = 0, total: int = 0) -> None:
        super().reached(point, done, total)
        if point == "merging":
            self.others()


def test_where_others_change_the_delete_files_each_time_the_job_ends() -> None:
    table, (one,) = table_of(1)

    def again() -> None:
        for name in [*table.now.deletes]:
            table.make({}, {}, [name])
        for place in range(2):
            table.delete_places([(one, place)], in_one_file=False)

    control = Interrupted(again)
    with pytest.raises(Conflict, match="each time"):
        run(table, control)
    assert len(control.points) == MOST_LOST
    assert (table.orphans(), table.rows()) == (set(), list(range(2, 10)))


def test_what_others_commit_between_look_and_commit_is_read_again() -> None:
    table, _ = table_of(1)
    looks: list[int] = []
    real = table.look

    def look(head: TableHead) -> Any:
        looks.append(head.current or 0)
        return real(head)

    table.look = look  # type: ignore[method-assign]
    first = table.current
    control = Interrupted(lambda: table.make({table.write([100]): None}, {}) if len(looks) == 1 else None)
    done = run(table, control)
    assert (len(done.commits), looks) == (1, [first, first + 1, first + 2])
    assert table.rows() == [*range(2, 10), 100]


def test_beside_a_vector_no_position_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers ignore all files of positions of a data file that has a vector, those too large to be merged as well."""
    table, (one, two) = table_of(2, deletes=0)
    table.delete_places([(one, 0), (two, 0)], in_one_file=True)
    table.delete_places([(path, place) for path in (one, two) for place in range(2, 6)], in_one_file=True)
    table.delete_places([(one, 7)], in_one_file=True)
    table.has_vectors = True
    rows, why = table.rows(), "they name too many rows, or rows of too many data files, for one commit"
    monkeypatch.setattr(delete_merges, "MOST_ROWS", 8)
    assert left_by(table) == f"t: 3 delete files stay, for {why}"
    monkeypatch.setattr(delete_merges, "MOST_ROWS", 10)
    monkeypatch.setattr(delete_groups, "MOST_ROWS", 10)
    assert left_by(table) == f"t: 3 delete files stay, for {why}"
    monkeypatch.setattr(delete_groups, "MOST_ROWS", 11)
    assert run(table).figures == {"replaced": 3, "written": 2, "removed": 0}
    assert table.rows() == rows


def test_what_a_choice_by_manifests_leaves_out_keeps_what_is_joined_with_it_from_becoming_a_vector() -> None:
    table, (one, two) = table_of(2, deletes=0)
    table.delete_places([(one, 0), (two, 0)], in_one_file=True)
    table.delete_places([(two, 1)], in_one_file=True)
    found = read(table)
    shared, own = (one.name for one in found.files)
    both = frozenset({shared, own})
    assert groups_of(found, both, has_vectors=True).left == frozenset()
    assert groups_of(found, {shared}, has_vectors=True) == DeleteGroups((), both)
    assert groups_of(found, {own}, has_vectors=True) == DeleteGroups((), both)
    assert [len(one.inputs) for one in groups_of(found, {shared}, has_vectors=False).groups] == [2]


def test_a_group_of_too_many_data_files_stays_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    table, paths = table_of(3, deletes=0)
    for place in range(2):
        table.delete_places([(path, place) for path in paths], in_one_file=True)
    monkeypatch.setattr(delete_groups, "MOST_DATA_FILES", 2)
    assert left_by(table).startswith("t: 2 delete files stay")
    table.look = lambda _head: None  # type: ignore[method-assign]
    assert left_by(table) == f"t: {TOO_MANY}"


def test_a_run_ends_after_so_many_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_deletes_job, "MOST_FILES", 1)
    monkeypatch.setattr(merge_deletes_job, "MOST_COMMITS", 2)
    table, _ = table_of(3)
    done = run(table)
    assert (len(done.commits), done.is_complete) == (2, False)
    assert (len(run(table).commits), run(table).reason) == (1, NOTHING)


def test_a_delete_file_of_one_data_file_by_its_bounds_goes_only_if_its_rows_say_the_same() -> None:
    table, (one, two) = table_of(2)
    table.make({}, {}, [one])
    asked: list[str] = []

    def is_of_one(_: object, path: str) -> bool:
        asked.append(path)
        return path != one

    table.is_of_one_file = is_of_one  # type: ignore[method-assign]
    done = run(table)
    assert done.figures == {"replaced": 2, "written": 1, "removed": 0}
    assert done.reason == (
        "2 delete files that apply to no data file stay, for they cannot be read, or name rows of another data file "
        "than their bounds say"
    )
    assert asked == [one, one], "each is read once"
    table.make({}, {}, [two])
    assert run(table).figures["removed"] == 1


@pytest.mark.parametrize("kind", ["data", "deletes", "new deletes"])
def test_files_outside_of_the_table_are_neither_read_nor_written(kind: str) -> None:
    table, (one,) = table_of(1)
    before, asked = table.current, list[str]()
    place = {"data": one, "new deletes": f"position-{next(table.names) + 1}"}.get(kind, next(iter(table.now.deletes)))
    links = Boundary(real_path=lambda path: "/elsewhere" if path.endswith(f"/{place}") else path)

    def note(group: Rewritten) -> Proof:
        asked.append(group.table)
        return proved(group)

    with pytest.raises(Unsupported, match="elsewhere"):
        run(table, prove=note, boundary=links)
    assert (table.current, asked, table.orphans()) == (before, [], set())


def refuse(number: int) -> Callable[[Rewritten], Proof]:
    """Return a proof that fails for the data file of this number."""

    def prove(group: Rewritten) -> Proof:
        if any(one.path.endswith(f"-{number}") for one in group.inputs):
            raise RefusedFiles(f"{group.inputs[0].path} cannot be compared", reason=RefusalReason.UNVERIFIED)
        return proved(group)

    return prove


def test_a_group_that_is_refused_keeps_no_other_from_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_deletes_job, "MOST_FILES", 1)
    table, paths = table_of(3)
    rows = table.rows()
    done = run(table, prove=refuse(0))
    assert (done.is_complete, len(done.commits), done.figures["written"]) == (True, 2, 2)
    assert done.reason == f"1 groups of delete files are refused, the first: {paths[0]} cannot be compared"
    assert (table.rows(), table.orphans()) == (rows, set())
    with pytest.raises(RefusedFiles, match="cannot be compared") as refused:
        run(table, prove=refuse(0))
    assert refused.value.reason is RefusalReason.UNVERIFIED
    assert (table.rows(), table.orphans()) == (rows, set())


@pytest.mark.parametrize(
    ("failure", "ends_with"),
    [
        (JavaError("UnsupportedOperationException", message="Cannot read deletes of AVRO"), RefusedFiles),
        (LOST, RetryableError),
        (JavaError("IOException", message="DamagedInput"), RefusedFiles),
    ],
)
def test_a_group_that_cannot_be_read_is_left_out(failure: Exception, ends_with: type[Exception]) -> None:
    table, (one, _) = table_of(2)
    real, rows = table.merged, table.rows()

    def merged(inputs: list[LiveInput], deletes: list[list[AppliedDelete]]) -> list[NewDeletes | None]:
        if inputs[0].path == one:
            raise failure
        return real(inputs, deletes)

    table.merged = merged  # type: ignore[method-assign,assignment]
    assert "1 groups of delete files are refused" in run(table).reason
    assert (table.rows(), table.orphans(), len(table.now.deletes)) == (rows, set(), 3)
    with pytest.raises(ends_with):
        run(table)


def test_what_may_be_said_of_every_group_ends_the_job_and_leaves_no_file() -> None:
    table, (_, two) = table_of(2)
    real = table.merged

    def merged(inputs: list[LiveInput], deletes: list[list[AppliedDelete]]) -> list[NewDeletes | None]:
        if inputs[0].path == two:
            raise JavaError("IllegalStateException", message="odd")
        return real(inputs, deletes)

    table.merged = merged  # type: ignore[method-assign,assignment]
    before = table.current
    with pytest.raises(JavaError, match="odd"):
        run(table)
    assert (table.current, table.orphans()) == (before, set())


def dangling(files: int) -> tuple[MemorySnapshots, list[str]]:
    """Return a table with so many delete files that apply to no data file, and one data file with two."""
    table, (kept, *gone) = table_of(files + 1, deletes=1)
    table.delete_places([(kept, 5)], in_one_file=False)
    table.make({}, {}, gone)
    return table, gone


def test_a_delete_file_of_no_data_file_that_is_lost_or_elsewhere_stays_and_the_others_go() -> None:
    table, (lost, elsewhere, _) = dangling(3)
    names = {one.only: name for name, one in table.written.items()}
    links = Boundary(real_path=lambda path: "/elsewhere" if path.endswith(f"/{names[elsewhere]}") else path)

    def is_of_one(_: object, path: str) -> bool:
        if path == lost:
            raise LOST
        return True

    table.is_of_one_file = is_of_one  # type: ignore[method-assign]
    rows, done = table.rows(), run(table, boundary=links)
    assert done.figures == {"replaced": 2, "written": 1, "removed": 1}
    assert done.reason.startswith("2 delete files that apply to no data file stay")
    assert table.rows() == rows
    assert left_by(table, boundary=links).startswith("t: 2 delete files that apply to no data file stay")


def test_delete_files_of_no_data_file_are_read_some_between_two_commits_and_a_stop_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merge_deletes_job, "MOST_FILES", 2)
    table, paths = dangling(5)
    asked: list[str] = []

    def is_of_one(_: object, path: str) -> bool:
        asked.append(path)
        return False

    table.is_of_one_file = is_of_one  # type: ignore[method-assign]
    control = Interrupted(lambda: asked.append("merging"))
    control.should_stop = lambda: len(asked) == 4  # type: ignore[method-assign]
    done = run(table, control)
    assert (asked, done.is_complete) == ([*paths[:2], "merging", paths[2]], False)
    asked.clear()
    assert left_by(table).startswith("t: 5 delete files that apply to no data file stay")
    assert asked == paths


@pytest.mark.parametrize("has_vectors", [False, True])
def test_deletes_by_value_become_positions_where_the_owner_wants_that(has_vectors: bool) -> None:
    table, (one, two) = table_of(2, deletes=0)
    table.has_vectors = has_vectors
    table.delete_places([(one, 7)], in_one_file=False)
    table.delete_values([1, 2, 12])
    late = table.write([1, 12])
    table.make({late: None}, {})
    rows = table.rows()
    assert run(table).reason == NOTHING
    control = Control()
    done = run(table, control, CONVERTS)
    assert (table.rows(), len(done.commits)) == (rows, 1 if has_vectors else 2)
    summary = table.snapshots[table.current if has_vectors else table.now.parent or 0].summary
    assert (summary[CONVERTED_KEY], summary[PROOFREAD_KEY]) == ("2" if has_vectors else "1", "rows")
    assert control.points[0][0] == "converting"
    kind = DeleteKind.VECTOR if has_vectors else DeleteKind.POSITION
    left = {(table.written[name].kind, table.written[name].only) for name in table.now.deletes}
    assert left == {(kind, one), (kind, two)}
    assert (run(table, job=CONVERTS).reason, table.orphans()) == (NOTHING, set())


def test_a_difference_or_a_refusal_leaves_deletes_by_value_as_they_are() -> None:
    table, (one, _) = table_of(2, deletes=2)
    table.delete_values([5])
    before, rows = table.current, table.rows()

    def differ(_: Rewritten) -> Proof:
        raise Difference("1 deleted rows would be visible again")

    with pytest.raises(Difference):
        run(table, job=CONVERTS, prove=differ)
    assert (table.current, table.orphans()) == (before, set())

    def refuse_values(group: Rewritten) -> Proof:
        if group.columns:
            raise RefusedFiles(f"{one} cannot be compared", reason=RefusalReason.UNVERIFIED)
        return proved(group)

    done = run(table, job=CONVERTS, prove=refuse_values)
    assert done.figures["written"] == 2, "those by position are merged"
    assert done.reason == f"1 groups of delete files are refused, the first: {one} cannot be compared"
    assert (table.rows(), table.orphans()) == (rows, set())


def refusing(name: str) -> Callable[[Rewritten], Proof]:
    """Return a proof that fails for what a delete file by value hides."""

    def prove(group: Rewritten) -> Proof:
        if any(delete.path == name for one in group.inputs for delete in one.deletes):
            raise RefusedFiles(f"{name} cannot be compared", reason=RefusalReason.UNVERIFIED)
        return proved(group)

    return prove


def test_a_refused_delete_by_value_keeps_no_later_one_from_its_turn() -> None:
    table, _ = table_of(1, deletes=0)
    for value in (5, 6, 7):
        table.delete_values([value])
    first, second, third = table.now.deletes
    rows, done = table.rows(), run(table, job=CONVERTS, prove=refusing(second))
    assert (table.rows(), len(done.commits)) == (rows, 3), "each of the others alone, and a merge"
    assert second in table.now.deletes
    assert {first, third}.isdisjoint(table.now.deletes)
    assert done.reason == f"1 groups of delete files are refused, the first: {second} cannot be compared"
    with pytest.raises(RefusedFiles, match="cannot be compared"):
        run(table, job=CONVERTS, prove=refusing(second))
    assert (run(table, job=CONVERTS).commits != (), table.rows(), table.orphans()) == (True, rows, set())


@pytest.mark.parametrize(
    ("failure", "ends_with"),
    [
        (JavaError("UnsupportedOperationException", message="Readers see different rows"), RefusedFiles),
        (LOST, RetryableError),
        (JavaError("IOException", message="DamagedInput"), RefusedFiles),
    ],
)
def test_a_delete_by_value_that_cannot_be_read_is_left_out(failure: Exception, ends_with: type[Exception]) -> None:
    table, _ = table_of(1, deletes=0)
    for value in (5, 6):
        table.delete_values([value])
    first, second = table.now.deletes
    real, rows = table.converted, table.rows()

    def converted(inputs: list[LiveInput], deletes: list[AppliedDelete]) -> list[NewDeletes | None]:
        if any(one.path == first for one in deletes):
            raise failure
        return real(inputs, deletes)

    table.converted = converted  # type: ignore[method-assign,assignment]
    assert "1 groups of delete files are refused" in run(table, job=CONVERTS).reason
    assert (table.rows(), table.orphans(), second in table.now.deletes) == (rows, set(), False)
    with pytest.raises(ends_with):
        run(table, job=CONVERTS)


def examined(table: MemorySnapshots, **waits: bool) -> ExaminedTable:
    return ExaminedTable(position_digest("u", table.current), **waits)


def test_a_run_notes_where_it_left_nothing_but_what_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is with the snapshot that it has made, if it did a part of its work."""
    table, _ = table_of(1, deletes=0)
    for value in (5, 6):
        table.delete_values([value])
    first, _ = table.now.deletes
    left = run(table, job=CONVERTS, prove=refusing(first)).left
    assert left is not None
    assert (str(left), left.examined) == (f"{first} cannot be compared", examined(table))
    with pytest.raises(RefusedFiles) as refused:
        run(table, job=CONVERTS, prove=refusing(first))
    assert refused.value.examined == examined(table)
    monkeypatch.setattr(merge_deletes_job, "MOST_TRIED", 1)
    with pytest.raises(RefusedFiles) as refused:
        run(table, job=CONVERTS, prove=refusing(first))
    assert refused.value.examined is None, "others were not tried alone"
    assert run(table, job=CONVERTS).left is None


def test_what_no_change_of_data_makes_possible_waits_for_none() -> None:
    table, _ = table_of(1, deletes=0)
    table.delete_values([5])
    real = table._described
    table._described = lambda name, path: replace(real(name, path), key_ids=(9,))  # type: ignore[method-assign]
    with pytest.raises(RefusedFiles) as refused:
        run(table, job=CONVERTS)
    assert refused.value.examined == examined(table, waits_for_data=False)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_failure_that_may_pass_is_nothing_to_remember(is_first: bool) -> None:
    table, paths = table_of(3)
    refuses, lost = JavaError("UnsupportedOperationException", message="Cannot read deletes of AVRO"), LOST
    failures = dict(zip(paths, [lost, refuses] if is_first else [refuses, lost], strict=False))
    real = table.merged

    def merged(inputs: list[LiveInput], deletes: list[list[AppliedDelete]]) -> list[NewDeletes | None]:
        if failure := failures.get(inputs[0].path):
            raise failure
        return real(inputs, deletes)

    table.merged = merged  # type: ignore[method-assign,assignment]
    assert getattr(run(table).left, "examined", None) is None
    with pytest.raises(RetryableError if is_first else RefusedFiles) as ended:
        run(table)
    assert getattr(ended.value, "examined", None) is None


def test_deletes_by_value_that_cannot_be_converted_are_named_and_those_too_many_are_not_read() -> None:
    table, _ = table_of(1, deletes=0)
    table.delete_values([5])
    name = next(iter(table.now.deletes))
    real = table._described
    table._described = lambda name, path: replace(real(name, path), key_ids=(9,))  # type: ignore[method-assign]
    why = "a column of its keys was dropped, or is a part of another"
    assert left_by(table, job=CONVERTS) == f"t: 1 delete files by value stay, the first, {name}: {why}"
    table.by_value = lambda _head: None  # type: ignore[method-assign]
    assert left_by(table, job=CONVERTS) == f"t: {VALUES_TOO_MANY}"
