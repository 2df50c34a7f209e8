"""Writes a group's output before any commit: rows out must equal rows in before the table can see the files.

The output's statistics are counted while it is written; the inputs' come from the log, less what their deletion
vectors hide. Where a count is missing the rows are read and counted: the check is never skipped.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.column_merge import ColumnMerger
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog
from actor.formats.delta.order_check import require_disjoint
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.row_group_copy import GroupCopier
from actor.formats.delta.row_order import RowSorter
from actor.formats.parquet.copy_rules import CopyRule, EncodeReason, NotCopied
from actor.jvm.scala import Scala, jvm_context
from shared.errors import Corrupt, Unsupported
from shared.table import FileKey, PartitionColumn


@dataclass(frozen=True, slots=True)
class WrittenGroup:
    """A group whose output files exist and have the right number of rows; no commit refers to them yet."""

    live: LiveGroup
    outputs: tuple[LoggedFile, ...]
    rows: int
    encoded_because: EncodeReason | None = None  # None: its row groups were copied.
    by_column: bool = False  # Encoded, but not by Spark.

    @property
    def keys(self) -> tuple[FileKey, ...]:
        """All files that were written for the commit."""
        return tuple(output.key for output in self.outputs)


class GroupWriter:
    """Writes groups through one transaction that is never committed: it only lends its snapshot and its writer."""

    def __init__(
        self, scala: Scala, log: TableLog, txn: Any, paths: OutputPaths, tasks: ParquetTasks, rule: CopyRule
    ) -> None:
        self._scala = scala
        self._log = log
        self._snapshot = txn.snapshot()
        self._shape = paths.shape
        self._columns = self._shape.metadata.partition_columns
        self._paths = paths
        self._format = tasks.format
        self._sorter = RowSorter(scala, log, self._columns)
        self._copier = GroupCopier(tasks)
        self._merger = ColumnMerger(tasks)
        self._rule = rule

    def write(self, live: LiveGroup) -> WrittenGroup:
        """Write the group's rows as one file; raises Corrupt, having deleted the output, if rows differ."""
        spelling = one_spelling(self._log.location, self._columns, live)
        copied = self._copier.copy(live, self._rule, spelling)
        if not isinstance(copied, NotCopied):
            return self._checked(live, copied, None)
        merged = self._merger.merge(live, copied, spelling)
        return (
            self._encode(live, spelling, copied.reason)
            if merged is None
            else self._checked(live, merged, copied.reason)
        )

    def _checked(self, live: LiveGroup, output: LoggedFile, reason: EncodeReason | None) -> WrittenGroup:
        with self._deleted_on_failure([output]):
            self._paths.check(live, [output.file.path])
            return WrittenGroup(live, (output,), self._check_rows(live, [output]), reason, by_column=reason is not None)

    def _encode(self, live: LiveGroup, spelling: dict[str, str | None], reason: EncodeReason) -> WrittenGroup:
        adds = self._adds(live.inputs)
        given = self._format.storage(live.inputs)
        outputs = self._write(live, adds, spelling, self._format.codec(given))
        with self._deleted_on_failure(outputs):
            self._paths.check(live, [output.file.path for output in outputs])
            written = self._format.check(given, outputs)
            completed = self._format.complete(live.inputs, outputs, written)
            doing = f"the sort of {len(live.inputs)} files in {live.group.partition} of {self._log.location}"
            require_disjoint(completed, live.group.order, self._shape.metadata.sort_key, doing)
            rows = self._check_rows(live, completed)
        return WrittenGroup(live, completed, rows, reason)

    @contextmanager
    def _deleted_on_failure(self, outputs: Sequence[LoggedFile]) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._log.delete(output.key for output in outputs)
            raise

    def _adds(self, files: Sequence[LoggedFile]) -> Any:
        return self._scala.adds(json_array(files))

    def _write(
        self, live: LiveGroup, adds: Any, partition_values: dict[str, str | None], codec: str | None
    ) -> tuple[LoggedFile, ...]:
        rows = self._scala.row_tracking.preserveRowTrackingColumns(
            self._log.frame(self._snapshot, adds), self._snapshot
        )
        frame = self._sorter.ordered(rows, live.inputs, live.group.order)
        tags = live.group.tags
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
            if tags:
                final["tags"] = {**(add.get("tags") or {}), **tags}
            outputs.append(LoggedFile(decode_add(final, self._columns), encode(final)))
        return tuple(outputs)

    def _check_rows(self, live: LiveGroup, outputs: Sequence[LoggedFile]) -> int:
        expected = logical_rows(live.inputs)
        counted = expected is None
        if expected is None:
            expected = self._log.rows(self._snapshot, self._adds(live.inputs))
        written = logical_rows(outputs)
        if written is None:
            written = self._log.rows(self._snapshot, self._adds(outputs))
        if written != expected:
            held = expected if counted else self._log.rows(self._snapshot, self._adds(live.inputs))
            raise Corrupt(
                f"the rewrite of {len(live.inputs)} files in {live.group.partition} of {self._log.location} was "
                f"stopped before its commit: {expected} rows in by {'count' if counted else 'the log statistics'}, "
                f"{written} rows out; reading the inputs finds {held}. First input: {live.inputs[0].file.path}. "
                "The table is unchanged",
            )
        return written


def one_spelling(location: str, columns: Sequence[PartitionColumn], live: LiveGroup) -> dict[str, str | None]:
    """Return the partition values as the first input spells them; raises Unsupported if readers see several."""
    spellings = [json.loads(logged.json).get("partitionValues") or {} for logged in live.inputs]
    for column in columns:
        seen = {_seen(column, spelling.get(column.physical)) for spelling in spellings}
        if len(seen) > 1:
            raise Unsupported(
                f"the files of {live.group.partition} at {location} spell {column.name!r} in ways readers take for "
                f"different values ({', '.join(sorted(map(repr, seen)))}), so they are not merged",
                field=column.name,
            )
    return {column.physical: spellings[0].get(column.physical) for column in columns}


def json_array(files: Sequence[LoggedFile]) -> str:
    """Join the files' JSON into one array."""
    return "[" + ",".join(logged.json for logged in files) + "]"


def logical_rows(files: Sequence[LoggedFile]) -> int | None:
    """Sum the rows that readers see, None if a file has no statistics."""
    total = 0
    for logged in files:
        if logged.file.rows is None:
            return None
        total += logged.file.rows - logged.file.deleted_rows
    return total


def _seen(column: PartitionColumn, value: str | None) -> str | None:
    """Return what distinguishes two spellings of one partition's value for a reader, the same for spellings that agree.

    By the protocol the empty string is null, yet Spark shows it as an empty string; and a timestamp without a zone is
    an instant of the reader's zone.
    """
    if column.type == "string":
        return value
    if column.type == "timestamp" and value:
        return "with a zone" if re.search(r"(Z|[+-]\d\d:?\d\d)$", value) else "without a zone"
    return None if not value else column.type
