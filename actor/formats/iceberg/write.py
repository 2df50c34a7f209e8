"""Writes a group's output before any commit: rows out must equal rows in before the table can see the files."""

import uuid
from typing import Any, Protocol

from pyspark.sql import SparkSession

from actor.formats.iceberg.commit import StagedGroup
from actor.formats.iceberg.inputs import InputGroup, known_rows
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.row_group_copy import CopiedFile
from actor.formats.parquet.copy_rules import EncodeReason, NotCopied
from shared.errors import Corrupt, RetryableError, Unsupported
from shared.table import DataFile

SESSION_CONF = {
    "spark.sql.adaptive.enabled": "false",  # One group is one task and one file.
    "spark.sql.iceberg.executor-cache.delete-files.enabled": "false",  # Tasks of several groups would share it.
    "spark.sql.caseSensitive": "true",  # Iceberg's columns are: `v` and `V` are two.
}
"""Settings of a session that writes groups."""

WHOLE_BYTES = 2**50
"""A size that neither a split nor an output reaches, so that a group becomes one file.

No multiple of its inputs would do: Iceberg measures a growing file by its rows before compression.
"""


class BytesCopier(Protocol):
    """Copies groups of one table, where that is exact."""

    def copy(self, live: InputGroup) -> CopiedFile | NotCopied:
        """Copy the group into one file, or return why it has to be encoded."""


class StagedWriter:
    """Writes groups of one table in one session."""

    def __init__(self, table: JavaTable, session: SparkSession, copier: BytesCopier) -> None:
        self._table = table
        self._session = session
        self._copier = copier

    def write(self, live: InputGroup) -> StagedGroup:
        """Write the group's rows as one file.

        Raises Unsupported for a group with an order, before anything is written; Corrupt, having deleted the output, if
        rows differ.
        """
        if live.group.order is not None:
            raise Unsupported(
                f"rewrites of Iceberg tables neither sort rows nor keep their order: nothing was rewritten in "
                f"{live.group.partition} of {self._table.location}; remove sort-by, zorder-by and clustering-order",
                field="sort-by",
            )
        copied = self._copier.copy(live)
        if isinstance(copied, NotCopied):
            return self._encode(live, copied.reason)
        expected = sum(one.rows for one in live.inputs)  # None of them has deletes.
        self._check(live, [copied.raw], expected)
        return StagedGroup(live, (_output(copied.raw, live),), expected, (copied.raw,))

    def _encode(self, live: InputGroup, reason: EncodeReason) -> StagedGroup:
        name = str(uuid.uuid4())
        try:
            self._table.stage(name, live)
            expected = known_rows(live.inputs)
            if expected is None:
                expected = self._read(name).count()
            self._write(name, live)
            raw = self._table.outputs(name)
            self._check(live, raw, expected)
            return StagedGroup(live, tuple(_output(file, live) for file in raw), expected, tuple(raw), reason)
        finally:
            self._table.unstage(name)

    def _read(self, name: str) -> Any:
        return (
            self._session.read.format("iceberg")
            .option("scan-task-set-id", name)
            .option("split-size", str(WHOLE_BYTES))
            .option("file-open-cost", "0")
            .load(name)
        )

    def _write(self, name: str, live: InputGroup) -> None:
        (
            self._read(name)
            .coalesce(1)
            .write.format("iceberg")
            .option("rewritten-file-scan-task-set-id", name)
            .option("target-file-size-bytes", str(WHOLE_BYTES))
            .option("distribution-mode", "none")
            .option("use-table-distribution-and-ordering", "false")
            .option("output-spec-id", str(live.inputs[0].spec))
            .mode("append")
            .save(name)
        )

    def _check(self, live: InputGroup, raw: list[Any], expected: int) -> None:
        """Raise unless the outputs have the rows and the partition of the inputs, having deleted them."""
        written = sum(int(file.recordCount()) for file in raw)
        strays = [file for file in raw if not self._table.has_partition_of(file, live.inputs[0])]
        if written == expected and (len(raw) == 1 or not written) and not strays:
            return
        self._table.delete(str(file.location()) for file in raw)
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
        raise RetryableError(f"{where} wrote {len(raw)} files and not one; the table is unchanged")


def _output(file: Any, live: InputGroup) -> DataFile:
    return DataFile(
        str(file.location()),
        int(file.fileSizeInBytes()),
        live.group.partition,
        rows=int(file.recordCount()),
        tags=live.group.tags,
    )
