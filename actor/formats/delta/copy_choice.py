"""Reasons in the log for and against copying row groups of a Delta table, and the copier of its groups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableShape
from actor.formats.delta.output_format import table_codec
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.parquet.copy_choice import CopyCandidate, RowGroupCopier
from actor.formats.parquet.copy_rules import CopyRule, EncodeReason, NotCopied
from actor.formats.parquet.footer_summary import FooterSummary
from shared.policy.row_order import INPUT_ORDER


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaCandidate(CopyCandidate):
    """A group of a Delta table.

    drops_rows: rows that vectors hide are to be left out.
    loses_folder: the output would lie outside the Hive-style folders that name the inputs' partition.
    is_sorted: rows are to be sorted by columns, so their order differs from the inputs'.
    """

    shape: TableShape
    drops_rows: bool
    is_sorted: bool = False
    loses_folder: bool = False

    @property
    def codec(self) -> str | None:
        """The codec that the table asks for, None if it asks for none."""
        return table_codec(self.shape.metadata.configuration)

    @property
    def with_vectors(self) -> bool:
        """True where the table lets statements hide rows by vectors."""
        return self.shape.allows_vectors

    def in_metadata(self) -> Mapping[EncodeReason, bool]:
        """Return the reasons that the log gives, in order, and whether each holds."""
        protocol = self.shape.protocol
        is_for_iceberg = any(
            is_on for name, is_on in self.shape.is_on.items() if name.startswith("delta.enableicebergcompat")
        )
        return {
            EncodeReason.FOLDER: self.loses_folder,
            EncodeReason.ROW_ORDER: self.is_sorted,
            EncodeReason.DELETION_VECTOR: self.drops_rows,
            EncodeReason.ROW_TRACKING: "rowTracking" in protocol.writer_features | protocol.reader_features,
            EncodeReason.ICEBERG_COMPATIBILITY: is_for_iceberg,
            EncodeReason.TYPE_WIDENING: "delta.typeChanges" in self.shape.metadata_json,
        }

    def in_columns(self, files: Sequence[FooterSummary]) -> EncodeReason | None:
        """Return `columns` for files that hold others than the table has: it has dropped them.

        Spark writes partition columns into files as well; readers take these values from the log.
        """
        found = {name for file in files for name in file.top_level}
        return EncodeReason.COLUMNS if found - stored_columns(self.shape) else None


def stored_columns(shape: TableShape) -> frozenset[str]:
    """Return the names, as files spell them, of a table's columns."""
    mapped = shape.metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    return frozenset(
        field["metadata"]["delta.columnMapping.physicalName"] if mapped else field["name"] for field in shape.fields
    )


@dataclass(frozen=True, slots=True)
class SpelledGroup:
    """A group, with the partition values that its output gets."""

    live: LiveGroup
    values: dict[str, str | None]


class DeltaCopier(RowGroupCopier[SpelledGroup, LoggedFile]):
    """Copies groups of one Delta table."""

    def __init__(self, tasks: ParquetTasks, rule: CopyRule, may_carry: Callable[[LiveGroup], bool]) -> None:
        """`may_carry`: whether an output may hold the rows that vectors of a group hide."""
        super().__init__(rule, tasks.classes)
        self._tasks = tasks
        self._may_carry = may_carry

    def choose(self, live: SpelledGroup) -> CopyCandidate | NotCopied:
        """Ask the log, then for the classes, and read footers only if neither forbids to copy."""
        group, inputs = live.live.group, live.live.inputs
        candidate = DeltaCandidate(
            shape=self._tasks.paths.shape,
            mode=group.mode,
            bytes=group.bytes,
            full_bytes=self._rule.full_bytes,
            drops_rows=any(logged.file.dv_id is not None for logged in inputs) and not self._may_carry(live.live),
            is_sorted=group.order not in (None, INPUT_ORDER),
            is_allowed=self._rule.is_allowed,
            loses_folder=self._tasks.paths.loses_folder(live.values, [logged.file.path for logged in inputs]),
        )
        reason = self.reason(candidate)
        if reason is None:
            candidate = replace(candidate, is_available=self._classes.are_usable)
            reason = self.reason(candidate)
        if reason is not None:
            return NotCopied(reason)
        candidate = candidate.with_footers(self._tasks.footers.read(inputs))
        reason = self.reason(candidate)
        return candidate if reason is None else NotCopied(reason, candidate.files or ())

    def run(self, live: SpelledGroup, files: Sequence[FooterSummary], end_bytes: int) -> Mapping[str, Any]:
        """Run the task, with the codec of most files in the output's name."""
        codec = next((file.codecs[0] for file in files if file.codecs and file.codecs[0]), "uncompressed")
        footers = self._tasks.footers.take(live.live.inputs)
        return self._tasks.run("copied", live.live, live.values, codec, end_bytes, footers)

    def output(self, live: SpelledGroup, files: Sequence[FooterSummary], result: Mapping[str, Any]) -> LoggedFile:
        """Return the file as the log will have it."""
        return self._tasks.output(live.live, result, live.values, files[0].schema)
