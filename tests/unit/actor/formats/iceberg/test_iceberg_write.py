"""Rows out equal rows in before a commit can see the files, whatever is known of the inputs."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.cells.columns import CellColumn
from actor.formats.iceberg.column_search import FoundColumns
from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.output_check import PathTaken
from actor.formats.iceberg.row_group_copy import CopiedFile, Division, ReadGroup, TaskFiles
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.iceberg.write import RowRemoval, StagedWriter
from actor.formats.parquet.copy_rules import EncodeReason, NotCopied
from actor.formats.parquet.file_columns import ParquetField
from actor.proofread.model import DeleteForm, Deletes, Field, Proof, Reading
from shared.errors import Corrupt, Difference, RefusedFiles, RetryableError, Unsupported
from shared.formats.iceberg.cell_names import name_prefix
from shared.formats.iceberg.partitions import Spec, SpecField
from shared.layout.cells.boxes import Point
from shared.layout.cells.routes import CellOutput, Fork
from shared.layout.cells.tags import CELL_TAG
from shared.layout.cells.tree import Cut
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.row_order import INPUT_ORDER, RowOrder, SortColumn
from tests.support.java_errors import JavaError
from tests.unit.actor.formats.iceberg.test_iceberg_inputs import POSITIONS, VALUES, VECTOR, live

TABLE = TableColumns((Field("id", "int64", 1), Field("t", "string", 2)), frozenset({1}))
EMPTY = GroupFooters(TABLE)
"""Footers that say nothing of any column."""
HEAD: Any = SimpleNamespace(
    metadata=SimpleNamespace(configuration={}), specs={0: Spec(0)}, sources={0: ()}, location="file:///t"
)


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


def copied(made: JavaFile) -> CopiedFile:
    return CopiedFile(made.location(), made.fileSizeInBytes(), made)


class FakeJavaTable:
    """Holds what was staged, and gives the outputs that the test lists."""

    location = "file:///t"

    def __init__(self, *rows: int) -> None:
        self.files = [JavaFile(one) for one in rows]
        self.staged: set[str] = set()
        self.deleted: list[str] = []
        self.strays: set[str] = set()
        self.order: list[str] = []

    def read_order(self, frame: Any) -> list[str]:
        return self.order

    def has_partition_of(self, output: JavaFile, read: Any) -> bool:
        return output.location() not in self.strays

    def stage(
        self, name: str, group: InputGroup, *, is_checked: bool = True, prefixes: tuple[str, ...] | None = None
    ) -> None:
        self.staged.add(name)
        self.is_checked = is_checked
        self.prefixes = prefixes

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
        self.filters: list[str] = []
        self.selected: list[str] = []
        self.parts: list[object] = []

    def selectExpr(self, *values: str) -> "FakeFrame":  # noqa: N802
        self.selected += values
        return self

    def repartitionById(self, *given: object) -> "FakeFrame":  # noqa: N802
        self.parts += given
        return self

    def collect(self) -> list[Any]:
        return [SimpleNamespace(asDict=lambda: {"c0": "7"})] * 2

    def __getattr__(self, name: str) -> Any:
        return self if name in ("read", "write") else lambda *_: self

    def option(self, name: str, value: str) -> "FakeFrame":
        self.options[name] = value
        return self

    def filter(self, condition: str) -> "FakeFrame":
        self.filters.append(condition)
        return self

    def count(self) -> int:
        return self.rows

    def save(self, name: str) -> None:
        if self.fails:
            raise OSError("the executor died")


class Copier:
    """Gives this output, and without one sends every group to the encoder; `damage`: what its walk of pages raises.

    is_merged: the output is merged. divided, sampled: what its tasks give; None: Spark has to.
    """

    columns = TABLE

    def __init__(
        self,
        output: JavaFile | None = None,
        seen: GroupFooters = EMPTY,
        *,
        is_merged: bool = False,
        divided: TaskFiles | None = None,
    ) -> None:
        self.output, self.seen, self._is_merged = output, seen, is_merged
        self.damage: Exception | None = None
        self.divided = divided
        self.sampled: list[Point] | None = None

    def read(self, live: InputGroup, columns: Any) -> ReadGroup:
        return ReadGroup(live, self.seen)

    def sample(self, live: ReadGroup, every: int) -> list[Point] | None:
        return self.sampled

    def divide(self, live: ReadGroup, division: Division) -> TaskFiles | None:
        return self.divided

    def footers(self, live: InputGroup) -> GroupFooters:
        return self.seen

    def check_pages(self, live: InputGroup) -> None:
        if self.damage is not None:
            raise self.damage

    def copy(self, live: ReadGroup) -> CopiedFile | NotCopied:
        if self._is_merged:
            return NotCopied(EncodeReason.DICTIONARIES)
        return NotCopied(EncodeReason.SCHEMA) if self.output is None else copied(self.output)

    def merge(self, live: ReadGroup, found: NotCopied) -> TaskFiles | None:
        return TaskFiles((copied(self.output),)) if self._is_merged and self.output is not None else None


class Reader:
    """Says that outputs were compared, by `reading` if that is given, or raises `difference`."""

    def __init__(self) -> None:
        self.difference: Exception | None = None
        self.reading: Reading | None = None
        self.taken: list[PathTaken] = []
        self.left_out: Any = None

    def check(self, live: InputGroup, footers: Any, outputs: Any, *, path_taken: PathTaken, over: Any = None) -> Proof:
        self.taken.append(path_taken)
        self.left_out = over
        if self.difference is not None:
            raise self.difference
        return (
            self.check_over(live, over)
            if over
            else Proof(self.reading or (Reading.BYTES if path_taken is PathTaken.COPIED else Reading.ROWS))
        )

    def check_over(self, live: InputGroup, over: Any) -> Proof:
        return Proof(Reading.ROWS)


def write(
    table: FakeJavaTable,
    frame: FakeFrame,
    *deletes: Any,
    copied: JavaFile | None = None,
    copier: Any = None,
    reader: Any = None,
    division: Division | None = None,
) -> Any:
    writer = StagedWriter(table, frame, copier or Copier(copied), HEAD, reader or Reader())  # type: ignore[arg-type]
    if division is None:
        return writer.write(group(*deletes))
    return writer.write_divided(writer.read(group(*deletes), division.columns), division)


def group(*deletes: Any) -> InputGroup:
    inputs = (live("a"), live("b", *deletes))
    return InputGroup(FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.FULL), inputs)


def test_a_group_that_is_copied_is_not_staged_and_one_that_is_encoded_says_why() -> None:
    table = FakeJavaTable()
    made = write(table, FakeFrame(0, fails=True), copied=JavaFile(200))
    assert (made.rows, made.encoded_because, list(made.paths)) == (200, None, ["out-200"])
    assert made.outputs[0].raw is not None
    assert write(FakeJavaTable(200), FakeFrame(0)).encoded_because is EncodeReason.SCHEMA
    assert made.in_order


@pytest.mark.parametrize(("order", "is_in_order"), [(["a", "b"], True), (["b", "a"], False), ([], False)])
def test_an_encoded_output_holds_its_inputs_one_after_the_other_only_where_sparks_plan_says_so(
    order: list[str], is_in_order: bool
) -> None:
    table = FakeJavaTable(200)
    table.order = order
    assert write(table, FakeFrame(0)).in_order is is_in_order


@pytest.mark.parametrize("rows", [199, 201])
def test_a_copy_with_other_rows_stops_the_rewrite_and_is_deleted(rows: int) -> None:
    table = FakeJavaTable()
    with pytest.raises(Corrupt, match=f"200 rows in, {rows} rows out"):
        write(table, FakeFrame(0), copied=JavaFile(rows))
    assert table.deleted == [f"out-{rows}"]


def test_rows_are_compared_with_what_the_metadata_count() -> None:
    table, frame = FakeJavaTable(197), FakeFrame(0)
    made = write(table, frame, VECTOR)
    assert (made.rows, [output.file.rows for output in made.outputs], table.deleted) == (197, [197], [])
    assert table.staged == set()
    assert frame.options["output-spec-id"] == "0"
    assert int(frame.options["target-file-size-bytes"]) > 2**40


@pytest.mark.parametrize("reading", list(Reading))
def test_rows_that_the_metadata_do_not_count_are_counted_where_no_reader_has_read_them(reading: Reading) -> None:
    table, reader = FakeJavaTable(190), Reader()
    reader.reading = reading
    assert write(table, FakeFrame(190), POSITIONS, reader=reader).rows == 190
    if reading is Reading.ROWS:
        assert write(table, FakeFrame(191), POSITIONS, reader=reader).rows == 190, "Spark counts none"
        return
    with pytest.raises(Corrupt, match="191 rows in, 190 rows out"):
        write(table, FakeFrame(191), POSITIONS, reader=reader)
    assert (table.deleted, table.staged) == (["out-190"], set())


@pytest.mark.parametrize(("removed", "rows"), [(3, (197,)), (200, ())])
def test_rows_that_are_left_out_are_counted_and_the_reader_is_told(removed: int, rows: tuple[int, ...]) -> None:
    over = Deletes(DeleteForm.OVER, text='["t", "2026-01-01"]')
    removal, table, frame, reader = RowRemoval("t < 1", removed, over), FakeJavaTable(*rows), FakeFrame(0), Reader()
    inputs = (live("a"), live("b"))
    group = InputGroup(FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.FULL), inputs)
    given: Any = (table, frame, Copier(JavaFile(200)), HEAD, reader)
    made = StagedWriter(*given).write_without(group, removal)
    assert (made.rows, len(made.outputs), reader.left_out) == (200 - removed, len(rows), over)
    assert frame.filters == ["NOT coalesce(t < 1, false)"]
    assert StagedWriter(*given).check_over(group, over).reading is Reading.ROWS
    with pytest.raises(Corrupt, match=f"{199 - removed} rows in"):
        StagedWriter(*given).write_without(group, RowRemoval("t < 1", removed + 1, over))


class WithoutDeleted(Copier):
    """Leaves so many rows out of the group, and writes this output."""

    def __init__(self, output: JavaFile | None, hidden: int) -> None:
        super().__init__()
        self.made = TaskFiles(() if output is None else (copied(output),), hidden)

    def copy(self, live: ReadGroup) -> NotCopied:
        return NotCopied(EncodeReason.DELETE_FILES)

    def merge(self, live: ReadGroup, found: NotCopied) -> TaskFiles:
        return self.made


def test_a_merge_has_the_rows_that_are_not_deleted_and_no_other() -> None:
    table, reader = FakeJavaTable(), Reader()
    made = write(table, FakeFrame(0, fails=True), copier=WithoutDeleted(JavaFile(197), 3), reader=reader)
    assert (made.rows, [*made.paths], made.encoded_because) == (197, ["out-197"], EncodeReason.DELETE_FILES)
    assert (made.by_column, made.in_order, reader.taken) == (True, True, [PathTaken.BY_COLUMN])
    assert write(table, FakeFrame(0, fails=True), copier=WithoutDeleted(None, 200)).outputs == ()
    with pytest.raises(Corrupt, match="197 rows in, 198 rows out"):
        write(table, FakeFrame(0, fails=True), copier=WithoutDeleted(JavaFile(198), 3))
    assert table.deleted == ["out-198"]


@pytest.mark.parametrize("is_divided", [False, True])
def test_what_no_reader_compares_of_a_task_has_the_rows_that_spark_counts(*, is_divided: bool) -> None:
    """Which rows are deleted is found by a rule of ours; where it is the only one, Spark's has to agree."""
    reader, merged = Reader(), WithoutDeleted(JavaFile(197), 3)
    reader.reading = Reading.NONE
    given: dict[str, Any] = {"copier": Copier(divided=merged.made) if is_divided else merged, "reader": reader}
    given["division"] = DIVISION if is_divided else None
    assert write(FakeJavaTable(), FakeFrame(197), POSITIONS, **given).rows == 197
    table = FakeJavaTable()
    with pytest.raises(Corrupt, match="196 rows in, 197 rows out"):
        write(table, FakeFrame(196), POSITIONS, **given)
    assert (table.deleted, table.staged) == (["out-197"], set())


