"""Writes a group's output before any commit: rows out must equal rows in before the table can see the files.

The output's statistics are counted while it is written; the inputs' come from the log, less what their deletion
vectors hide. Where the log lacks a count, footers have it, and else the rows are read: the check is never skipped.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode, json_array, with_range
from actor.formats.delta.column_merge import ColumnMerger
from actor.formats.delta.copy_choice import DeltaCopier, SpelledGroup
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footers import Storage
from actor.formats.delta.late_rows import RowHider
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.read_rows import exact_rows, refused_sizes, refused_values
from actor.formats.delta.row_order import RowSorter
from actor.formats.delta.row_tasks import LeftToSpark, find_row_tasks
from actor.formats.delta.written_group import WrittenGroup
from actor.formats.parquet.copy_rules import CopyRule, EncodeReason, NotCopied
from actor.jvm.scala import jvm_context
from actor.rewrite.checks import require_disjoint
from shared.errors import Corrupt, Difference, RefusedFiles
from shared.refusals import RefusalReason
from shared.table import FileKey, PartitionColumn


class EncodingWriter:
    """Writes rows as Spark encodes them, through transactions that are never committed: they only lend their writer.

    What differs from one rewrite to another is how rows are arranged, and how outputs are finished.
    """

    def __init__(self, scala: DeltaScala, snapshot: Any, tasks: ParquetTasks, proofs: Proofs) -> None:
        self._scala = scala
        self._log = tasks.log
        self._snapshot = snapshot
        self._proofs = proofs
        self._paths = tasks.paths
        self._shape = self._paths.shape
        self._columns = self._shape.metadata.partition_columns
        self._format = tasks.format
        self._footers = tasks.footers

    def _frame(self, live: LiveGroup, stored: Storage) -> Any:
        """Return the frame of a group's rows with a part for each output, each in order."""
        return self._arranged(self._rows_of(live.inputs, stored), live)

    def _arranged(self, rows: Any, live: LiveGroup) -> Any:
        """Put all rows of a group, read at once, into parts."""
        raise NotImplementedError

    def _rows_of(self, files: Sequence[LoggedFile], stored: Storage) -> Any:
        return exact_rows(self._scala, self._log, self._snapshot, files, stored)

    def _finished(self, live: LiveGroup, outputs: Sequence[LoggedFile]) -> tuple[LoggedFile, ...]:
        """Return the outputs as the log will have them; raises where they are not as planned."""
        raise NotImplementedError

    def _encode(self, live: LiveGroup, spelling: dict[str, str | None], reason: str | None = None) -> WrittenGroup:
        given = self._format.storage(live.inputs)
        with refused_values(self._log.location):
            by_task = self._by_task(live, spelling, given)
            outputs = self._by_spark(live, spelling, given) if by_task is None else by_task
        with self._deleted_on_failure(outputs):
            self._paths.check(live, [output.file.path for output in outputs])
            written = self._format.check(given, outputs)
            completed = self._finished(live, self._format.complete(live.inputs, outputs, written))
            rows = self._check_rows(live, completed)
            proof = self._proofs.check(live, completed, path_taken="encoded")
        return WrittenGroup(live, completed, rows, reason, by_column=by_task is not None, proof=proof)

    def _by_task(
        self, live: LiveGroup, partition_values: dict[str, str | None], stored: Storage
    ) -> tuple[LoggedFile, ...] | None:
        """Write the outputs without Spark's SQL; None, having left no file, if that is not exact."""
        raise NotImplementedError

    @contextmanager
    def _deleted_on_failure(self, outputs: Sequence[LoggedFile]) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._log.delete(output.key for output in outputs)
            raise

    def _adds(self, files: Sequence[LoggedFile]) -> Any:
        return self._scala.adds(json_array(files))

    def leftovers(self, kept: Collection[str]) -> Sequence[str]:
        """List the files of this rewrite besides these; Delta leaves files of failed tasks in place."""
        return [key.path for key in self._paths.leftovers(set(map(FileKey, kept)))]

    def may_have_lost_attempts(self) -> bool:
        """Return whether an executor may have ended that left a file."""
        return self._paths.has_lost_attempts

    def _by_spark(
        self, live: LiveGroup, partition_values: dict[str, str | None], stored: Storage
    ) -> tuple[LoggedFile, ...]:
        codec = self._format.codec(stored)
        frame = self._frame(live, stored)
        txn = self._paths.transaction_for(partition_values, [logged.file.path for logged in live.inputs])
        options = self._scala.none if codec is None else self._scala.some(self._log.write_options(compression=codec))
        written = txn.writeFiles(frame, options, True, self._scala.seq())  # noqa: FBT003 - isOptimize
        if not jvm_context(self._log.session).isLocal():
            # Spark repeats the task of a lost executor, and reports neither that nor the file that was begun.
            self._paths.note_lost_attempt()
        outputs = []
        for add in json.loads(self._scala.to_json(written)):
            # The inputs' own spelling of the partition values: a reader in another time zone must see the same value.
            final = {**add, "dataChange": False, "partitionValues": partition_values}
            if live.group.tags:
                final["tags"] = {**(add.get("tags") or {}), **live.group.tags}
            outputs.append(LoggedFile(decode_add(final, self._columns), encode(final)))
        return tuple(outputs)

    def _check_rows(self, live: LiveGroup, outputs: Sequence[LoggedFile]) -> int:
        expected, source = self._rows(live.inputs)
        written, _ = self._rows(outputs)
        if written != expected:
            held = self._log.rows(self._snapshot, self._adds(live.inputs))
            if are_visible(written, live.inputs, lambda: held):
                return written
            raise Corrupt(
                f"the rewrite of {len(live.inputs)} files in {live.group.partition} of {self._log.location} was "
                f"stopped before its commit: {expected} rows in by {source}, "
                f"{written} rows out; reading the inputs finds {held}. First input: {live.inputs[0].file.path}. "
                "The table is unchanged",
            )
        return written

    def _rows(self, files: Sequence[LoggedFile]) -> tuple[int, str]:
        """Return how many rows readers see, and by what it is known: the cheapest source that has it for all files."""
        logged_rows = logical_rows(files)
        if logged_rows is not None:
            return logged_rows, "the log statistics"
        stored = self._footers.rows(files)
        if stored is not None:
            return stored - sum(logged.file.deleted_rows for logged in files), "the footers"
        return self._log.rows(self._snapshot, self._adds(files)), "count"


