"""Outputs of Delta's OPTIMIZE of a clustered table: written by Delta, then checked and committed like a rewrite.

OPTIMIZE commits by itself, and could so commit rows that no reader but Spark finds. So its transaction is one that only
notes what it is asked to commit (`StagedStatement.java`), and reads files by the schema by which rewrites do. Its files
are compared with those that they replace, and the commit is ours: Delta's operation, under the lease, checked for
conflicts.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from actor.formats.delta import exact_values
from actor.formats.delta.actions import LoggedFile, decode_add, decode_adds, encode, json_array, vector_id
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footers import Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.read_rows import refused_sizes
from actor.formats.delta.snapshot import paths_condition
from actor.formats.delta.write import are_visible, logical_rows
from actor.formats.delta.written_group import WrittenGroup
from actor.jvm.scala import jvm_session
from actor.proofread.model import Proof, Reading
from shared.errors import Conflict, Corrupt, RefusedFiles
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.refusals import RefusalReason
from shared.table import FileKey

MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
"""Setting of a session: the size that outputs are to have."""


CHECKS_TEXTS = "duckdb"
"""The reader that reads no text which is not UTF-8."""


class StagedClustering:
    """Runs an OPTIMIZE statement without its commit."""

    def __init__(self, scala: DeltaScala, output: OutputFormat, proofs: Proofs) -> None:
        self._scala = scala
        self._log = proofs.log
        self._format = output
        self._proofs = proofs
        self.operation: Any = None
        """Delta's operation, once files are written."""

    def write(self, statement: str, snapshot: Any, files: Sequence[LoggedFile]) -> WrittenGroup | None:
        """Return what a statement wrote and would replace of the live files, None if it found nothing to do.

        Raises Conflict, Corrupt, RefusedFiles and what proofreading raises, having deleted what was written.
        """
        stored, session = self._log.stored(snapshot), jvm_session(self._log.session)
        with refused_sizes(self._log, files):
            staged = list(self._scala.staged_statement.run(session, statement, stored))
        if not staged:
            return None
        self.operation = staged[0].operation()
        actions = [action for one in staged for action in json.loads(one.offeredActions())]
        outputs = tuple(_logged(action["add"]) for action in actions if "add" in action)
        try:
            return self._checked(snapshot, actions, outputs)
        except BaseException:
            self._log.delete(output.key for output in outputs)
            raise

    def _checked(
        self, snapshot: Any, actions: Sequence[Mapping[str, Any]], outputs: tuple[LoggedFile, ...]
    ) -> WrittenGroup:
        if unknown := {kind for action in actions for kind in action} - {"add", "remove"}:
            raise Corrupt(f"OPTIMIZE of {self._log.location} would commit actions of other kinds: {unknown}")
        removes = [action["remove"] for action in actions if "remove" in action]
        live = self._live([FileKey(remove["path"], vector_id(remove.get("deletionVector"))) for remove in removes])
        given = self._format.storage(live.inputs)
        self._format.check(given, outputs)
        expected, written = self._rows(snapshot, live.inputs), self._rows(snapshot, outputs)
        if expected != written and not are_visible(written, live.inputs, lambda: self._read(snapshot, live.inputs)):
            raise Corrupt(
                f"OPTIMIZE of {self._log.location} was stopped before its commit: {expected} rows in, {written} rows "
                "out. The table is unchanged"
            )
        proof = self._proofs.check(live, outputs, path_taken="clustered")
        self._require_exact(given, proof)
        return WrittenGroup(live, outputs, written, proof=proof)

    def _require_exact(self, given: Storage, proof: Proof) -> None:
        """Raise RefusedFiles for values that OPTIMIZE may have changed, where no reader of texts has compared them.

        Rewrites of ours search for such values while they read the rows (see `exact_values`); this statement does not.
        """
        if proof.reading is Reading.ROWS and proof.reader == CHECKS_TEXTS:
            return
        doubtful = [column for columns in given.schemas for column in columns if exact_values.is_doubtful(column)]
        schema = json.loads(json.loads(self._proofs.shape.metadata_json)["metaData"]["schemaString"])
        if columns := [*exact_values.checked_columns(schema["fields"], doubtful)]:
            raise RefusedFiles(
                f"files of {self._log.location} are not clustered: {', '.join(columns)} are stored as bytes or as "
                "unsigned numbers, which may mean something else once they are written as the table's type, and "
                f"DuckDB has not compared them ({proof.unverified_because or 'only pyarrow has'}); set "
                "lakewright.proofread = new, or write these columns again",
                reason=RefusalReason.TYPES,
                field=columns[0],
            )

    def _rows(self, snapshot: Any, files: Sequence[LoggedFile]) -> int:
        counted = logical_rows(files)
        return self._read(snapshot, files) if counted is None else counted

    def _read(self, snapshot: Any, files: Sequence[LoggedFile]) -> int:
        return self._log.rows(snapshot, self._scala.adds(json_array(files)))

    def _live(self, keys: Sequence[FileKey]) -> LiveGroup:
        """Return the inputs as the newest snapshot has them; raises Conflict if others took one."""
        snapshot = self._log.snapshot()
        version = int(snapshot.version())
        digest = self._log.digest(version)
        text = self._log.files(snapshot, paths_condition(sorted({key.path for key in keys})))
        known = {logged.key: logged for logged in decode_adds(text, ())}
        if gone := [key for key in keys if key not in known]:
            raise Conflict(
                f"others replaced {len(gone)} of {len(keys)} files of {self._log.location} while they were clustered; "
                "nothing was committed, and it is tried again later",
                kind="Stale",
            )
        inputs = tuple(known[key] for key in keys)
        group = FileGroup(WHOLE_TABLE, tuple(logged.file for logged in inputs), RewriteMode.FULL)
        return LiveGroup(group, inputs, version, digest)


def _logged(add: dict[str, Any]) -> LoggedFile:
    return LoggedFile(decode_add(add, ()), encode(add))
