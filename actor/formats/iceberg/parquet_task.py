"""What our Java classes do with the Parquet files of one Iceberg table, each in one call.

Files are read and written through the table's own file IO, and lie where its location provider puts them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.iceberg.copy_choice import LINEAGE_IDS
from actor.formats.iceberg.inputs import LiveInput
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.parquet.footer_summary import THREADS, FooterSummary, decode_summary
from actor.jvm.scala import Scala, jvm_context


class IcebergTasks:
    """Calls for the files of one table."""

    def __init__(self, scala: Scala, session: SparkSession, table: JavaTable) -> None:
        self.session = session
        self._scala = scala
        self._table = table

    def footers(self, inputs: Sequence[LiveInput]) -> tuple[FooterSummary, ...]:
        """Return the summaries of the footers, in the order of the inputs."""
        reader = self._scala.resolve("io.lakewright.ParquetFooter")
        lineage = self._scala.java_list(LINEAGE_IDS)
        found = reader.summaries(self._store(inputs), self._paths(inputs), self._sizes(inputs), THREADS, lineage)
        return tuple(map(decode_summary, json.loads(self._scala.to_json(found))))

    def mismatch(self, inputs: Sequence[LiveInput]) -> str:
        """Return why the columns or the partitions of inputs of one schema are not those of the table."""
        first = inputs[0]
        return str(self._files().mismatch(self._table.raw, self._table.files(inputs), first.path, first.size_bytes))

    def copy(self, inputs: Sequence[LiveInput], end_bytes: int) -> Mapping[str, Any]:
        """Copy the row groups of the inputs into a file below `end_bytes` (0: of any size) and return what it is.

        It carries the job tags of this thread, so that cancelling the job ends it.
        """
        task = self._scala.resolve("io.lakewright.RowGroupCopy")(
            self._store(inputs), self._paths(inputs), self._sizes(inputs), "", ".parquet", end_bytes
        )
        run = self._scala.resolve("io.lakewright.ParquetTask").run
        result: dict[str, Any] = json.loads(self._scala.to_json(run(jvm_context(self.session), task)))
        return result

    def describe(self, inputs: Sequence[LiveInput], path: str, size_bytes: int) -> Any:
        """Return Iceberg's object of an output, with the metrics that Iceberg's own writer would have given it."""
        return self._files().describe(self._table.raw, self._table.files(inputs), path, size_bytes)

    def _store(self, inputs: Sequence[LiveInput]) -> Any:
        return self._scala.resolve("io.lakewright.IcebergStore")(self._table.raw, inputs[0].task.file())

    def _files(self) -> Any:
        return self._scala.resolve("io.lakewright.IcebergFiles")

    def _paths(self, inputs: Sequence[LiveInput]) -> Any:
        return self._scala.java_list(one.path for one in inputs)

    def _sizes(self, inputs: Sequence[LiveInput]) -> Any:
        return self._scala.java_list(one.size_bytes for one in inputs)
