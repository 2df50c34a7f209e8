"""Writes a group's output before any commit: rows out must equal rows in before the table can see the files."""

import uuid
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.iceberg.commit import StagedGroup
from actor.formats.iceberg.inputs import InputGroup, known_rows
from actor.formats.iceberg.java_table import JavaTable
from shared.errors import Corrupt, RetryableError
from shared.table import DataFile

SESSION_CONF = {
    "spark.sql.adaptive.enabled": "false",  # One group is one task and one file.
    "spark.sql.iceberg.executor-cache.delete-files.enabled": "false",  # Tasks of several groups would share it.
}
"""Settings of a session that writes groups."""


class StagedWriter:
    """Writes groups of one table in one session."""

    def __init__(self, table: JavaTable, session: SparkSession) -> None:
        self._table = table
        self._session = session

    def write(self, live: InputGroup) -> StagedGroup:
        """Write the group's rows as one file; raises Corrupt, having deleted the output, if rows differ."""
        name = str(uuid.uuid4())
        try:
            self._table.stage(name, live)
            expected = known_rows(live.inputs)
            if expected is None:
                expected = self._read(name, live).count()
            self._write(name, live)
            raw = self._table.outputs(name)
            outputs = tuple(_output(file, live) for file in raw)
            self._check_rows(live, outputs, expected)
            return StagedGroup(live, outputs, expected, tuple(raw))
        finally:
            self._table.unstage(name)

    def _read(self, name: str, live: InputGroup) -> Any:
        whole = str(_beyond(live))
        return (
            self._session.read.format("iceberg")
            .option("scan-task-set-id", name)
            .option("split-size", whole)
            .option("file-open-cost", "0")
            .load(name)
        )

    def _write(self, name: str, live: InputGroup) -> None:
        (
            self._read(name, live)
            .coalesce(1)
            .write.format("iceberg")
            .option("rewritten-file-scan-task-set-id", name)
            .option("target-file-size-bytes", str(_beyond(live)))
            .option("distribution-mode", "none")
            .option("use-table-distribution-and-ordering", "false")
            .option("output-spec-id", str(live.inputs[0].spec))
            .mode("append")
            .save(name)
        )

    def _check_rows(self, live: InputGroup, outputs: tuple[DataFile, ...], expected: int) -> None:
        written = sum(file.rows or 0 for file in outputs)
        if written == expected and (len(outputs) == 1 or not written):
            return
        self._table.delete(file.path for file in outputs)
        where = f"the rewrite of {len(live.inputs)} files in {live.group.partition} of {self._table.location}"
        if written != expected:
            raise Corrupt(
                f"{where} was stopped before its commit: {expected} rows in, {written} rows out. First input: "
                f"{live.inputs[0].path}. The table is unchanged"
            )
        raise RetryableError(f"{where} wrote {len(outputs)} files and not one; the table is unchanged")


def _output(file: Any, live: InputGroup) -> DataFile:
    return DataFile(
        str(file.location()),
        int(file.fileSizeInBytes()),
        live.group.partition,
        rows=int(file.recordCount()),
        tags=live.group.tags,
    )


def _beyond(live: InputGroup) -> int:
    """Return a size that neither a split nor an output of this group reaches."""
    return live.group.bytes * 4 + 1
