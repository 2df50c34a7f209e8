"""Which calls of Iceberg a commit consists of, and which files a scan returns, on stand-ins for its Java objects."""

from types import SimpleNamespace
from typing import Any

import pytest

from actor.formats.iceberg.commit import Replacement, StagedGroup
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
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
        self._path = path

    def file(self) -> Any:
        known = {"location": self._path, "specId": 0, "partition": None, "fileSizeInBytes": 10, "recordCount": 1}
        return SimpleNamespace(
            **{name: lambda value=value: value for name, value in known.items()}, fileSequenceNumber=int
        )

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
    """What `JavaTable` resolves of Java: the copy of an iterable."""

    def resolve(self, name: str) -> Any:
        if name.endswith("Lists"):
            return SimpleNamespace(newArrayList=lambda planned: planned.tasks)
        return SimpleNamespace(forName=lambda _: None)


def table_of(**methods: Any) -> JavaTable:
    return JavaTable(Classes(), SimpleNamespace(**methods), "file:///t")  # type: ignore[arg-type]


def commit() -> list[tuple[Any, ...]]:
    rewrite = Rewrite()
    table = table_of(
        newRewrite=lambda: rewrite, snapshot=lambda number: SimpleNamespace(sequenceNumber=lambda: 10 * number)
    )
    file = DataFile("a", 10, WHOLE_TABLE, rows=1)
    read = LiveInput("a", 10, 1, 0, (), file, task=SimpleNamespace(file=lambda: "java a"))
    group = InputGroup(FileGroup(WHOLE_TABLE, (file,), RewriteMode.FULL), (read,))
    delete = AppliedDelete("d", DeleteKind.POSITION, 1, is_exact=False, raw="java d")
    staged = StagedGroup(group, (DataFile("b", 10, WHOLE_TABLE),), 1, raw=("java b",))
    table.commit(Replacement((staged,), (delete,)), since=7, summary={"key": "value"})
    return rewrite.calls


def test_a_commit_is_validated_against_all_snapshots_since_the_read() -> None:
    assert ("validateFromSnapshot", 7) in commit()


def test_outputs_get_the_sequence_number_of_the_read_so_that_later_deletes_apply_to_them() -> None:
    assert ("dataSequenceNumber", 70) in commit()


def test_a_commit_replaces_its_inputs_and_is_the_last_call() -> None:
    calls = commit()
    changed = [call for call in calls if call[0] in ("deleteFile", "addFile", "set")]
    assert changed == [
        ("deleteFile", "java a"),
        ("addFile", "java b"),
        ("deleteFile", "java d"),
        ("set", "key", "value"),
    ]
    assert (calls[-1], [name for name, *_ in calls].count("commit")) == (("commit",), 1)


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
    described = [["a", 10, 1, 0, 0, 0, 0], ["b", 10, 1, 0, 0, 0, 0]]

    at_once.rows_of = lambda _: described
    assert at_once.inputs(HEAD, 7, partitions=None) == asked.inputs(HEAD, 7, partitions=None)
    described.append(described[0])
    with pytest.raises(Corrupt, match="live twice"):
        at_once.inputs(HEAD, 7, partitions=None)
