"""Which calls of Iceberg a commit consists of, and which files a scan returns, on stand-ins for its Java objects."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from actor.formats.iceberg.delete_groups import DeletesChange
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, Listed, LiveInput
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.scan_cache import MOST_FILES, Scan, ScanCache
from actor.formats.iceberg.staged import IcebergFile, NewDeletes, Replacement, StagedGroup
from actor.rewrite.model import NotAsked
from shared.errors import Corrupt
from shared.formats.iceberg.head_cache import HeadCache
from shared.formats.iceberg.metadata import MetadataRecords, TableHead
from shared.formats.iceberg.partitions import Spec
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind, PartitionKey, TableMetadata, TableProtocol
from tests.support.java_errors import JavaError

OUTPUT = IcebergFile(DataFile("b", 10, WHOLE_TABLE), "java b")
HEAD = TableHead(
    "file:///t",
    TableMetadata(table_uuid="u", partition_columns=(), configuration={}),
    TableProtocol(2, 2),
    100,
    7,
    {0: Spec(0, ())},
    {},
)


class Rewrite:
    """Iceberg's rewrite, which notes its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> "Rewrite":
            self.calls.append((name, *arguments))
            return self

        return call


class Task:
    """A scan task."""

    def __init__(self, path: str) -> None:
        self.path = path

    def file(self) -> Any:
        return SimpleNamespace(partition=lambda: None)


class Tasks(list[Any]):
    """Java's list of them."""

    def get(self, number: int) -> Any:
        return self[number]


class Classes:
    """Our classes, as `JavaTable` resolves them: a scan of these files without deletes, and what removes them."""

    def __init__(self, *live: str, values: list[Any] | None = None) -> None:
        self._live = live
        self._values = values
        self.removed: list[tuple[Any, ...]] = []
        self.required: list[tuple[Any, ...]] = []
        self.later: list[int] = []
        self.upon: list[int] = []
        self.iceberg_scan = SimpleNamespace(remove=self._remove, planned=self._planned, rows=self._rows)
        self.java_list = list
        self.is_asked = True

    def watched_commit(self, table: Any) -> Any:
        return SimpleNamespace(
            newRewrite=lambda of: of.newRewrite(),
            newRowDelta=lambda of: of.newRewrite(),
            newOverwrite=lambda of: of.newRewrite(),
            requireMetadata=lambda path: self.required.append((path,)),
            isAsked=lambda: self.is_asked,
            requireDeletes=lambda *given: self.required.append(given),
            requireLaterDeletes=lambda sequence: self.later.append(sequence),
            requireSnapshot=lambda snapshot: self.upon.append(snapshot),
        )

    def _planned(self, *_: Any) -> Tasks:
        return Tasks(map(Task, self._live))

    def _rows(self, tasks: Tasks) -> str:
        return json.dumps([[one.path, 10, 1, 0, 0, 0, 0, self._values, "parquet", False, 0] for one in tasks])

    def _remove(self, rewrite: Rewrite, tasks: Tasks, numbers: str) -> int:
        paths = [tasks[number].path for number in json.loads(numbers)]
        self.removed.append((tasks, paths))
        for path in paths:
            rewrite.deleteFile(path)
        return len(paths)

    def resolve(self, _name: str) -> Any:
        return SimpleNamespace(forName=lambda _: None)


def table_of(*live: str, values: list[Any] | None = None, **methods: Any) -> JavaTable:
    return JavaTable(Classes(*live, values=values), SimpleNamespace(**methods), "file:///t")  # type: ignore[arg-type]


def classes_of(table: JavaTable) -> Classes:
    found = table._scala
    assert isinstance(found, Classes)
    return found


def rewritten(rewrite: Rewrite) -> JavaTable:
    return table_of(
        newRewrite=lambda: rewrite, snapshot=lambda number: SimpleNamespace(sequenceNumber=lambda: 10 * number)
    )


def read(path: str, tasks: Tasks) -> LiveInput:
    number = next(number for number in range(len(tasks)) if tasks[number].path == path)
    return LiveInput(path, 10, 1, 0, (), DataFile(path, 10, WHOLE_TABLE, rows=1), scanned=Listed(tasks, number))


def test_an_input_has_the_task_of_its_number_and_one_that_no_scan_gave_has_none() -> None:
    tasks = SimpleNamespace(get=lambda number: f"task {number}")
    scanned = replace(read("a", Tasks([Task("a")])), scanned=Listed(tasks, 3))
    assert (scanned.task, replace(scanned, scanned=None).task) == ("task 3", None)


def group_of(*inputs: LiveInput) -> InputGroup:
    return InputGroup(FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.FULL), inputs)