CELL = '[[["1","n"],0,50]]'


@pytest.mark.parametrize(
    ("cells", "prefixes"), [((CELL, CELL), (name_prefix(CELL),)), ((CELL, "[]"), None), ((None, None), None)]
)
def test_rows_that_stay_when_others_are_left_out_stay_in_their_cell(
    cells: tuple[str | None, ...], prefixes: tuple[str, ...] | None
) -> None:
    tags = [{} if cell is None else {CELL_TAG: cell} for cell in cells]
    named = zip("ab", tags, strict=True)
    inputs = tuple(replace(live(name), file=replace(live(name).file, tags=of)) for name, of in named)
    of = InputGroup(FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.FULL), inputs)
    table: Any = FakeJavaTable(197)
    writer = StagedWriter(table, FakeFrame(0), Copier(JavaFile(200)), HEAD, Reader())  # type: ignore[arg-type]
    writer.write_without(of, RowRemoval("t < 1", 3, Deletes(DeleteForm.OVER)))
    assert table.prefixes == prefixes


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
        StagedWriter(table, FakeFrame(0), Copier(), HEAD, Reader()).write(InputGroup(group, inputs))  # type: ignore[arg-type]
    assert (table.staged, table.deleted) == (set(), [])


def test_several_files_for_one_group_are_not_what_was_planned() -> None:
    table = FakeJavaTable(150, 50)
    with pytest.raises(RetryableError, match="2 files"):
        write(table, FakeFrame(0))
    assert table.deleted == ["out-150", "out-50"]


