"""Rows out equal rows in before a commit can see the files, whatever is known of the inputs."""

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.row_group_copy import CopiedFile
from actor.formats.iceberg.write import StagedWriter
from actor.formats.parquet.copy_rules import EncodeReason, NotCopied
from shared.errors import Corrupt, RetryableError, Unsupported
from shared.layout.planner import FileGroup, RewriteMode
from shared.layout.row_order import INPUT_ORDER, RowOrder, SortColumn
from shared.partitions import WHOLE_TABLE
from tests.unit.actor.formats.iceberg.test_iceberg_inputs import POSITIONS, VECTOR, live


class JavaFile:
    """An output as Iceberg shows it."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def location(self) -> str:
        return f"out-{self._rows}"

    def fileSizeInBytes(self) -> int:  # noqa: N802
        return 11

    def recordCount(self) -> int:  # noqa: N802
        return self._rows


class FakeJavaTable:
    """Holds what was staged, and gives the outputs that the test lists."""

    location = "file:///t"

    def __init__(self, *rows: int) -> None:
        self.files = [JavaFile(one) for one in rows]
        self.staged: set[str] = set()
        self.deleted: list[str] = []
        self.strays: set[str] = set()

    def has_partition_of(self, output: JavaFile, read: Any) -> bool:
        return output.location() not in self.strays

    def stage(self, name: str, group: InputGroup) -> None:
        self.staged.add(name)

    def unstage(self, name: str) -> None:
        self.staged.remove(name)

    def outputs(self, name: str) -> list[JavaFile]:
        assert name in self.staged
        return self.files

    def delete(self, paths: Any) -> None:
        self.deleted += paths


class FakeFrame:
    """Answers every call of a reader or writer with itself, and counts rows."""

    def __init__(self, rows: int, *, fails: bool = False) -> None:
        self.rows, self.fails = rows, fails
        self.options: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return self if name in ("read", "write") else lambda *_: self

    def option(self, name: str, value: str) -> "FakeFrame":
        self.options[name] = value
        return self

    def count(self) -> int:
        return self.rows

    def save(self, name: str) -> None:
        if self.fails:
            raise OSError("the executor died")


class Copier:
    """Gives this output, and without one sends every group to the encoder."""

    def __init__(self, output: JavaFile | None = None) -> None:
        self.output = output

    def copy(self, live: InputGroup) -> CopiedFile | NotCopied:
        return NotCopied(EncodeReason.SCHEMA) if self.output is None else CopiedFile(self.output)


def write(table: FakeJavaTable, frame: FakeFrame, *deletes: Any, copied: JavaFile | None = None) -> Any:
    inputs = (live("a"), live("b", *deletes))
    group = InputGroup(FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.FULL), inputs)
    return StagedWriter(table, frame, Copier(copied)).write(group)  # type: ignore[arg-type]


def test_a_group_that_is_copied_is_not_staged_and_one_that_is_encoded_says_why() -> None:
    table = FakeJavaTable()
    made = write(table, FakeFrame(0, fails=True), copied=JavaFile(200))
    assert (made.rows, made.encoded_because, [file.path for file in made.outputs]) == (200, None, ["out-200"])
    assert len(made.raw) == 1
    assert write(FakeJavaTable(200), FakeFrame(0)).encoded_because is EncodeReason.SCHEMA


@pytest.mark.parametrize("rows", [199, 201])
def test_a_copy_with_other_rows_stops_the_rewrite_and_is_deleted(rows: int) -> None:
    table = FakeJavaTable()
    with pytest.raises(Corrupt, match=f"200 rows in, {rows} rows out"):
        write(table, FakeFrame(0), copied=JavaFile(rows))
    assert table.deleted == [f"out-{rows}"]


def test_rows_are_compared_with_what_the_metadata_count() -> None:
    table, frame = FakeJavaTable(197), FakeFrame(0)
    made = write(table, frame, VECTOR)
    assert (made.rows, [file.rows for file in made.outputs], table.deleted) == (197, [197], [])
    assert table.staged == set()
    assert frame.options["output-spec-id"] == "0"
    assert int(frame.options["target-file-size-bytes"]) > 2**40


def test_rows_that_the_metadata_do_not_count_are_read() -> None:
    assert write(FakeJavaTable(190), FakeFrame(190), POSITIONS).rows == 190


@pytest.mark.parametrize("rows", [(199,), (201,), (), (100, 99)])
def test_other_rows_out_stop_the_rewrite_and_delete_its_files(rows: tuple[int, ...]) -> None:
    table = FakeJavaTable(*rows)
    with pytest.raises(Corrupt, match="200 rows in"):
        write(table, FakeFrame(0))
    assert table.deleted == [f"out-{one}" for one in rows]
    assert table.staged == set()


@pytest.mark.parametrize("order", [INPUT_ORDER, RowOrder((SortColumn("id"),), outputs=3)])
def test_a_group_with_an_order_is_refused_before_anything_is_written(order: RowOrder) -> None:
    table, inputs = FakeJavaTable(100), (live("a"),)
    group = FileGroup(WHOLE_TABLE, (inputs[0].file,), RewriteMode.FULL, order=order)
    with pytest.raises(Unsupported, match="neither sort rows nor keep their order"):
        StagedWriter(table, FakeFrame(0), Copier()).write(InputGroup(group, inputs))  # type: ignore[arg-type]
    assert (table.staged, table.deleted) == (set(), [])


def test_several_files_for_one_group_are_not_what_was_planned() -> None:
    table = FakeJavaTable(150, 50)
    with pytest.raises(RetryableError, match="2 files"):
        write(table, FakeFrame(0))
    assert table.deleted == ["out-150", "out-50"]


def test_an_output_of_another_partition_stops_the_rewrite() -> None:
    """Later deletes by value that apply to its inputs would not apply to it."""
    table = FakeJavaTable(200)
    table.strays = {"out-200"}
    with pytest.raises(Corrupt, match="another partition"):
        write(table, FakeFrame(0))
    assert (table.deleted, table.staged) == (["out-200"], set())


def test_a_group_all_of_whose_rows_are_deleted_may_leave_no_file() -> None:
    made = write(FakeJavaTable(), FakeFrame(0), POSITIONS)
    assert (made.rows, made.outputs) == (0, ())


def test_a_failed_write_leaves_nothing_staged() -> None:
    table = FakeJavaTable()
    with pytest.raises(OSError, match="died"):
        write(table, FakeFrame(0, fails=True))
    assert table.staged == set()