def commit() -> list[tuple[Any, ...]]:
    rewrite = Rewrite()
    table = rewritten(rewrite)
    group = group_of(read("a", Tasks([Task("a")])))
    delete = AppliedDelete("d", DeleteKind.POSITION, 1, is_exact=False, listed=Listed(Tasks(["java d"]), 0))
    staged = StagedGroup(group, (OUTPUT,), 1)
    table.commit(Replacement((staged,), (delete,), 7), since=7, summary={"key": "value"})
    return rewrite.calls


def test_a_commit_is_validated_against_all_snapshots_since_the_read() -> None:
    assert ("validateFromSnapshot", 7) in commit()


def test_outputs_get_the_sequence_number_of_the_read_so_that_later_deletes_apply_to_them() -> None:
    assert ("dataSequenceNumber", 70) in commit()


def test_delete_files_are_replaced_upon_the_snapshot_alone_that_was_read_and_under_their_numbers() -> None:
    rewrite = Rewrite()
    table = rewritten(rewrite)
    old = AppliedDelete("d", DeleteKind.POSITION, 1, is_exact=False, listed=Listed(Tasks(["java d"]), 0))
    table.commit_deletes(DeletesChange(9, (old,), (NewDeletes("n", "n", 10, 5, raw="java n"),)), {"key": "value"})
    assert classes_of(table).upon == [9]
    assert rewrite.calls == [
        ("addFile", "java n", 5),
        ("deleteFile", "java d"),
        ("set", "key", "value"),
        ("commit",),
    ]


def test_what_is_new_to_others_is_a_change_of_rows_with_the_number_of_its_snapshot() -> None:
    change = Rewrite()
    table = rewritten(change)
    old = AppliedDelete("d", DeleteKind.EQUALITY, 1, is_exact=False, listed=Listed(Tasks(["java d"]), 0))
    new = NewDeletes("n", "n", 10, None, raw="java n")
    table.commit_deletes(DeletesChange(9, (old,), (new,), is_new_to_others=True), {"key": "value"})
    assert classes_of(table).upon == [9]
    assert change.calls == [
        ("validateFromSnapshot", 9),
        ("validateDeletedFiles",),
        ("addDeletes", "java n"),
        ("removeDeletes", "java d"),
        ("set", "key", "value"),
        ("commit",),
    ]


def test_a_commit_may_drop_no_delete_after_the_number_of_its_outputs() -> None:
    table = rewritten(Rewrite())
    group = group_of(read("a", Tasks([Task("a")])))
    table.commit(Replacement((StagedGroup(group, (OUTPUT,), 1),), (), 9), since=7, summary={})
    assert classes_of(table).later == [70]


def test_a_commit_replaces_its_inputs_and_is_the_last_call() -> None:
    calls = commit()
    changed = [call for call in calls if call[0] in ("deleteFile", "addFile", "set")]
    assert changed == [
        ("deleteFile", "a"),
        ("addFile", "java b"),
        ("deleteFile", "java d"),
        ("set", "key", "value"),
    ]
    assert (calls[-1], [name for name, *_ in calls].count("commit")) == (("commit",), 1)


def test_a_removal_of_rows_is_made_upon_the_metadata_that_were_read_and_each_input_must_be_live() -> None:
    change, tasks = Rewrite(), Tasks([Task("a")])
    table = rewritten(change)
    classes_of(table).iceberg_scan.files = lambda tasks, numbers: [tasks[number].path for number in json.loads(numbers)]
    upon = replace(HEAD, records=MetadataRecords(path="v9"))
    table.overwrite([StagedGroup(group_of(read("a", tasks)), (OUTPUT,), 1)], upon=upon, summary={"key": "value"})
    assert classes_of(table).required == [("v9",)]
    assert change.calls == [
        ("validateFromSnapshot", 7),
        ("validateNoConflictingDeletes",),
        ("deleteFile", "a"),
        ("addFile", "java b"),
        ("set", "key", "value"),
        ("commit",),
    ]
    with pytest.raises(NotAsked):
        rewritten(Refusing("addFile")).overwrite(
            [StagedGroup(group_of(), (OUTPUT,), 1)], upon=upon, summary={"key": "value"}
        )


def test_inputs_of_one_scan_are_removed_in_one_call_and_those_of_several_are_refused() -> None:
    """A number means nothing in another scan: it would name the file of others, whose rows would be lost."""
    tasks, others = Tasks([Task("a"), Task("b"), Task("c")]), Tasks([Task("d")])
    table = rewritten(Rewrite())
    same, mixed = group_of(read("c", tasks), read("a", tasks)), group_of(read("b", tasks), read("d", others))
    table.commit(Replacement((StagedGroup(same, (), 1),), (), 7), since=7, summary={})
    assert classes_of(table).removed == [(tasks, ["c", "a"])]
    with pytest.raises(NotAsked) as refused:
        table.commit(Replacement((StagedGroup(mixed, (), 1),), (), 7), since=7, summary={})
    assert isinstance(refused.value.__cause__, ValueError)
    with pytest.raises(ValueError, match="in its own scan alone"):
        table.files([replace(one, scanned=None) for one in same.inputs])
    assert len(classes_of(table).removed) == 1


