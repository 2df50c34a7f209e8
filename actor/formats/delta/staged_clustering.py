"""Outputs of Delta's OPTIMIZE of a clustered table: written by Delta, then checked and committed like a rewrite.

OPTIMIZE commits by itself, and could so commit rows that no reader but Spark finds. So its transaction is one that only
notes what it is asked to commit (`StagedStatement.java`), and reads files by the schema by which rewrites do. Its files
are compared with those that they replace, and the commit is ours: Delta's operation, under the lease, checked for
conflicts.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, decode_adds, encode, json_array, vector_id
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.snapshot import paths_condition
from actor.formats.delta.write import WrittenGroup, logical_rows
from actor.jvm.scala import jvm_session
from shared.errors import Conflict, Corrupt
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import FileKey

MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
"""Setting of a session: the size that outputs are to have."""


class StagedClustering:
    """Runs an OPTIMIZE statement without its commit."""

    def __init__(self, scala: DeltaScala, output: OutputFormat, proofs: Proofs) -> None:
        self._scala = scala
        self._log = proofs.log
        self._format = output
        self._proofs = proofs
        self.operation: Any = None
        """Delta's operation, once files are written."""

    def write(self, statement: str, snapshot: Any) -> WrittenGroup | None:
        """Return what a statement wrote and would replace, None if it found nothing to do.

        Raises Conflict, Corrupt and what proofreading raises, having deleted what was written.
        """
        stored, session = self._log.stored(snapshot), jvm_session(self._log.session)
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
        self._format.check(self._format.storage(live.inputs), outputs)
        expected, written = self._rows(snapshot, live.inputs), self._rows(snapshot, outputs)
        if expected != written:
            raise Corrupt(
                f"OPTIMIZE of {self._log.location} was stopped before its commit: {expected} rows in, {written} rows "
                "out. The table is unchanged"
            )
        proof = self._proofs.check(live, outputs, path_taken="clustered")
        return WrittenGroup(live, outputs, written, proof=proof)

    def _rows(self, snapshot: Any, files: Sequence[LoggedFile]) -> int:
        counted = logical_rows(files)
        return self._log.rows(snapshot, self._scala.adds(json_array(files))) if counted is None else counted

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