class DeltaWriter(EncodingWriter):
    """Writes groups of one snapshot: copies row groups, merges by column, or encodes.

    `entered` lets a thread work in the session of the rewrite.
    """

    def __init__(
        self,
        scala: DeltaScala,
        snapshot: Any,
        tasks: ParquetTasks,
        rule: CopyRule,
        hider: RowHider,
        entered: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        super().__init__(scala, snapshot, tasks, hider.proofs)
        self.entered = entered
        self._hider = hider
        self._sorter = RowSorter(scala, tasks.log, self._columns)
        self._tasks, self._may_copy = tasks, rule.is_allowed
        self._copier = DeltaCopier(tasks, rule, hider.may_carry)
        self._merger = ColumnMerger(tasks)

    def write(self, live: LiveGroup) -> WrittenGroup:
        """Write the group's rows as one file; raises Corrupt, having deleted the output, if rows differ."""
        try:
            with refused_sizes(self._log, live.inputs):
                written = self._write_cheapest(live)
            self._footers.forget(written.outputs)
            return written
        finally:
            self._footers.forget(live.inputs)

    def _write_cheapest(self, live: LiveGroup) -> WrittenGroup:
        """Copy row groups, or merge by column, or encode."""
        spelling = one_spelling(self._log.location, self._columns, live)
        copied = self._copier.copy(SpelledGroup(live, spelling))
        reason = copied.reason if isinstance(copied, NotCopied) else None
        joined = self._merger.merge(live, copied, spelling) if isinstance(copied, NotCopied) else copied
        if joined is not None and (written := self._checked(live, joined, reason)) is not None:
            return written
        try:
            return self._encode(live, spelling, reason or EncodeReason.DELETION_VECTOR)
        except Difference as found:
            if reason is not EncodeReason.OLD_CALENDAR:
                raise
            raise RefusedFiles(
                f"files in {live.group.partition} of {self._log.location} hold days or instants in the calendar before "
                f"1582 (columns {', '.join(found.columns)}), which Spark and other readers take for different ones; "
                "write them again in the new calendar (spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED)",
                reason=RefusalReason.TYPES,
            ) from found

    def _checked(self, live: LiveGroup, output: LoggedFile, reason: EncodeReason | None) -> WrittenGroup | None:
        """Return a group whose output holds all rows of its inputs; None, having deleted it, if it may not stay so."""
        stored = replace(live, inputs=tuple(logged.with_all_rows for logged in live.inputs))
        with self._deleted_on_failure([output]):
            self._paths.check(live, [output.file.path])
            rows = self._check_rows(stored, [output])
            proof = self._proofs.check(stored, [output], path_taken="" if reason is None else "by column")
            of_inputs = tuple(one.rows for one in self._footers.describe(live.inputs).files)
            ranged = self._ranged([output])
            group = WrittenGroup(
                live, ranged, rows, reason, by_column=reason is not None, proof=proof, input_rows=of_inputs
            )
            if stored.inputs == live.inputs:
                return group
            carrying = self._hider.carried(group)
        if carrying is None:
            self._log.delete([output.key])
        return carrying

    def _ranged(self, outputs: Sequence[LoggedFile]) -> tuple[LoggedFile, ...]:
        key = self._shape.metadata.sort_key
        return tuple(replace(output, file=with_range(output, key)) for output in outputs)

    def _by_task(
        self, live: LiveGroup, partition_values: dict[str, str | None], stored: Storage
    ) -> tuple[LoggedFile, ...] | None:
        """Leave hidden rows out column by column; groups without any were merged before, where that is exact."""
        has_hidden = any(logged.file.dv_id for logged in live.inputs)
        if not self._may_copy or not has_hidden or live.group.order is not None:
            return None
        rows = find_row_tasks(self._scala, self._tasks, (), live, stored, partition_values)
        with suppress(LeftToSpark):
            return None if rows is None else tuple(rows.merge(live))
        return None

    def _arranged(self, rows: Any, live: LiveGroup) -> Any:
        return self._sorter.ordered(rows, live.inputs, live.group.order)

    def _finished(self, live: LiveGroup, outputs: Sequence[LoggedFile]) -> tuple[LoggedFile, ...]:
        completed = self._ranged(outputs)
        self._require_sorted(live, completed)
        return completed

    def _require_sorted(self, live: LiveGroup, outputs: Sequence[LoggedFile]) -> None:
        doing = f"the sort of {len(live.inputs)} files in {live.group.partition} of {self._log.location}"
        key = self._shape.metadata.sort_key
        require_disjoint([output.file for output in outputs], live.group.order, key.name if key else "", doing)


def one_spelling(location: str, columns: Sequence[PartitionColumn], live: LiveGroup) -> dict[str, str | None]:
    """Return the partition values as the first input spells them; raises RefusedFiles if readers see several."""
    if len(spellings := {logged.file.spelling or "as usual" for logged in live.inputs}) > 1:
        raise RefusedFiles(
            f"the files of {live.group.partition} at {location} spell partition values in ways readers take for "
            f"different values ({'; '.join(sorted(spellings))}), so they are not merged",
            reason=RefusalReason.PARTITION_SPELLING,
        )
    values = json.loads(live.inputs[0].json).get("partitionValues") or {}
    return {column.physical: values.get(column.physical) for column in columns}


def are_visible(rows: int, files: Sequence[LoggedFile], read: Callable[[], int]) -> bool:
    """Return whether reading finds so many rows in files whose statistics say otherwise.

    Some writers count the visible rows of a file with a vector, as Trino's ANALYZE does.
    """
    return any(logged.file.dv_id for logged in files) and read() == rows


def logical_rows(files: Sequence[LoggedFile]) -> int | None:
    """Sum the rows that readers see, None if a file has no statistics."""
    total = 0
    for logged in files:
        if logged.file.rows is None:
            return None
        total += logged.file.rows - logged.file.deleted_rows
    return total
