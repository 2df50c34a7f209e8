"""Which rows others deleted since the read, whether a group can land with them hidden, and where they lie then."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actor.formats.iceberg import late_rows
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.late_rows import IcebergRowHider, SetAside, named_by
from actor.formats.iceberg.staged import IcebergFile, NewDeletes, StagedGroup
from actor.rewrite.late_rows import LateRows
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind

POSITIONS = st.sets(st.integers(0, 9))
ROWS = 10


@dataclass
class Deletes:
    """Delete files of a table: by name the rows that each names, by data file."""

    rows: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    read: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    at_most: int = 1_000

    def add(self, name: str, rows: dict[str, set[int]], kind: DeleteKind = DeleteKind.POSITION) -> AppliedDelete:
        self.rows[name] = rows
        return AppliedDelete(name, kind, sum(map(len, rows.values())), is_exact=False, partition=WHOLE_TABLE)

    def named(self, path: str, deletes: Sequence[AppliedDelete]) -> Sequence[int] | None:
        self.read.append((path, frozenset(one.path for one in deletes)))
        found = sorted({row for one in deletes for row in self.rows[one.path].get(path, ())})
        return None if len(found) > self.at_most else found

    def hide(self, output: object, places: Sequence[int]) -> NewDeletes:
        self.written.append(f"{output} {list(places)}")
        return NewDeletes(self.written[-1], f"{output}", 5)

    def without(self, shared: AppliedDelete, paths: Sequence[str]) -> NewDeletes | None:
        rest = sorted(set(self.rows[shared.path]) - set(paths))
        self.written.append(f"{shared.path} {rest}")
        return NewDeletes(self.written[-1], "rest", 5, sequence=3) if rest else None

    def delete(self, paths: Iterable[str]) -> None:
        raise AssertionError(f"nothing failed, and {paths} are deleted")


def live(path: str, *deletes: AppliedDelete) -> LiveInput:
    return LiveInput(path, 10, ROWS, 0, deletes, DataFile(path, 10, WHOLE_TABLE, rows=ROWS))


def staged(*inputs: LiveInput, rows: int | None = None, name: str = "out", in_order: bool = True) -> StagedGroup:
    group = InputGroup(FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.FULL), inputs)
    count = ROWS * len(inputs) if rows is None else rows
    output = IcebergFile(DataFile(name, 20, WHOLE_TABLE, rows=count), name)
    return StagedGroup(group, (output,), count, in_order=in_order)


@given(st.lists(st.tuples(POSITIONS, POSITIONS, st.booleans()), min_size=1, max_size=4))
def test_what_is_seen_through_the_output_is_what_is_left_of_the_inputs(
    inputs: list[tuple[set[int], set[int], bool]],
) -> None:
    """inputs: of each what the read left out, what others deleted since, and whether they named it all in one file."""
    files, read, now = Deletes(), [], []
    shared = files.add("shared", {"stranger": {0}})
    for number, (omitted, late, is_put_together) in enumerate(inputs):
        path = f"f{number}"
        before = files.add(f"then-{path}", {path: omitted})
        read.append(live(path, before))
        if is_put_together:
            now.append(live(path, files.add(f"now-{path}", {path: omitted | late}), shared))
        else:
            files.rows["shared"][path] = late
            now.append(live(path, before, shared))
    written = [(one, row) for one, (omitted, _, _) in enumerate(inputs) for row in range(ROWS) if row not in omitted]
    left = [(one, row) for one, row in written if row not in inputs[one][1]]
    found = IcebergRowHider(files).find(staged(*read, rows=len(written)), {one.path: one for one in now})
    if len(left) == len(written):
        assert found is None
    elif not left:
        assert found is SetAside.NO_ROW_LEFT
    else:
        assert isinstance(found, LateRows)
        assert [row for place, row in enumerate(written) if place not in found.places] == left
        naming = {one.path for one in named_by([found])}
        late_of = {f"f{n}": late - omitted for n, (omitted, late, _) in enumerate(inputs) if late - omitted}
        assert naming <= files.rows.keys() - {one.path for side in read for one in side.deletes}
        for path, rows in late_of.items():
            assert rows <= {row for name in naming for row in files.rows[name].get(path, ())}


def test_the_names_of_delete_files_do_not_count() -> None:
    files = Deletes()
    then, now = files.add("p", {"a": {1}}), files.add("q", {"a": {1}, "other": {3}})
    hider = IcebergRowHider(files)
    assert hider.find(staged(live("a", then), rows=9), {"a": live("a", now)}) is None
    assert len(files.read) == 2
    assert hider.find(staged(live("a", then), rows=9), {"a": live("a", now)}) is None
    assert len(files.read) == 2, "what was read of a file is known"
    assert hider.find(staged(live("a", then), rows=9), {"a": live("a", then)}) is None
    assert len(files.read) == 2, "and nothing is read where nothing is new"
    kept = files.add("r", {"a": {2}})
    assert IcebergRowHider(files).find(staged(live("a", then, kept), rows=8), {"a": live("a", kept, now)}) is None


def test_rows_that_came_back_take_the_group() -> None:
    files = Deletes()
    then, now = files.add("p", {"a": {1, 2}}), files.add("q", {"a": {2, 3}})
    group = staged(live("a", then), live("b"), rows=18)
    assert IcebergRowHider(files).find(group, {"a": live("a", now), "b": live("b")}) is SetAside.ROWS_RETURNED
    assert IcebergRowHider(files).find(group, {"a": live("a"), "b": live("b")}) is SetAside.ROWS_RETURNED


def test_rows_that_were_deleted_by_value_and_came_back_take_the_group_only_if_there_were_any() -> None:
    files = Deletes()
    values = AppliedDelete("e", DeleteKind.EQUALITY, 1, is_exact=False)
    more = replace(values, path="later")
    for rows, now, found in (
        (9, live("a"), SetAside.ROWS_RETURNED),
        (9, live("a", more), SetAside.ROWS_RETURNED),
        (9, live("a", values, more), None),
        (10, live("a"), None),  # It left no row out.
    ):
        assert IcebergRowHider(files).find(staged(live("a", values), rows=rows), {"a": now}) is found


def test_a_group_lands_only_where_each_row_has_a_place_that_is_known() -> None:
    files = Deletes()
    late, odd = files.add("p", {"a": {1}}), files.add("q", {"a": {ROWS}})
    values = AppliedDelete("e", DeleteKind.EQUALITY, 1, is_exact=False)
    a, b = live("a", values), live("b")
    now = {"a": live("a", values, late), "b": b}
    two = staged(a, b)
    assert isinstance(IcebergRowHider(files).find(two, now), LateRows), "deletes by value that left no row out"
    for group, newest, reason in (
        (two, {"a": now["a"]}, SetAside.INPUT_GONE),
        (staged(a, b, rows=19), now, SetAside.NO_ROW_MAP),  # They left one out.
        (replace(two, rows=19), now, SetAside.NO_ROW_MAP),
        (replace(two, in_order=False), now, SetAside.NO_ROW_MAP),
        (replace(two, outputs=(*two.outputs, *two.outputs)), now, SetAside.NO_ROW_MAP),
        (two, now | {"a": live("a", odd)}, SetAside.NO_ROW_MAP),
        (two, now | {"a": live("a", values, files.add("all", {p: {*range(ROWS)} for p in "ab"})),
                     "b": live("b", files.add("all", {p: {*range(ROWS)} for p in "ab"}))}, SetAside.NO_ROW_LEFT),
    ):  # fmt: skip
        assert IcebergRowHider(files).find(group, newest) is reason, reason


def test_too_many_rows_or_delete_files_take_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    files = Deletes(at_most=2)
    many, few = files.add("p", {"a": {1, 2, 3}}), files.add("q", {"a": {1}, "other": {1, 2, 3}})
    group = staged(live("a"), live("b"))
    assert IcebergRowHider(files).find(group, {"a": live("a", many), "b": live("b")}) is SetAside.MANY_ROWS
    now = {"a": live("a", few), "b": live("b")}
    assert isinstance(IcebergRowHider(files).find(group, now), LateRows)
    monkeypatch.setattr(late_rows, "MOST_ROWS", 3)
    assert IcebergRowHider(files).find(group, now) is SetAside.MANY_ROWS, "what else the file names could not be kept"
    monkeypatch.setattr(late_rows, "MOST_ROWS", 0)
    assert IcebergRowHider(files).find(group, now) is SetAside.MANY_ROWS
    monkeypatch.setattr(late_rows, "MAX_DELETES_READ", 0)
    assert IcebergRowHider(files).find(group, now) is SetAside.MANY_DELETE_FILES


def test_a_delete_file_of_two_groups_is_written_again_once_with_what_it_names_in_others() -> None:
    files = Deletes()
    shared = files.add("s", {"a": {1}, "b": {2}, "other": {3}})
    vector = files.add("v", {"b": {5}}, DeleteKind.VECTOR)
    hider = IcebergRowHider(files)
    late = []
    for path, deletes in (("a", (shared,)), ("b", (shared, vector))):
        found = hider.find(staged(live(path), name=f"out-{path}"), {path: live(path, *deletes)})
        assert isinstance(found, LateRows)
        late.append(found)
    assert [one.path for one in named_by(late)] == ["s", "v"]
    made = list(hider.make_good(late, ["a", "b"]).values())
    assert [[one.name for one in group.deletes] for group in made] == [
        ["out-a [1]", "s ['other']"],
        ["out-b [2, 5]"],
    ]
    assert [(group.rows, group.outputs[0].file.deleted_rows) for group in made] == [(9, 1), (8, 2)]


def test_what_was_written_for_the_attempt_before_is_taken_again_where_it_is_the_same() -> None:
    """Each file takes its time, in which others delete again."""
    files = Deletes()
    shared, own = files.add("s", {"a": {1}, "b": {2}, "other": {3}}), files.add("own", {"a": {4}})
    own = replace(own, is_of_one_file=True)
    hider = IcebergRowHider(files)
    groups = {path: staged(live(path), name=f"out-{path}") for path in "ab"}

    def attempt(replaced: Sequence[str], **deletes: Sequence[AppliedDelete]) -> list[str]:
        files.written.clear()
        found = [hider.find(groups[path], {path: live(path, *now)}) for path, now in deletes.items()]
        hider.make_good([one for one in found if isinstance(one, LateRows)], replaced)
        return files.written

    assert attempt(["a", "b"], a=[shared], b=[shared]) == ["out-a [1]", "out-b [2]", "s ['other']"]
    assert attempt(["a", "b"], a=[shared, own], b=[shared]) == ["out-a [1, 4]"], "what names replaced files alone goes"
    assert attempt(["a"], a=[shared, own]) == ["s ['b', 'other']"], "another group was set aside"
    assert attempt(["a", "b"], a=[shared, own], b=[shared]) == ["out-b [2]", "s ['other']"], "it was deleted since"
