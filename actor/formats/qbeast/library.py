"""The library and the log of one table, reached through the JVM: every name of the library's classes is here."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.actions import decode_add, decode_metadata, decode_protocol
from actor.formats.delta.conflicts import classify, refused, translate
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.qbeast.index_commit import IndexCommit, decode_commit
from actor.formats.qbeast.index_job import LibraryCall
from actor.jvm.errors import first_line, jvm_class_names
from actor.jvm.scala import jvm_session
from actor.rewrite.model import Verdict
from shared.errors import Conflict, InvalidInput, PermanentError
from shared.formats.delta import refusal
from shared.paths.locations import hadoop_path
from shared.table import Snapshot

EXTENSION = "io.qbeast.spark.internal.QbeastSparkSessionExtension"
CATALOG = "io.qbeast.spark.internal.sources.catalog.QbeastCatalog"
_TABLE = "io.qbeast.spark.QbeastTable"
_CONTEXT = "io.qbeast.context.QbeastContext"
_TABLE_ID = "io.qbeast.core.model.QTableID"
CHECK = "io.lakewright.qbeast.IndexCommitCheck"
_TAKEN = "LAKEWRIGHT_TAKEN: "
_REFUSED = "LAKEWRIGHT_REFUSED: "
_HOOK = "qbeastPreCommitHook.lakewright"

# Scala's positional flag by name.
_MUST_BE_FRESH = False


class JvmIndexLibrary:
    """`actor.formats.qbeast.index_job.IndexLibrary` in a session of its own, which is the active one of the thread."""

    def __init__(self, scala: DeltaScala, session: SparkSession, location: str) -> None:
        self._scala = scala
        self._session = session
        self.location = location
        self._path = hadoop_path(location)
        self._log: Any = scala.delta_log.forTable(jvm_session(session), self._path)

    @property
    def check(self) -> Any:
        """The class of ours that runs inside the library's transaction."""
        return self._scala.resolve(CHECK)

    def table_read_now(self) -> Any:
        """Return a handle of the table that has read the log already, and does not read it again."""
        factory = self._scala.module(_CONTEXT).indexedTableFactory()
        found = factory.getIndexedTable(self._scala.resolve(_TABLE_ID)(self._path))
        found.exists()
        return found

    def table(self) -> Any:
        """Return the library's own handle of the table, which reads the log when it is used first."""
        return self._scala.resolve(_TABLE).forPath(jvm_session(self._session), self._path)

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files; raises InvalidInput where there is no table."""
        found = self._log.update(_MUST_BE_FRESH, self._scala.none)
        if found.version() < 0:
            raise InvalidInput(f"there is no Delta table at {self.location}", field="location")
        metadata, protocol = decode_metadata(found.metadata().json()), decode_protocol(found.protocol().json())
        adds = json.loads(self._scala.to_json(found.allFiles().collectAsList()))
        files = tuple(decode_add(add, metadata.partition_columns) for add in adds)
        at_ms = int(found.timestamp())
        return Snapshot(int(found.version()), at_ms, metadata, protocol, files, refusal=refusal(metadata, protocol))

    def optimize(self, call: LibraryCall) -> None:
        """Let the library rewrite files.

        Where nothing was committed, raises Conflict if others took some, and PermanentError if the commit would not be
        the planned one, or its rows cannot be compared.
        """
        self.optimize_with(self.table(), call)

    def optimize_with(self, table: Any, call: LibraryCall) -> None:
        """Rewrite with a handle of the table that may have read the log before."""
        paths, options = self._scala.seq(call.paths), {"userMetadata": call.user_metadata}
        options |= {_HOOK: CHECK, f"{_HOOK}.arg": call.key}
        with self._expected(call):
            try:
                table.optimize(paths, self._scala.map(options))
            except Exception as error:
                raise self._translated(error) from error

    def commits(self, after: int) -> Sequence[IndexCommit]:
        """Return the commits after a version, in order."""
        texts = json.loads(self._scala.to_json(self.check.commits(self._log, after)))
        return [decode_commit(int(version), actions) for version, *actions in texts]

    @contextmanager
    def _expected(self, call: LibraryCall) -> Iterator[None]:
        paths = self._scala.java_list(call.paths)
        self.check.expect(call.key, self._log, call.version, paths, call.rows)
        try:
            yield
        finally:
            self.check.forget(call.key)

    def _translated(self, error: Exception) -> Exception:
        if "IllegalStateException" in jvm_class_names(error):
            text, failed = first_line(error), f"the rewrite of {self.location} was not committed"
            if _TAKEN in text:
                return Conflict(f"{failed}: {text.split(_TAKEN, 1)[-1]}; plan it again", kind="taken")
            if _REFUSED in text:
                return PermanentError(f"{failed}: {text.split(_REFUSED, 1)[-1]}; the table is as it was")
        if classify(error) is not Verdict.UNKNOWN:
            return refused(error, self.location)
        return translate(error, f"optimizing the index of {self.location}")
