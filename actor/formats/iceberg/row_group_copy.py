"""The copier of an Iceberg table's groups, and what it learns of their files before they are written in any way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from actor.formats.iceberg.column_merge import merge_settings
from actor.formats.iceberg.copy_choice import PARQUET, IcebergCandidate
from actor.formats.iceberg.encode_limits import can_be_described
from actor.formats.iceberg.group_footers import GroupFooters, read_group
from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.parquet_task import IcebergTasks
from actor.formats.parquet.classes import ParquetClasses
from actor.formats.parquet.copy_choice import CopyCandidate, RowGroupCopier
from actor.formats.parquet.copy_rules import LAYOUT_REASONS, CopyRule, EncodeReason, NotCopied
from actor.formats.parquet.footer_summary import FooterSummary
from shared.formats.iceberg.metadata import TableHead


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """An output of one of our tasks, as Iceberg's object; its rows are its footer's."""

    raw: Any


@dataclass(frozen=True, slots=True)
class ReadGroup:
    """A group with what the footers of its files say."""

    live: InputGroup
    footers: GroupFooters


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
        group, inputs, footers = live.live.group, live.live.inputs, live.footers
        candidate = IcebergCandidate(
            mode=group.mode,
            bytes=group.bytes,
            full_bytes=self._rule.full_bytes,
            format_version=self._head.protocol.min_writer,
            properties=self._head.metadata.configuration,
            inputs=tuple(replace(one.entry, has_deletes=bool(one.deletes)) for one in inputs),
            is_allowed=self._rule.is_allowed,
            is_available=self._classes.are_usable,
        )
        reason = self.reason(candidate)
        if reason is not None:
            return NotCopied(reason)
        candidate = candidate.with_footers(footers.files)
        reason = self.reason(candidate)
        if reason is None or reason in LAYOUT_REASONS:  # The files are alike: what the first of them holds, all do.
            mismatch = self._tasks.mismatch(inputs) if can_be_described(footers) else EncodeReason.TYPE_WIDENING
            candidate = replace(candidate, mismatch=mismatch)
            reason = self.reason(candidate)
        return candidate if reason is None else NotCopied(reason, candidate.files or ())

    def run(self, live: ReadGroup, _: Sequence[FooterSummary], end_bytes: int) -> Mapping[str, Any]:
        """Run the task; files lie where the table's location provider puts them."""
        return self._tasks.copy(live.live.inputs, end_bytes)

    def merge(self, live: ReadGroup, found: NotCopied) -> CopiedFile | None:
        """Merge the group, not copied for the reason found, column by column; None if Spark has to encode it."""
        how = merge_settings(found, self._head.metadata.configuration)
        if how is None:
            return None
        result = self._classes.run(lambda: self._tasks.merge(live.live.inputs, *how))
        return None if result is None or "obstacle" in result else self.output(live, found.files, result)

    def output(self, live: ReadGroup, _: Sequence[FooterSummary], result: Mapping[str, Any]) -> CopiedFile:
        """Return the file as Iceberg describes it."""
        try:
            return CopiedFile(self._tasks.describe(live.live.inputs, result["place"], result["size"]))
        except BaseException:
            self._table.delete([result["place"]])
            raise
