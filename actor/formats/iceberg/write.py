"""Writes a group's output before any commit: rows out must equal rows in before the table can see the files."""

import re
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession, functions

from actor.cells.columns import CellColumn, point_of, texts_of
from actor.cells.outputs import is_sampled
from actor.formats.iceberg.encode_limits import (
    needs_row_reader,
    refuse_dropped_source,
    refuse_lost_keys,
    refuse_names,
    refuse_stored_types,
    refuse_structs,
    refuse_types,
)
from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.iceberg.inputs import InputGroup, known_rows
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.output_check import PathTaken
from actor.formats.iceberg.proof_request import partition_constants
from actor.formats.iceberg.row_group_copy import CopiedFile, Division, ReadGroup, TaskFiles
from actor.formats.iceberg.staged import IcebergFile, StagedGroup
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.parquet.copy_rules import EncodeReason, NotCopied
from actor.jvm.errors import matching_line
from actor.proofread.model import Deletes, Proof, Reading
from shared.errors import Corrupt, RefusedFiles, RetryableError, Unsupported
from shared.formats.iceberg.cell_names import name_prefix
from shared.formats.iceberg.metadata import TableHead
from shared.layout.cells.boxes import Point
from shared.layout.cells.tags import CELL_TAG
from shared.paths.sql_text import quoted
from shared.refusals import RefusalReason
from shared.table import DataFile

SESSION_CONF = {
    "spark.sql.adaptive.enabled": "false",  # One group is one task and one file.
    "spark.sql.shuffle.partitions": "1",  # Rows are counted by their files, and not otherwise brought together.
    "spark.sql.caseSensitive": "true",  # Iceberg's columns are: `v` and `V` are two.
}
"""Settings of a session that writes groups."""

WHOLE_BYTES = 2**50
"""A size that neither a split nor an output reaches, so that a group becomes one file.

No multiple of its inputs would do: Iceberg measures a growing file by its rows before compression.
"""


_DAMAGED = re.compile(r"\bDamagedInput\b")
"""The class of what our tasks raise for a file whose bytes are not those that were written."""


@dataclass(frozen=True, slots=True)
class RowRemoval:
    """Rows to leave out, which are so many: by a condition in Spark's SQL, and for the other reader."""

    condition: str
    rows: int
    over: Deletes

    @property
    def others(self) -> str:
        """The condition of rows that stay."""
        return f"NOT coalesce({self.condition}, false)"


_OUTPUT, _ROW = "__lakewright_output", "__lakewright_row"
"""Columns that exist only while rows are divided."""


class BytesCopier(Protocol):
    """Looks into the files of groups of one table, and copies or merges them where that is exact."""

    def footers(self, live: InputGroup) -> GroupFooters:
        """Return what the footers say; raises RefusedFiles."""

    columns: TableColumns

    def copy(self, live: ReadGroup) -> CopiedFile | NotCopied:
        """Copy the group into one file, or return why it has to be encoded."""

    def merge(self, live: ReadGroup, found: NotCopied) -> TaskFiles | None:
        """Merge the group column by column into one file, without deleted rows; None if that is not exact."""

    def read(self, live: InputGroup, columns: Sequence[CellColumn]) -> ReadGroup:
        """Return the group with what its footers say, and how a task moves its rows by these columns."""

    def sample(self, live: ReadGroup, every: int) -> list[Point] | None:
        """Return about each so many-th row as a point; None if Spark has to read them."""

    def divide(self, live: ReadGroup, division: Division) -> TaskFiles | None:
        """Divide the rows of the group among several files; None if Spark has to."""

    def check_pages(self, live: InputGroup) -> None:
        """Raise what copying raises for a page of an input that differs from its checksum."""


class OutputReader(Protocol):
    """Compares outputs with their inputs."""

    def check(
        self,
        live: InputGroup,
        footers: GroupFooters,
        outputs: Sequence[IcebergFile],
        *,
        path_taken: PathTaken,
        over: Deletes | None = None,
    ) -> Proof:
        """Return what the outputs were compared by, with `over` left out of the inputs, too; raises Difference."""

    def check_over(self, live: InputGroup, over: Deletes) -> Proof:
        """Have all rows of a group's inputs read, and found to be over; raises Difference if one is not."""


