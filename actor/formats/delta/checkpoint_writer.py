"""Writes checkpoints by Delta's own code, without the queries that a small table needs none of."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from actor.jvm.scala import Scala
from actor.jvm.sessions import changed

NO_CHECKSUM_FILE = ("spark.databricks.delta.writeChecksumFile.enabled", "spark.databricks.delta.allFilesInCrc.enabled")
"""Settings that are false where a commit gets no checksum (`.crc`)."""

MAX_INTERPRETED_FILES = 10_000
"""Live files up to which a checkpoint is written without generated code: to compile it takes longer than to do without.

Of the CPU of such a checkpoint planning, generating and compiling are more than half.
"""

_INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.files.minPartitionNum": "1",  # Each task generates the code that reads its files, however few they are.
}


class CheckpointWriter:
    """The checkpoints of one table. `delta_log`: Delta's `DeltaLog`."""

    def __init__(self, scala: Scala, session: SparkSession, delta_log: Any) -> None:
        self._scala, self._session, self._log = scala, session, delta_log

    def newest(self) -> int:
        """Return the version of the newest checkpoint that any engine has recorded, -1 if there is none.

        Engines differ in the commits after which they write one: Spark those whose version the interval divides,
        delta-rs those before. Between the two a table would get every checkpoint twice.
        """
        last = self._log.readLastCheckpointFile()
        return int(last.get().version()) if last.isDefined() else -1

    def write(self, snapshot: Any, *, has_checksum_file: bool) -> None:
        """Write a checkpoint of this snapshot, and clean up the log; Delta logs what fails, and raises nothing.

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
        twin = self._log.createSnapshot(snapshot.logSegment(), none, none, checksum)
        with changed(self._scala, self._session, settings):
            self._log.checkpoint(twin, none)
        twin.uncache()
