"""The copier of an Iceberg table's groups, and what it learns of their files before they are written in any way.

It divides groups, too, by their clustering columns. Rows that are deleted are left out of merges and divisions; what no
task writes exactly is left to Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from actor.cells.columns import CellColumn
from actor.cells.outputs import cuts_of
from actor.formats.iceberg.cell_keys import RowKeys, find_keys
from actor.formats.iceberg.column_merge import MergeSettings, merge_settings
from actor.formats.iceberg.copy_choice import PARQUET, IcebergCandidate
from actor.formats.iceberg.delete_keys import are_keys_clear
from actor.formats.iceberg.encode_limits import can_be_described
from actor.formats.iceberg.group_footers import GroupFooters, read_group
from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.parquet_task import IcebergTasks
from actor.formats.parquet.classes import ParquetClasses
from actor.formats.parquet.copy_choice import CopyCandidate, RowGroupCopier
from actor.formats.parquet.copy_rules import MERGED_REASONS, CopyRule, EncodeReason, NotCopied
from actor.formats.parquet.footer_summary import FooterSummary
from shared.formats.iceberg.metadata import TableHead
from shared.layout.cells.boxes import Point
from shared.layout.cells.routes import Route


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """An output of one of our tasks, with its size in bytes, as Iceberg's object, whose rows are its footer's."""

    path: str
    size_bytes: int
    raw: Any


@dataclass(frozen=True, slots=True)
class VisibleRows:
    """How a task writes the rows of a group that are not deleted.

    hidden: those that are, as Java's object, None where there are none; and how many.
    """

    how: MergeSettings
    hidden: Any = None
    hidden_rows: int = 0


@dataclass(frozen=True, slots=True)
class ReadGroup:
    """A group with what the footers of its files say; moved: how a task moves its rows, None: Spark has to."""

    live: InputGroup
    footers: GroupFooters
    moved: tuple[RowKeys, VisibleRows] | None = None


@dataclass(frozen=True, slots=True)
class Division:
    """Outputs of one group: where rows go by the columns, the number of a row's as SQL, and what each name begins with.

    Numbers begin with 0, at the first output of the route.
    """

    columns: tuple[CellColumn, ...]
    route: Route
    choice: str
    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Outputs of a task that have rows, and how many rows of the inputs it left out because they are deleted."""

    outputs: tuple[CopiedFile, ...]
    hidden_rows: int = 0