CELLS = (CellColumn(("1", "n"), ("a",), "long"),)
DIVISION = Division(
    CELLS, Fork(Cut(0, 7), CellOutput(None), CellOutput(None)), "IF(a < 7, 0, 1)", ("cell.x.", "cell.y.")
)


def test_a_group_that_is_divided_has_an_output_for_each_part_and_the_names_of_all() -> None:
    table, frame, reader = FakeJavaTable(150, 50), FakeFrame(0), Reader()
    table.order = ["a", "b"]
    made = write(table, frame, division=DIVISION, reader=reader)
    assert (made.rows, [*made.paths], made.in_order) == (200, ["out-150", "out-50"], False)
    assert (made.encoded_because, reader.taken) == (EncodeReason.ROW_ORDER, [PathTaken.DIVIDED])
    assert (table.prefixes, table.staged) == (DIVISION.prefixes, set())
    assert (frame.selected, frame.parts) == (
        ["*", "IF(a < 7, 0, 1) AS __lakewright_output"],
        [2, "__lakewright_output"],
    )
    with pytest.raises(Corrupt, match="200 rows in, 199 rows out"):
        write(FakeJavaTable(150, 49), FakeFrame(0), division=DIVISION)
    stray = FakeJavaTable(150, 50)
    stray.strays = {"out-50"}
    with pytest.raises(Corrupt, match="another partition"):
        write(stray, FakeFrame(0), division=DIVISION)
    assert stray.deleted == ["out-150", "out-50"]


