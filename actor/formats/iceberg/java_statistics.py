"""Statistics of one Iceberg table's columns in the JVM: computed by Iceberg's own action, and kept by rewrites."""

from typing import Any

import structlog
from pyspark.sql import SparkSession

from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.java_table import JavaTable
from actor.jvm.errors import first_line
from shared.formats.iceberg.column_statistics import source_of_statistics
from shared.formats.iceberg.metadata import TableHead

_log = structlog.get_logger(__name__)


class JavaStatistics:
    """`StatisticsTable` in a session that runs the Spark jobs."""

    def __init__(self, scala: IcebergScala, table: JavaTable, session: SparkSession) -> None:
        self._scala = scala
        self._table = table
        self._session = session
        self.location = table.location

    def refresh(self) -> TableHead:
        """Read the newest metadata with all records, and return them."""
        self._table.refresh()
        return self._table.whole_head()

    def compute(self, snapshot: int) -> tuple[int, int]:
        """Compute statistics of a snapshot and commit them; returns the number of columns, and the file's bytes."""
        action = self._scala.actions(self._session).computeTableStats(self._table.raw)
        made = action.snapshot(snapshot).execute().statisticsFile()
        return len(made.blobMetadata()), int(made.fileSizeInBytes())


def keep_statistics(scala: IcebergScala, table: JavaTable) -> None:
    """Have the newest snapshot refer to the statistics before it if none since has changed data.

    They are only logged if that fails: the snapshot is there, and planners do without.
    """
    try:
        files = {int(one.snapshotId()): one for one in scala.items(table.raw.statisticsFiles())}
        head = table.head()
        source = source_of_statistics(head, files)
        if source is None or source == head.current:
            return
        made = _for_snapshot(scala, files[source], head.current or 0)
        table.raw.updateStatistics().setStatistics(made).commit()
    except Exception as error:  # noqa: BLE001 - the rewrite was committed
        _log.warning("statistics_not_kept", table=table.location, error=first_line(error))


def _for_snapshot(scala: IcebergScala, file: Any, snapshot: int) -> Any:
    """Return the same file as one of another snapshot; what is in it still names the one that it was computed of."""
    made = scala.resolve("org.apache.iceberg.GenericStatisticsFile")
    sizes = file.fileSizeInBytes(), file.fileFooterSizeInBytes()
    return made(snapshot, file.path(), *sizes, file.blobMetadata())