class IcebergCopier(RowGroupCopier[ReadGroup, CopiedFile]):
    """Copies groups of one Iceberg table."""

    def __init__(
        self, table: JavaTable, head: TableHead, tasks: IcebergTasks, classes: ParquetClasses, rule: CopyRule
    ) -> None:
        super().__init__(rule, classes)
        self._table = table
        self._head = head
        self._tasks = tasks
        self.columns = table.columns(head.metadata.configuration)

    def footers(self, live: InputGroup) -> GroupFooters:
        """Return what the footers of the group's files say.

        Raises RefusedFiles for files that cannot be rewritten as they are.
        """
        return read_group(self._tasks, self.columns, live, self._table.location)

    def check_pages(self, live: InputGroup) -> None:
        """Raise what copying raises for a page of an input that differs from its checksum, where executors can copy."""
        inputs = [one for one in live.inputs if one.entry.format.lower() == PARQUET]
        self._classes.run(lambda: self._tasks.check_pages(inputs))

    def choose(self, live: ReadGroup) -> CopyCandidate | NotCopied:
        """Ask the metadata, the footers, and at last Iceberg for columns and partitions."""
        return self._choose(live)

    def _choose(self, live: ReadGroup, *, leaves_out: bool = False) -> CopyCandidate | NotCopied:
        group, inputs, footers = live.live.group, live.live.inputs, live.footers
        candidate = IcebergCandidate(
            mode=group.mode,
            bytes=group.bytes,
            full_bytes=self._rule.full_bytes,
            format_version=self._head.protocol.min_writer,
            properties=self._head.metadata.configuration,
            inputs=tuple(replace(one.entry, has_deletes=bool(one.deletes) and not leaves_out) for one in inputs),
            is_allowed=self._rule.is_allowed,
            is_available=self._classes.are_usable,
        )
        reason = self.reason(candidate)
        if reason is not None:
            return NotCopied(reason)
        candidate = candidate.with_footers(footers.files)
        reason = self.reason(candidate)
        if reason is None or reason in MERGED_REASONS:  # The files are alike: what the first of them holds, all do.
            mismatch = self._tasks.mismatch(inputs) if can_be_described(footers) else EncodeReason.TYPE_WIDENING
            candidate = replace(candidate, mismatch=mismatch)
            reason = self.reason(candidate)
        return candidate if reason is None else NotCopied(reason, candidate.files or ())

    def run(self, live: ReadGroup, _: Sequence[FooterSummary], end_bytes: int) -> Mapping[str, Any]:
        """Run the task; files lie where the table's location provider puts them."""
        return self._tasks.copy(live.live.inputs, end_bytes)

    def merge(self, live: ReadGroup, found: NotCopied) -> TaskFiles | None:
        """Merge the group, not copied for the reason found, column by column; None if Spark has to encode it.

        Rows that are deleted are left out.
        """
        inputs, is_whole = live.live.inputs, found.reason is not EncodeReason.DELETE_FILES
        rows = self._all_rows(found) if is_whole else self._visible(live)
        if rows is None:
            return None
        if rows.hidden_rows and rows.hidden_rows == sum(one.rows for one in inputs):
            return TaskFiles((), rows.hidden_rows)
        result = self._classes.run(lambda: self._tasks.merge(inputs, rows.how, rows.hidden))
        if result is None or "obstacle" in result:
            return None
        return TaskFiles((self._described(live, result, is_whole=is_whole),), rows.hidden_rows)

    def _visible(self, live: ReadGroup) -> VisibleRows | None:
        """Return how a task writes the rows that are not deleted; None if that is not exact."""
        inputs = live.live.inputs
        rows = self._all_rows(self._choose(live, leaves_out=True))
        if rows is None or not any(one.deletes for one in inputs):
            return rows
        hidden = self._table.hidden(inputs) if are_keys_clear(live.footers, inputs) else None
        return None if hidden is None else replace(rows, hidden=hidden, hidden_rows=int(hidden.count()))

    def read(self, live: InputGroup, columns: Sequence[CellColumn]) -> ReadGroup:
        """Return the group with what its footers say, and how a task moves its rows by these columns."""
        read = ReadGroup(live, self.footers(live))
        keys = find_keys(read.footers, columns)
        rows = None if keys is None else self._visible(read)
        return read if keys is None or rows is None else replace(read, moved=(keys, rows))

    def sample(self, live: ReadGroup, every: int) -> list[Point] | None:
        """Return about each so many-th row as a point; None if Spark has to read them."""
        if live.moved is None:
            return None
        keys, rows = live.moved
        result = self._classes.run(lambda: self._tasks.sample(live.live.inputs, keys, rows.hidden, every))
        return None if result is None or "obstacle" in result else keys.points(result["read"])

    def divide(self, live: ReadGroup, division: Division) -> TaskFiles | None:
        """Divide the rows of the group; None if Spark has to."""
        inputs, columns = live.live.inputs, division.columns
        if live.moved is None:
            return None
        keys, rows = live.moved
        cuts = cuts_of(division.route, keys.stored)
        run = partial(self._tasks.divide, inputs, rows.how, keys, rows.hidden, cuts, division.prefixes)
        result = self._classes.run(run)
        if result is None or "obstacle" in result:
            return None
        sizes, ids = {one["place"]: one["size"] for one in result["outputs"]}, [int(one.path[0]) for one in columns]
        try:
            made = [CopiedFile(*one, self._tasks.describe_part(inputs, *one, ids)) for one in sizes.items()]
        except BaseException:
            self._table.delete(sizes)
            raise
        if any(one.raw is None for one in made):
            # Footers leave out bounds of long texts, and Iceberg's own writer takes them from memory.
            self._table.delete(sizes)
            return None
        return TaskFiles(tuple(made), rows.hidden_rows)

    def _all_rows(self, chosen: CopyCandidate | NotCopied) -> VisibleRows | None:
        """Return how a task writes all rows of the group by column, None if that is not exact."""
        is_exact = not isinstance(chosen, NotCopied) or chosen.reason in MERGED_REASONS
        how = merge_settings(chosen.files or (), self._head.metadata.configuration) if is_exact else None
        return None if how is None else VisibleRows(how)

    def output(self, live: ReadGroup, _: Sequence[FooterSummary], result: Mapping[str, Any]) -> CopiedFile:
        """Return the file as Iceberg describes it."""
        return self._described(live, result, is_whole=True)

    def _described(self, live: ReadGroup, result: Mapping[str, Any], *, is_whole: bool) -> CopiedFile:
        inputs, made = live.live.inputs, (result["place"], result["size"])
        try:
            describe = self._tasks.describe if is_whole else partial(self._tasks.describe_part, columns=())
            return CopiedFile(*made, describe(inputs, *made))
        except BaseException:
            self._table.delete([result["place"]])
            raise
