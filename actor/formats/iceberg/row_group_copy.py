"""Writing a group's output by copying the inputs' row groups as bytes: one task, and nothing is decoded.

What the task (`RowGroupCopy.java`) finds to be an obstacle only while it copies, as pages that do not fit their footer,
sends the group to Spark like what is known before.
"""

from dataclasses import dataclass, replace
from typing import Any

from actor.formats.iceberg.copy_choice import IcebergCandidate, reason_to_encode
from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.parquet_task import IcebergTasks
from actor.formats.parquet.classes import ParquetClasses
from actor.formats.parquet.copy_rules import CopyRule, EncodeReason, NotCopied
from shared.formats.iceberg.metadata import TableHead

_GREW_FULL = "full"  # The task's word for an output that did not stay below the full size.


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """An output that was copied, as Iceberg's object; its rows are those of its footer."""

    raw: Any


class IcebergCopier:
    """Copies groups of one table, where that is exact."""

    def __init__(
        self, table: JavaTable, head: TableHead, tasks: IcebergTasks, classes: ParquetClasses, rule: CopyRule
    ) -> None:
        self._table = table
        self._head = head
        self._tasks = tasks
        self._classes = classes
        self._rule = rule

    def copy(self, live: InputGroup) -> CopiedFile | NotCopied:
        """Copy the group into one file, or return why it has to be encoded."""
        rule = self._rule
        try:
            candidate = self._choose(live)
            if isinstance(candidate, NotCopied):
                return candidate
            # Row groups may be small because the output stays below the full size: the task makes sure that it does.
            if_full = reason_to_encode(replace(candidate, full_bytes=0), rule.limits)
            result = self._tasks.copy(live.inputs, rule.full_bytes if if_full else 0)
        except Exception as problem:  # noqa: BLE001 - raised again unless a JVM refused the classes
            self._classes.give_up_if_refused(self._tasks.session, problem)
            return NotCopied(EncodeReason.UNAVAILABLE)
        if "obstacle" in result:
            grew = if_full if result["obstacle"] == _GREW_FULL else None
            return NotCopied(grew or EncodeReason(result["obstacle"]), candidate.files or ())
        try:
            return CopiedFile(self._tasks.describe(live.inputs, result["place"], result["size"]))
        except BaseException:
            self._table.delete([result["place"]])
            raise

    def _choose(self, live: InputGroup) -> NotCopied | IcebergCandidate:
        candidate = IcebergCandidate(
            mode=live.group.mode,
            bytes=live.group.bytes,
            full_bytes=self._rule.full_bytes,
            format_version=self._head.protocol.min_writer,
            properties=self._head.metadata.configuration,
            inputs=tuple(replace(one.entry, has_deletes=bool(one.deletes)) for one in live.inputs),
            is_allowed=self._rule.is_allowed,
        )
        reason = reason_to_encode(candidate, self._rule.limits)
        if reason is None:
            candidate = replace(candidate, is_available=self._classes.are_usable(self._tasks.session))
            reason = reason_to_encode(candidate, self._rule.limits)
        if reason is not None:
            return NotCopied(reason)
        candidate = candidate.with_footers(self._tasks.footers(live.inputs))
        reason = reason_to_encode(candidate, self._rule.limits)
        if reason is None:  # The files are alike, so what the first of them holds is what all do.
            candidate = replace(candidate, mismatch=self._tasks.mismatch(live.inputs))
            reason = reason_to_encode(candidate, self._rule.limits)
        return candidate if reason is None else NotCopied(reason, candidate.files or ())