def test_a_group_that_a_task_divides_is_not_staged_and_its_rows_are_counted() -> None:
    divided, reader, table = (
        TaskFiles((copied(JavaFile(150)), copied(JavaFile(47))), 3),
        Reader(),
        FakeJavaTable(),
    )
    copier = Copier(divided=divided)
    made = write(table, FakeFrame(0, fails=True), VECTOR, division=DIVISION, copier=copier, reader=reader)
    assert (made.rows, [*made.paths], made.in_order, made.by_column) == (197, ["out-150", "out-47"], False, True)
    assert (made.encoded_because, reader.taken) == (EncodeReason.ROW_ORDER, [PathTaken.DIVIDED_BY_COLUMN])
    odd = Copier(divided=replace(divided, hidden_rows=2))
    with pytest.raises(Corrupt, match="198 rows in, 197 rows out"):
        write(table, FakeFrame(0, fails=True), VECTOR, division=DIVISION, copier=odd)
    assert table.deleted == ["out-150", "out-47"]


def test_rows_of_a_group_are_sampled_and_nothing_stays_staged() -> None:
    table, frame, copier = FakeJavaTable(), FakeFrame(0), Copier()
    writer = StagedWriter(table, frame, copier, HEAD, Reader())  # type: ignore[arg-type]
    read = writer.read(group(), CELLS)
    assert writer.sample(read, CELLS, 5) == [(7,), (7,)]
    assert (frame.selected[0], frame.filters) == (
        "CAST(`a` AS STRING) AS c0",
        ["pmod(xxhash64(__lakewright_row), 5) = 0"],
    )
    assert (table.staged, table.prefixes) == (set(), None)
    copier.sampled = [(8,)]
    assert writer.sample(read, CELLS, 5) == [(8,)]
    assert len(frame.filters) == 1, "Spark read no row"


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


