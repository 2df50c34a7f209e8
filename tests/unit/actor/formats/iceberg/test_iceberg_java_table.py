"""Which calls of Iceberg a commit consists of, and which files a scan returns, on stand-ins for its Java objects."""

from types import SimpleNamespace
from typing import Any

import pytest

from actor.formats.iceberg.commit import Replacement, StagedGroup
from actor.formats.iceberg.head_cache import HeadCache
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput, ScannedTask
from actor.formats.iceberg.java_table import JavaTable
from shared.errors import Corrupt
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.partitions import Spec
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind, TableMetadata, TableProtocol

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
    """A scan task of a file without deletes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def file(self) -> Any:
        known = {
            "location": self.path,
            "specId": 0,
            "partition": None,
            "fileSizeInBytes": 10,
            "recordCount": 1,
            "fileSequenceNumber": 0,
            "format": "PARQUET",
            "sortOrderId": None,
            "keyMetadata": None,
        }
        return SimpleNamespace(**{name: lambda value=value: value for name, value in known.items()})

    def deletes(self) -> list[Any]:
        return []


class Tasks(list[Task]):
    """Java's list of them."""

    def get(self, number: int) -> Task:
        return self[number]


class Scan:
    """A scan that finds these files."""

    def __init__(self, *paths: str) -> None:
        self._tasks = Tasks(Task(path) for path in paths)

    def useSnapshot(self, _: int) -> "Scan":  # noqa: N802 - Iceberg's name
        return self

    def ignoreResiduals(self) -> "Scan":  # noqa: N802 - Iceberg's name
        return self

    def planFiles(self) -> Any:  # noqa: N802 - Iceberg's name
        return SimpleNamespace(tasks=self._tasks, close=lambda: None)


class Classes:
    """What `JavaTable` resolves of Java: the copy of an iterable, and our class for scans, which notes its calls."""

    def __init__(self) -> None:
        self.removed: list[tuple[Any, ...]] = []
        self.iceberg_scan = SimpleNamespace(remove=self._remove, identity=lambda table: table.identity)
        self.java_list = list

    def _remove(self, *arguments: Any) -> int:
        self.removed.append(arguments)
        return len(arguments[-1])

    def resolve(self, name: str) -> Any:
        if name.endswith("Lists"):
            return SimpleNamespace(newArrayList=lambda planned: planned.tasks)
        return SimpleNamespace(forName=lambda _: None)


def table_of(**methods: Any) -> JavaTable:
    return JavaTable(Classes(), SimpleNamespace(**methods), "file:///t")  # type: ignore[arg-type]


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
    return LiveInput(path, 10, 1, 0, (), DataFile(path, 10, WHOLE_TABLE, rows=1), scanned=ScannedTask(tasks, number))


def group_of(*inputs: LiveInput) -> InputGroup:
    return InputGroup(FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.FULL), inputs)


def commit() -> list[tuple[Any, ...]]:
    rewrite = Rewrite()
    table = rewritten(rewrite)
    group = group_of(read("a", Tasks([Task("a")])))
    delete = AppliedDelete("d", DeleteKind.POSITION, 1, is_exact=False, raw="java d")
    staged = StagedGroup(group, (DataFile("b", 10, WHOLE_TABLE),), 1, raw=("java b",))
    table.commit(Replacement((staged,), (delete,)), since=7, summary={"key": "value"})
    return [(name, *(_path(argument) for argument in arguments)) for name, *arguments in rewrite.calls]


def _path(argument: Any) -> Any:
    return argument.location() if isinstance(argument, SimpleNamespace) else argument


def test_a_commit_is_validated_against_all_snapshots_since_the_read() -> None:
    assert ("validateFromSnapshot", 7) in commit()


def test_outputs_get_the_sequence_number_of_the_read_so_that_later_deletes_apply_to_them() -> None:
    assert ("dataSequenceNumber", 70) in commit()


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


def test_inputs_of_one_scan_are_removed_in_one_call_and_those_of_several_each_by_itself() -> None:
    """A number means nothing in another scan: it would name the file of others, whose rows would be lost."""
    rewrite, tasks, others = Rewrite(), Tasks([Task("a"), Task("b"), Task("c")]), Tasks([Task("d")])
    table = rewritten(rewrite)
    table.with_classes = lambda call: call()
    same, mixed = group_of(read("c", tasks), read("a", tasks)), group_of(read("b", tasks), read("d", others))
    staged = [StagedGroup(one, (), 1, raw=()) for one in (same, mixed)]
    table.commit(Replacement(tuple(staged)), since=7, summary={})
    assert classes_of(table).removed == [(rewrite, tasks, [2, 0])]
    assert [_path(file) for name, *files in rewrite.calls if name == "deleteFile" for file in files] == ["b", "d"]


def test_metadata_are_decoded_again_once_they_are_others() -> None:
    heads = HeadCache()
    heads.put("file:///t", "one", HEAD)
    made = JavaTable(Classes(), SimpleNamespace(identity="one"), "file:///t", heads)  # type: ignore[arg-type]
    made.with_classes = lambda call: call()
    assert made.head() is HEAD
    made.raw.identity = "two"
    with pytest.raises(AttributeError, match="operations"):  # It asks the table.
        made.head()
    made.with_classes = lambda _: None
    with pytest.raises(AttributeError, match="operations"):
        made.head()


def test_a_file_that_is_live_twice_stops_the_rewrite() -> None:
    """A removal by path removes both, and the rows would be written once."""
    once = table_of(newScan=lambda: Scan("a", "b"))
    assert list(once.inputs(HEAD, 7, partitions=None)) == ["a", "b"]
    twice = table_of(newScan=lambda: Scan("a", "b", "a"))
    with pytest.raises(Corrupt, match="live twice"):
        twice.inputs(HEAD, 7, partitions=None)


def test_rows_that_came_in_one_call_are_files_as_those_that_were_asked_for_one_by_one() -> None:
    """A row names the first of the files of its partition, which alone is asked for its values."""
    asked = table_of(newScan=lambda: Scan("a", "b"))
    at_once = table_of(newScan=lambda: Scan("a", "b"))
    described = [["a", 10, 1, 0, 0, 0, 0, "parquet", False, 0], ["b", 10, 1, 0, 0, 0, 0, "parquet", False, 0]]

    at_once.with_classes = lambda _: described
    assert at_once.inputs(HEAD, 7, partitions=None) == asked.inputs(HEAD, 7, partitions=None)
    described.append(described[0])
    with pytest.raises(Corrupt, match="live twice"):
        at_once.inputs(HEAD, 7, partitions=None)
