"""Writes checkpoints: of small logs in the driver, of others by a Spark job of Delta's."""

from collections.abc import Mapping
from typing import Any

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from actor.formats.delta.actions import decode_metadata
from actor.formats.delta.delta_scala import DeltaScala
from actor.jvm.errors import first_line
from actor.jvm.sessions import changed

NO_CHECKSUM_FILE = ("spark.databricks.delta.writeChecksumFile.enabled", "spark.databricks.delta.allFilesInCrc.enabled")
"""Settings that are false where a commit gets no checksum (`.crc`)."""

MAX_INTERPRETED_FILES = 10_000
"""Live files up to which a checkpoint is written without generated code: to compile it takes longer than to do without.

Of the CPU of such a checkpoint planning, generating and compiling are more than half.
"""

MAX_FILES_HERE = 2_000
"""Live files up to which the driver writes a checkpoint, whose statistics are JSON alone.

Spark plans a query as fast by it as by the columns that Delta's job adds; with 10,000 files it needs 14% more CPU.
"""

_ONE_FILE_WITH_JSON = {
    "delta.checkpointPolicy": "classic",
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpoint.writeStatsAsStruct": "false",
}
"""Values of Delta's properties with which a table still gets one file with statistics as JSON alone."""

_INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.files.minPartitionNum": "1",  # Each task generates the code that reads its files, however few they are.
}

_log = structlog.get_logger(__name__)


class CheckpointWriter:
    """The checkpoints of one table. `delta_log`: Delta's `DeltaLog`."""

    def __init__(self, scala: DeltaScala, session: SparkSession, delta_log: Any) -> None:
        self._scala, self._session, self._log = scala, session, delta_log

    def newest(self) -> int:
        """Return the version of the newest checkpoint that any engine has recorded, -1 if there is none.

        Engines differ in the commits after which they write one: Spark those whose version the interval divides,
        delta-rs those before. Between the two a table would get every checkpoint twice.
        """
        last = self._log.readLastCheckpointFile()
        return int(last.get().version()) if last.isDefined() else -1

    def write(self, snapshot: Any, *, has_checksum_file: bool) -> None:
        """Write a checkpoint of this snapshot, and clean up the log; a failure is logged, by Delta or here."""
        segment = self._scala.checkpoint_file.segment(self._log, snapshot)
        if self._is_written_here(snapshot, segment):
            self._log.doLogCleanup(snapshot, self._scala.none)
        else:
            self._write_by_job(snapshot, segment, has_checksum_file=has_checksum_file)

    def _is_written_here(self, snapshot: Any, segment: Any) -> bool:
        """Write the checkpoint of a small log in the driver; False if it has to be written by a job."""
        configuration = decode_metadata(self._scala.shape(snapshot)[0]).configuration
        asks_for_more = any(
            configuration.get(name, value).lower() != value for name, value in _ONE_FILE_WITH_JSON.items()
        )
        checksum = snapshot.checksumOpt()
        if asks_for_more or not checksum.isDefined() or int(checksum.get().numFiles()) > MAX_FILES_HERE:
            return False
        try:
            return bool(self._scala.checkpoint_file.write(self._log, snapshot, segment))
        except (Py4JError, PySparkException) as error:
            _log.warning("checkpoint_by_job", version=int(snapshot.version()), reason=first_line(error))
            return False

    def _write_by_job(self, snapshot: Any, segment: Any, *, has_checksum_file: bool) -> None:
        """Write a checkpoint by Delta's own job, which also cleans up the log.

        A size that follows from the commits is not computed again by a query, as for a checksum that Delta would write:
        Delta compares it with the files that it writes.
        """
        checksum, settings = snapshot.checksumOpt(), dict[str, str]()
        if checksum.isDefined() and int(checksum.get().numFiles()) <= MAX_INTERPRETED_FILES:
            settings |= _INTERPRETED
        if not has_checksum_file:
            settings |= dict.fromkeys(NO_CHECKSUM_FILE, "false")
        # A snapshot of its own, because a cached one would keep what is computed for the checkpoint.
        none = self._scala.none
        twin = self._log.createSnapshot(segment, none, none, checksum)
        with changed(self._scala, self._session, settings):
            self._log.checkpoint(twin, none)
        twin.uncache()