def stored(number: ParquetField) -> GroupFooters:
    """Return footers of files whose column `id` is stored as given."""
    return GroupFooters(TABLE, found={"s": FoundColumns({1: number})})


@pytest.mark.parametrize("repetition", ["OPTIONAL", "REQUIRED"])
def test_files_that_may_hold_forbidden_nulls_are_read_as_if_all_may_be_null(repetition: str) -> None:
    """Where Spark is told that there is no null, it takes the value of the row before for one."""
    table = FakeJavaTable(200)
    write(table, FakeFrame(0), copier=Copier(seen=stored(ParquetField("id", 1, repetition, physical="INT64"))))
    assert table.is_checked is (repetition == "REQUIRED")


def test_a_column_that_files_lack_may_be_null_unless_it_has_a_default() -> None:
    for default, is_checked in ((None, False), ("5", True)):
        columns = replace(TABLE, columns=(Field("id", "int64", 1, default=default),))
        table = FakeJavaTable(200)
        write(table, FakeFrame(0), copier=Copier(seen=GroupFooters(columns, found={"s": FoundColumns()})))
        assert table.is_checked is is_checked


def test_damage_that_a_walk_of_the_pages_finds_refuses_the_group_before_anything_is_staged() -> None:
    copier, table = Copier(seen=stored(ParquetField("id", 1, "REQUIRED", physical="INT64"))), FakeJavaTable(200)
    copier.damage = JavaError("DamagedInput", message="f has a page that differs from its checksum")
    with pytest.raises(RefusedFiles, match="f has a page that differs") as refused:
        write(table, FakeFrame(0), copier=copier)
    assert refused.value.reason == "damaged"
    copier.damage = OSError("the store is away")
    with pytest.raises(OSError, match="away"):
        write(table, FakeFrame(0), copier=copier)
    assert table.staged == set()


