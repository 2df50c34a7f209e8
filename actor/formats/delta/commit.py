"""A Delta table as what a rewrite commits to: a transaction per attempt, and the log that shows what was committed.

Delta runs a commit of nothing but `dataChange=false` file actions under snapshot isolation, where appends never
conflict with it; a `txn` action would undo that, so identity travels in userMetadata only.
"""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from actor.formats.delta.actions import LoggedFile, json_array
from actor.formats.delta.conflicts import FAILURES
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.late_rows import HiddenRows, RowHider
from actor.formats.delta.live_files import resolve_live
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.written_group import WrittenGroup
from actor.proofread.model import weakest
from actor.rewrite.model import Attempt
from actor.rewrite.ports import Failures
from shared.errors import Conflict
from shared.formats.delta_orphans import MIN_ORPHAN_AGE_MS
from shared.layout.planner import FileGroup
from shared.table import CommitOrigin, FileKey

METADATA_CHANGED = "MetadataChangedException"


class DeltaTarget:
    """`actor.rewrite.ports.CommitTarget` for Delta; `shape` is what the files of its groups were written under."""

    max_output_age_s: float = MIN_ORPHAN_AGE_MS / 2_000
    """Half the age at which a vacuum deletes files that no version names."""

    failures: Failures = FAILURES

    operation: Any = None
    """The operation of Delta's that the history is to show; None: OPTIMIZE of chosen files."""

    def __init__(
        self,
        scala: DeltaScala,
        log: TableLog,
        shape: TableShape,
        origin: CommitOrigin,
        hider: RowHider | None = None,
    ) -> None:
        self.location = log.location
        self.mark = f"job {origin.job}, token {origin.token}"
        self._scala = scala
        self._log = log
        self._shape = shape
        self._origin = origin
        self._hider = hider

    def begin(self, offered: tuple[WrittenGroup, ...]) -> Attempt[WrittenGroup]:
        """Open a transaction; its groups are those that are live in its snapshot, or can be made good."""
        hider = self._hider
        if hider is None:
            (txn, live), _ = self._look(offered)
            return Attempt(tuple(group for group in offered if group.live.group in live), txn)
        (txn, live), hiding = hider.comparisons.look(lambda: self._look(offered))
        made_good = {rows.group.live.group: hider.hide(rows) for rows in hiding}
        groups = tuple(group for group in offered if group.live.group in live or group.live.group in made_good)
        return Attempt(groups, txn, made_good)

    def _look(self, offered: tuple[WrittenGroup, ...]) -> tuple[tuple[Any, Collection[FileGroup]], list[HiddenRows]]:
        """Open a transaction; return it, the groups that it may commit as they are, and what other groups must hide."""
        snapshot = self._log.snapshot()
        txn = self._log.transaction(snapshot)
        if not self._log.shape(snapshot).same_layout(self._shape):
            raise Conflict(
                f"metadata or protocol of {self.location} changed while its files were rewritten; plan them again",
                kind=METADATA_CHANGED,
            )
        known = [(group.live.group, group.live) for group in offered]
        found = resolve_live(self._log, snapshot, known, self._shape.metadata.partition_columns)
        live = {one.group for one in found}
        as_written = {group.live.group for group in offered if group.live.group in live and not group.carried}
        if self._hider is None:
            return (txn, as_written), []
        version = self._log.version(snapshot)
        hiding = [
            self._hider.known(group) if group.live.group in live else self._hider.find(group, version)
            for group in offered
            if group.live.group not in as_written
        ]
        return (txn, as_written), [rows for rows in hiding if rows is not None]

    def commit(self, attempt: Attempt[WrittenGroup]) -> int:
        """Commit as an OPTIMIZE, after passing Delta the files that the outputs were made from."""
        inputs = [logged for group in attempt.committed for logged in group.live.inputs]
        outputs = [logged for group in attempt.committed for logged in group.outputs]
        now_ms = int(time.time() * 1000)
        metrics = dict(operation_metrics(inputs, outputs))
        actions = self._scala.replacement(attempt.base, json_array(inputs), json_array(outputs), now_ms)
        compared_by = weakest(group.proof for group in attempt.groups)
        return self._log.commit(attempt.base, actions, metrics, compared_by, operation=self.operation)

    def find(self, attempt: Attempt[WrittenGroup]) -> int | None:
        """Return the version since the attempt of this job and token that has exactly its files."""
        version = self._log.find_commit(self._origin, since_version=int(attempt.base.readVersion()))
        if version is None:
            return None
        actions = self._log.actions(version)
        removed = {action["remove"]["path"] for action in actions if "remove" in action}
        added = {action["add"]["path"] for action in actions if "add" in action}
        is_this = removed == {logged.file.path for group in attempt.committed for logged in self._replaced(group)}
        is_this &= added == {logged.file.path for group in attempt.committed for logged in group.outputs}
        return version if is_this else None

    def _replaced(self, group: WrittenGroup) -> Sequence[LoggedFile]:
        """Return the files that a commit of the group removes."""
        return group.live.inputs

    def follows(self, version: int) -> int:
        """Return the version before, for the log numbers commits without gaps."""
        return version - 1

    def sizes(self, paths: Collection[str]) -> Mapping[str, int | None]:
        """Ask the store for the sizes of files in bytes, None for one that is not there."""
        return {key.path: size for key, size in self._log.sizes(map(FileKey, paths)).items()}

    def delete(self, paths: Collection[str]) -> None:
        """Delete files that no commit refers to."""
        self._log.delete(map(FileKey, paths))


def operation_metrics(inputs: Sequence[LoggedFile], outputs: Sequence[LoggedFile]) -> Mapping[str, int]:
    """Return the metrics that Delta lists for OPTIMIZE, as which DESCRIBE HISTORY then shows a rewrite.

    Sizes are bytes, zero where nothing was written.
    """
    sizes = sorted(logged.file.size_bytes for logged in outputs) or [0]
    vectors = [vector for logged in inputs if (vector := json.loads(logged.json).get("deletionVector"))]
    return {
        "numAddedFiles": len(outputs),
        "numAddedBytes": sum(logged.file.size_bytes for logged in outputs),
        "numRemovedFiles": len(inputs),
        "numRemovedBytes": sum(logged.file.size_bytes for logged in inputs),
        "minFileSize": sizes[0],
        "p25FileSize": sizes[len(sizes) // 4],
        "p50FileSize": sizes[len(sizes) // 2],
        "p75FileSize": sizes[len(sizes) * 3 // 4],
        "maxFileSize": sizes[-1],
        "numDeletionVectorsRemoved": len(vectors),
        "numDeletionVectorRowsRemoved": sum(int(vector["cardinality"]) for vector in vectors),
        "numDeletionVectorBytesRemoved": sum(int(vector["sizeInBytes"]) for vector in vectors),
    }