class StagedWriter:
    """Writes groups of one table in one session, and has each output compared with its inputs.

    `entered` lets a thread work in that session.
    """

    def __init__(
        self,
        table: JavaTable,
        session: SparkSession,
        copier: BytesCopier,
        head: TableHead,
        reader: OutputReader,
        entered: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.entered = entered
        self._table = table
        self._session = session
        self._copier = copier
        self._reader = reader
        self._head = head
        self.columns = copier.columns

    def write(self, live: InputGroup) -> StagedGroup:
        """Write the group's rows as one file.

        Raises Unsupported for a group with an order and RefusedFiles for files that cannot be rewritten as they are,
        before anything is written; Corrupt or Difference, having deleted the output, if rows differ.
        """
        if live.group.order is not None:
            raise Unsupported(
                f"rewrites of Iceberg tables neither sort rows nor keep their order: nothing was rewritten in "
                f"{live.group.partition} of {self._table.location}; remove sort-by, zorder-by and clustering-order",
                field="sort-by",
            )
        with self._refused_damage(live):
            read = ReadGroup(live, self._copier.footers(live))
            copied = self._copier.copy(read)
            if isinstance(copied, NotCopied):
                merged = self._copier.merge(read, copied)
                if merged is None:
                    return self._encode(live, copied.reason, read.footers)
                return self._of_task(read, merged, copied.reason, PathTaken.BY_COLUMN)
            return self._of_task(read, TaskFiles((copied,)), None, PathTaken.COPIED)

    def write_without(self, live: InputGroup, removal: RowRemoval) -> StagedGroup:
        """Write the group without some rows, as one file, or none where no other is left; raises as `write` does.

        The file is of the inputs' cell, if they have one.
        """
        with self._refused_damage(live):
            return self._encode(live, EncodeReason.DELETE_FILES, self._copier.footers(live), removal)

    def read(self, live: InputGroup, columns: Sequence[CellColumn]) -> ReadGroup:
        """Return a group whose rows are to be divided by these columns; raises as `write` does."""
        with self._refused_damage(live):
            return self._copier.read(live, columns)

    def write_divided(self, read: ReadGroup, division: Division) -> StagedGroup:
        """Write the group's rows as several files; raises as `write` does."""
        live = read.live
        with self._refused_damage(live):
            made = self._copier.divide(read, division)
            if made is None:
                return self._encode(live, EncodeReason.ROW_ORDER, read.footers, division=division)
            return self._of_task(read, made, EncodeReason.ROW_ORDER, PathTaken.DIVIDED_BY_COLUMN)

    def sample(self, read: ReadGroup, columns: Sequence[CellColumn], every: int) -> list[Point]:
        """Return about each so many-th row by these columns; raises as `write` does."""
        with self._refused_damage(read.live):
            found = self._copier.sample(read, every)
            if found is not None:
                return found
            with self._staged(read.live, read.footers) as (_, frame):
                numbered = frame.selectExpr(*texts_of(columns), f"monotonically_increasing_id() AS {_ROW}")
                rows = numbered.filter(is_sampled(_ROW, every)).drop(_ROW).collect()
                return [point_of(columns, row.asDict()) for row in rows]

    def check_over(self, live: InputGroup, over: Deletes) -> Proof:
        """Have all rows of a group's inputs read, and found to be over; raises Difference if one is not."""
        return self._reader.check_over(live, over)

    @contextmanager
    def _refused_damage(self, live: InputGroup) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if damage := matching_line(error, _DAMAGED):
                raise RefusedFiles(
                    f"{live.group.partition} of {self._table.location}: {damage.partition(': ')[2]}",
                    reason=RefusalReason.DAMAGED,
                ) from error
            raise

    def _of_task(
        self, read: ReadGroup, made: TaskFiles, reason: EncodeReason | None, path_taken: PathTaken
    ) -> StagedGroup:
        """Return what one of our tasks made of inputs; `reason`: why it was not copied."""
        live = read.live
        expected = sum(one.rows for one in live.inputs) - made.hidden_rows
        outputs = tuple(_made(one, live) for one in made.outputs)
        in_order = path_taken is not PathTaken.DIVIDED_BY_COLUMN
        staged = StagedGroup(live, outputs, expected, reason, by_column=reason is not None, in_order=in_order)
        count = None if known_rows(live.inputs) is not None else partial(self._count, live, read.footers, None)
        return self._checked(staged, read.footers, path_taken, count=count)

    def leftovers(self, _: Collection[str]) -> Sequence[str]:
        """List nothing: Iceberg's writer and our tasks delete what they wrote when they fail.

        The file of a killed executor is an orphan, as its name is not known.
        """
        return ()

    def may_have_lost_attempts(self) -> bool:
        """Return False: such files could not be listed."""
        return False

    def _encode(
        self,
        live: InputGroup,
        reason: EncodeReason,
        footers: GroupFooters,
        removal: RowRemoval | None = None,
        division: Division | None = None,
    ) -> StagedGroup:
        refuse_names(self.columns, self._table.location)
        refuse_types(self.columns, self._table.location)
        refuse_dropped_source(self._head, live)
        refuse_stored_types(footers, live, self._table.location)
        refuse_lost_keys(footers, live, self._table.location)
        constants = partition_constants(self.columns, self._head, live)
        refuse_structs(footers, constants, live, self._table.location)
        self._copier.check_pages(live)
        with self._staged(live, footers, _prefixes(live, removal, division)) as (name, rows):
            frame = rows if removal is None else rows.filter(removal.others)
            in_order = division is None and self._table.read_order(frame) == [one.path for one in live.inputs]
            self._write(frame.coalesce(1) if division is None else _divided(frame, division), name, live)
            outputs = tuple(_output(raw, live) for raw in self._table.outputs(name))
        path_taken = PathTaken.ENCODED if division is None else PathTaken.DIVIDED
        stored = known_rows(live.inputs)
        expected = None if stored is None else stored - (0 if removal is None else removal.rows)
        written = sum(one.file.rows or 0 for one in outputs)
        staged = StagedGroup(live, outputs, written if expected is None else expected, reason, in_order=in_order)
        count = partial(self._count, live, footers, removal) if expected is None else None
        return self._checked(staged, footers, path_taken, None if removal is None else removal.over, count)

    @contextmanager
    def _staged(
        self, live: InputGroup, footers: GroupFooters, prefixes: Sequence[str] | None = None
    ) -> Iterator[tuple[str, DataFrame]]:
        """Yield the name under which a group is read and written, and its rows; prefixes are those of its outputs."""
        name = str(uuid.uuid4())
        try:
            self._table.stage(name, live, is_checked=not footers.may_hold_forbidden_nulls, prefixes=prefixes)
            yield name, self._read(name, by_row=needs_row_reader(footers))
        finally:
            self._table.unstage(name)

    def _count(self, live: InputGroup, footers: GroupFooters, removal: RowRemoval | None) -> int:
        """Return how many rows readers see, without those that were removed.

        The columns of deletes by value are read, too: Iceberg adds those that are missing, but not inside structs.
        """
        keys = sorted({key for one in live.inputs for delete in one.deletes for key in delete.key_ids})
        paths = [path for key in keys if (path := self.columns.path(key)) is not None and len(path) > 1]
        with self._staged(live, footers) as (_, rows):
            frame = rows if removal is None else rows.filter(removal.others)
            if not paths:
                return int(frame.count())
            counts = frame.agg(functions.count("*"), *(functions.count(_column(path)) for path in paths))
            return int(counts.collect()[0][0])

    def _read(self, name: str, *, by_row: bool) -> DataFrame:
        reader = self._session.read.format("iceberg")
        reader = reader.option("vectorization-enabled", "false") if by_row else reader
        return (
            reader.option("scan-task-set-id", name)
            .option("split-size", str(WHOLE_BYTES))
            .option("file-open-cost", "0")
            .load(name)
        )

    def _write(self, frame: DataFrame, name: str, live: InputGroup) -> None:
        (
            frame.write.format("iceberg")
            .option("rewritten-file-scan-task-set-id", name)
            .option("target-file-size-bytes", str(WHOLE_BYTES))
            .option("distribution-mode", "none")
            .option("use-table-distribution-and-ordering", "false")
            .option("output-spec-id", str(live.inputs[0].spec))
            .mode("append")
            .save(name)
        )

    def _checked(
        self,
        staged: StagedGroup,
        footers: GroupFooters,
        path_taken: PathTaken,
        over: Deletes | None = None,
        count: Callable[[], int] | None = None,
    ) -> StagedGroup:
        """Return a group with its outputs and what they were compared by; deletes them if anything differs.

        count: of the rows of inputs that are not known; they are counted where no other reader has read them.
        """
        live = staged.live
        try:
            self._check(live, staged.outputs, staged.rows, path_taken)
            proof = self._reader.check(live, footers, staged.outputs, path_taken=path_taken, over=over)
            if count is not None and proof.reading is not Reading.ROWS:
                self._check(live, staged.outputs, count(), path_taken)
        except BaseException:
            self._table.delete(staged.paths)
            raise
        return replace(staged, proof=proof)

    def _check(self, live: InputGroup, outputs: Sequence[IcebergFile], expected: int, path_taken: PathTaken) -> None:
        """Raise unless outputs have rows and partition of the inputs; our own tasks take the partition from these."""
        written = sum(output.file.rows or 0 for output in outputs)
        placed = outputs if path_taken in (PathTaken.ENCODED, PathTaken.DIVIDED) else ()
        strays = [output for output in placed if not self._table.has_partition_of(output.raw, live.inputs[0])]
        where = f"the rewrite of {len(live.inputs)} files in {live.group.partition} of {self._table.location}"
        if strays:
            # Later deletes by value that apply to the inputs would not apply to such an output.
            raise Corrupt(
                f"{where} was stopped before its commit: the rows belong to another partition by their values. First "
                f"input: {live.inputs[0].path}. The table is unchanged"
            )
        if written != expected:
            raise Corrupt(
                f"{where} was stopped before its commit: {expected} rows in, {written} rows out. First input: "
                f"{live.inputs[0].path}. The table is unchanged"
            )
        if written and len(outputs) != 1 and path_taken not in (PathTaken.DIVIDED, PathTaken.DIVIDED_BY_COLUMN):
            raise RetryableError(f"{where} wrote {len(outputs)} files and not one; the table is unchanged")


def _prefixes(live: InputGroup, removal: RowRemoval | None, division: Division | None) -> tuple[str, ...] | None:
    """Return what the names of outputs begin with: rows that stay when others are removed stay in their cell."""
    if division is not None:
        return division.prefixes
    cells = {one.file.tags.get(CELL_TAG) for one in live.inputs} if removal is not None else set()
    cell = cells.pop() if len(cells) == 1 else None
    return None if cell is None else (name_prefix(cell),)


def _divided(frame: DataFrame, division: Division) -> DataFrame:
    numbered = frame.selectExpr("*", f"{division.choice} AS {_OUTPUT}")
    return numbered.repartitionById(len(division.prefixes), _OUTPUT).drop(_OUTPUT)


def _column(path: Sequence[str]) -> Column:
    return functions.col(".".join(map(quoted, path)))


def _output(raw: Any, live: InputGroup) -> IcebergFile:
    return _made(CopiedFile(str(raw.location()), int(raw.fileSizeInBytes()), raw), live)


def _made(one: CopiedFile, live: InputGroup) -> IcebergFile:
    rows = int(one.raw.recordCount())
    file = DataFile(one.path, one.size_bytes, live.group.partition, rows=rows, tags=live.group.tags)
    return IcebergFile(file, one.raw)