class Refusing(Rewrite):
    """A rewrite whose call of this name fails."""

    def __init__(self, call: str) -> None:
        super().__init__()
        self._call = call

    def __getattr__(self, name: str) -> Any:
        if name == self._call:
            raise JavaError("RuntimeIOException", message=name)
        return super().__getattr__(name)


@pytest.mark.parametrize(
    ("fails_at", "is_asked", "raised"),
    [
        ("validateFromSnapshot", True, NotAsked),
        ("addFile", False, NotAsked),
        ("commit", False, NotAsked),
        ("commit", True, JavaError),
    ],
)
def test_a_commit_that_fails_before_the_catalog_was_asked_says_so(
    fails_at: str, is_asked: bool, raised: type[Exception]
) -> None:
    table = rewritten(Refusing(fails_at))
    classes_of(table).is_asked = is_asked
    staged = StagedGroup(group_of(read("a", Tasks([Task("a")]))), (OUTPUT,), 1)
    with pytest.raises(raised) as caught:
        table.commit(Replacement((staged,), (), 7), since=7, summary={})
    assert isinstance(caught.value.__cause__ or caught.value, JavaError)


class Heads:
    """Our class for metadata, which answers with what changed since those of an identity."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: list[str] = []

    def since(self, _: Any, identity: str) -> str:
        self.asked.append(identity)
        return self.answers.pop(0)


def changed(identity: str, *new: int, gone: tuple[int, ...] = (), whole: bool = False) -> str:
    """Return what `IcebergHead.since` says of a table without columns."""
    schema = {"type": "struct", "schema-id": 0, "fields": []}
    metadata = {
        "format-version": 2,
        "table-uuid": "u",
        "location": "file:///t",
        "last-updated-ms": 1,
        "schemas": [schema],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
    }
    snapshots = [{"snapshot-id": one, "timestamp-ms": one, "manifest-list": "m"} for one in new]
    found = {"identity": identity, "file": "v1", "whole": whole, "metadata": metadata, "snapshots": snapshots}
    return json.dumps(found | {"gone": gone})


def test_of_metadata_only_what_changed_is_decoded() -> None:
    heads, java = HeadCache(), Heads()
    made = JavaTable(SimpleNamespace(iceberg_head=java), SimpleNamespace(), "file:///t", heads)  # type: ignore[arg-type]
    java.answers = [changed("one", 1, 2, whole=True), "", changed("two", 3, gone=(1,)), changed("six", 6, whole=True)]
    first, same, second, forgotten = (made.head() for _ in range(4))
    assert same is first
    assert [list(one.snapshots) for one in (first, second, forgotten)] == [[1, 2], [2, 3], [6]]
    assert second.snapshots[2] is first.snapshots[2]
    assert java.asked == ["", "one", "one", "two"]
    assert second.records == MetadataRecords(path="v1")
    java.answers = [changed("", 7, whole=True)]
    assert list(made.head().snapshots) == [7]
    assert heads.get("file:///t")[0] == "six", "metadata without a place are not kept"


@pytest.mark.parametrize("values", [[], None])
def test_a_file_that_is_live_twice_stops_the_rewrite(values: list[Any] | None) -> None:
    """A removal by path removes both, and the rows would be written once. values: of a partition; None: not in JSON."""
    once = table_of("a", "b", values=values)
    assert list(once.inputs(HEAD, 7, partitions=None)) == ["a", "b"]
    twice = table_of("a", "b", "a", values=values)
    with pytest.raises(Corrupt, match="live twice"):
        twice.inputs(HEAD, 7, partitions=None)


def test_a_commit_is_validated_since_the_snapshot_until_which_deletes_were_read() -> None:
    """Its outputs keep the sequence number of the read all the same."""
    rewrite = Rewrite()
    staged = StagedGroup(group_of(read("a", Tasks([Task("a")]))), (OUTPUT,), 1)
    table = rewritten(rewrite)
    table.commit(Replacement((staged,), (), checked_until=9), since=7, summary={})
    assert classes_of(table).required == [(9, ["a"])]
    assert ("validateFromSnapshot", 9) in rewrite.calls
    assert ("dataSequenceNumber", 70) in rewrite.calls


def test_delete_files_of_late_rows_get_the_number_of_their_snapshot_and_rests_their_own() -> None:
    rewrite = Rewrite()
    new = (NewDeletes("n", "n", 5, None, "java n"), NewDeletes("r", "r", 5, 8, "java r"))
    staged = StagedGroup(group_of(read("a", Tasks([Task("a")]))), (OUTPUT,), 1, deletes=new)
    rewritten(rewrite).commit(Replacement((staged,), (), 9), since=7, summary={})
    assert [call for call in rewrite.calls if call[0] == "addFile"] == [
        ("addFile", "java b"),
        ("addFile", "java n"),
        ("addFile", "java r", 8),
    ]


class Rows:
    """Our class for rows of delete files, which notes its calls."""

    def __init__(self, table: Any, at_most: int) -> None:
        self.calls: list[tuple[Any, ...]] = [(table, at_most)]
        self.answer: Any = None

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.calls.append((name, *given)) or self.answer


def java_deletes(path: str, offset: int | None, sequence: int | None = None) -> Any:
    return SimpleNamespace(
        location=lambda: path,
        contentOffset=lambda: offset,
        fileSizeInBytes=lambda: 30,
        dataSequenceNumber=lambda: sequence,
    )


def test_delete_files_are_read_and_written_by_our_class() -> None:
    made = table_of()
    classes_of(made).resolve = lambda _name: Rows  # type: ignore[method-assign, assignment, return-value]
    made.head = lambda: HEAD  # type: ignore[method-assign]
    rows: Rows = made._rows
    delete = AppliedDelete(
        "d", DeleteKind.POSITION, 1, is_exact=False, listed=Listed(Tasks([java_deletes("d", None, 4)]), 0)
    )
    assert made.named("a", [delete]) is None
    rows.answer = "[1,5]"
    assert made.named("a", [delete]) == [1, 5]
    rows.answer = java_deletes("p", 4)
    assert made.hide("java b", [2, 3]) == NewDeletes("p#4", "p", 30)
    assert made.without(delete, ["a"]) == NewDeletes("p#4", "p", 30, sequence=4)
    rows.answer = None
    assert made.without(delete, ["a"]) is None
    assert [call[0] for call in rows.calls[1:]] == ["named", "named", "hide", "without", "without"]
    assert rows.calls[3] == ("hide", "java b", "[2, 3]", False)


def test_the_order_of_a_read_is_that_of_sparks_plan() -> None:
    table = table_of()
    classes_of(table).resolve = lambda _name: SimpleNamespace(of=lambda frame: f'["{frame}"]')  # type: ignore[method-assign]
    assert table.read_order(SimpleNamespace(_jdf="a")) == ["a"]  # type: ignore[arg-type]


def test_the_size_of_a_file_is_what_the_store_says_now() -> None:
    table, disk = table_of(), {"a": 10, "b": 20}
    classes_of(table).iceberg_scan.sizes = lambda _, paths: json.dumps([disk.get(path) for path in json.loads(paths)])
    assert table.sizes(path for path in ("a", "b", "c")) == {"a": 10, "b": 20, "c": None}


def test_a_snapshot_is_scanned_once_for_what_plans_a_rewrite_what_writes_it_and_its_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And again for another snapshot, another partition, or with metrics that the scan before did not read."""
    table = table_of("a", "b")
    monkeypatch.setattr("actor.formats.iceberg.java_table.scan_filter", lambda *_: None)
    classes, found, partition = classes_of(table), [0], (WHOLE_TABLE,)
    planned = classes.iceberg_scan.planned
    classes.iceberg_scan.planned = lambda *given: found.append(found.pop() + 1) or planned(*given)

    def scans(snapshot: int, *, floats: bool, **given: Any) -> int:
        before = found[0]
        assert {*table.inputs(HEAD, snapshot, floats=floats, **given)} == given.get("paths", {"a", "b"})
        return found[0] - before

    assert scans(7, floats=False, partitions=partition) == 1
    assert scans(7, floats=True, partitions=partition) == 1
    assert scans(7, floats=True, partitions=partition, paths={"b"}) == 0
    assert scans(7, floats=False, partitions=None) == 0
    assert scans(8, floats=False, partitions=None) == 1
    monkeypatch.setattr("actor.formats.iceberg.java_table.scan_filter", lambda *_: "by partition")
    assert table.inputs(HEAD, 8, partitions=(PartitionKey('{"x":"1"}'),)) == {}
    assert found[0] == 4


def test_a_scan_of_many_files_is_not_kept_and_of_others_the_newest_are() -> None:
    cache, keys = ScanCache(), [("file:///t", "u", number, None) for number in range(3)]
    for key in keys:
        cache.put(key, Scan({}, frozenset(), has_floats=False))
    cache.put(keys[0], Scan(dict.fromkeys(map(str, range(MOST_FILES + 1))), frozenset(), has_floats=False))  # type: ignore[arg-type]
    assert [cache.get(key, floats=False) is not None for key in keys] == [False, True, True]
    cache.drop("file:///other")
    assert cache.get(keys[2], floats=False) is not None
    cache.drop("file:///t")
    assert [cache.get(key, floats=False) for key in keys] == [None, None, None]