@pytest.mark.parametrize("kind", ["time", "timestamp_ns", "geometry(srid:4326)"])
def test_a_type_that_spark_lacks_is_refused_by_name_before_anything_is_staged(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = Field("s", "struct", 3, children=(Field("w", kind, 4),))
    monkeypatch.setattr(Copier, "columns", TableColumns((inside,)))
    table = FakeJavaTable(200)
    with pytest.raises(RefusedFiles, match=r"the column s\.w has the type") as refused:
        write(table, FakeFrame(0))
    assert (refused.value.reason, refused.value.field, table.staged) == ("types", "s.w", set())
    assert write(FakeJavaTable(), FakeFrame(0), copied=JavaFile(200)).rows == 200, "row groups are copied all the same"


def test_a_name_that_iceberg_reserves_is_refused_before_anything_is_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a struct it is a name as any other."""
    monkeypatch.setattr(Copier, "columns", TableColumns((Field("_pos", "int64", 3),)))
    table = FakeJavaTable(200)
    with pytest.raises(RefusedFiles, match="the column _pos has a name that Iceberg reserves") as refused:
        write(table, FakeFrame(0))
    assert (refused.value.reason, refused.value.field, table.staged) == ("unsupported", "_pos", set())
    assert write(FakeJavaTable(), FakeFrame(0), copied=JavaFile(200)).rows == 200, "row groups are copied all the same"
    inside = Field("s", "struct", 3, children=(Field("_pos", "int64", 4),))
    monkeypatch.setattr(Copier, "columns", TableColumns((inside,)))
    assert write(FakeJavaTable(200), FakeFrame(0)).rows == 200


def test_a_spec_whose_column_was_dropped_is_refused_by_name_and_a_void_field_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for transform in ("identity", "void"):
        monkeypatch.setattr(HEAD, "specs", {0: Spec(0, (SpecField("day", transform, "date"),))})
        monkeypatch.setattr(HEAD, "sources", {0: (None,)})
        if transform == "void":
            assert write(FakeJavaTable(200), FakeFrame(0)).rows == 200
            continue
        with pytest.raises(RefusedFiles, match="partition field day of the spec 0"):
            write(FakeJavaTable(200), FakeFrame(0))


def test_rows_are_counted_with_the_columns_of_deletes_inside_structs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Iceberg adds the columns that a delete needs to those that are read, but none that lies in a struct."""
    inside = Field("s", "struct", 3, children=(Field("k", "int32", 4),))
    monkeypatch.setattr(Copier, "columns", TableColumns((inside,)))
    asked: list[Any] = []
    frame = FakeFrame(0)
    frame.agg = lambda *columns: asked.append(len(columns)) or frame  # type: ignore[attr-defined, func-returns-value]
    frame.collect = lambda: [(190,)]  # type: ignore[attr-defined]
    monkeypatch.setattr("actor.formats.iceberg.write.functions", SimpleNamespace(count=str, col=str))
    reader = Reader()
    reader.reading = Reading.NONE
    assert write(FakeJavaTable(190), frame, replace(VALUES, key_ids=(4,)), reader=reader).rows == 190
    assert asked == [2]
    top = write(FakeJavaTable(0), frame, replace(VALUES, key_ids=(3,)), reader=reader)
    assert top.rows == 0, "a top-level column is added"


WAYS = {
    PathTaken.COPIED: Copier(JavaFile(200)),
    PathTaken.BY_COLUMN: Copier(JavaFile(200), is_merged=True),
    PathTaken.ENCODED: Copier(),
    PathTaken.DIVIDED: Copier(),
    PathTaken.DIVIDED_BY_COLUMN: Copier(divided=TaskFiles((copied(JavaFile(200)),), 0)),
}


@pytest.mark.parametrize("taken", list(PathTaken))
def test_every_output_is_compared_with_its_inputs_and_deleted_if_it_differs(taken: PathTaken) -> None:
    reader, table = Reader(), FakeJavaTable(200)
    division = DIVISION if taken in (PathTaken.DIVIDED, PathTaken.DIVIDED_BY_COLUMN) else None
    made = write(table, FakeFrame(0), copier=WAYS[taken], reader=reader, division=division)
    assert reader.taken == [taken]
    assert made.proof.reading is (Reading.BYTES if taken is PathTaken.COPIED else Reading.ROWS)
    assert made.by_column == (taken in (PathTaken.BY_COLUMN, PathTaken.DIVIDED_BY_COLUMN))
    assert (made.encoded_because is None) == (taken is PathTaken.COPIED)
    assert table.deleted == []
    reader.difference = Difference("other rows")
    with pytest.raises(Difference):
        write(table, FakeFrame(0), copier=WAYS[taken], reader=reader, division=division)
    assert (table.deleted, table.staged) == (["out-200"], set())


def test_a_writer_knows_of_no_leftovers_as_those_who_fail_delete_what_they_wrote() -> None:
    writer = StagedWriter(FakeJavaTable(), FakeFrame(0), Copier(), HEAD, Reader())  # type: ignore[arg-type]
    assert (writer.leftovers(["a"]), writer.may_have_lost_attempts()) == ((), False)
