"""Removes rows of one partition: the files that hold them are written again without them, in one commit as a DELETE.

Every file of the partition was read to find the rows, and each of them must still be live, with the same deletion
vector, when the commit is made: if any was touched meanwhile, nothing is committed, and the partition is read again.
Rows that were appended meanwhile are in other files, which stay. Before the commit, rows in = rows out + rows removed
is checked, and a reader that had no part in it finds the older rows and compares the others. Values are stored as in
the inputs, as for every rewrite. With a change data feed, the removed rows are written to it, and nothing else is.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from actor.failures import JudgedBy
from actor.formats.delta.actions import LoggedFile, decode_add, decode_adds, encode, json_array
from actor.formats.delta.commit import METADATA_CHANGED, DeltaTarget
from actor.formats.delta.conflicts import FAILURES, classify, conflict_kind
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footers import Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.read_rows import exact_rows, refused_values
from actor.formats.delta.superseded_rows import FILE, PART, REMOVED, ROW
from actor.formats.delta.write import are_visible, logical_rows, one_spelling
from actor.formats.delta.written_group import WrittenGroup
from actor.proofread.model import Proof, weakest
from actor.rewrite.model import Attempt, Verdict
from actor.rewrite.ports import Failures
from shared.errors import Conflict, Corrupt
from shared.policy.properties import policy_digest
from shared.policy.row_order import SortColumn
from shared.table import FileKey, TableMetadata

CHANGE_FEED = "delta.enableChangeDataFeed"
"""Delta's property: whether the rows that a commit changes are recorded."""

NOTHING_REMOVED: Mapping[str, int] = dict.fromkeys(
    (
        *("numRemovedFiles", "numRemovedBytes", "numAddedFiles", "numAddedBytes", "numAddedChangeFiles"),
        *("numDeletedRows", "numCopiedRows", "executionTimeMs", "scanTimeMs", "rewriteTimeMs"),
        *("numDeletionVectorsAdded", "numDeletionVectorsRemoved", "numDeletionVectorsUpdated"),
    ),
    0,
)
"""The metrics that Delta lists for DELETE, of a commit that removes nothing."""

_ADDED = "ConcurrentAppendException"
"""Delta's conflict with a commit that adds files and does not say that it read nothing, as deltalake's appends."""

_CHANGE_TYPE = "_change_type"


class RowsToRemove(Protocol):
    """The rows that a removal takes out of files; `condition` is what the history shows."""

    condition: str

    def mark(self, frame: Any) -> Any:
        """Add the columns `FILE`, `PART`, `ROW` and `REMOVED` to a frame that reads some of the files."""
        ...

    def compare(
        self, proofs: Proofs, live: LiveGroup, replaced: Sequence[LoggedFile], outputs: Sequence[LoggedFile]
    ) -> Proof:
        """Compare what was written with the rows that stay; raises what proofreading raises."""
        ...


@dataclass(frozen=True, slots=True)
class WrittenRemoval(WrittenGroup):
    """Files without the removed rows, which no commit refers to yet; `live` are all files that were read.

    replaced: those that hold the removed rows; changes: actions of the change data feed; removed_rows: how many.
    """

    replaced: tuple[LoggedFile, ...] = ()
    changes: tuple[Any, ...] = ()
    removed_rows: int = 0

    @property
    def sizes(self) -> Mapping[str, int]:
        """Size in bytes of each file that was written for the commit, files of the change data feed included.

        Delta writes these to `_change_data`, or beside the outputs where folders are random.
        """
        outputs = super(WrittenRemoval, self).sizes  # A class with slots has no other `super`.
        return {**outputs, **{str(change.path()): int(change.size()) for change in self.changes}}

    def metrics(self) -> dict[str, int]:
        """Return the metrics that Delta lists for DELETE."""
        return {
            **NOTHING_REMOVED,
            "numRemovedFiles": len(self.replaced),
            "numRemovedBytes": sum(logged.file.size_bytes for logged in self.replaced),
            "numAddedFiles": len(self.outputs),
            "numAddedBytes": sum(logged.file.size_bytes for logged in self.outputs),
            "numAddedChangeFiles": len(self.changes),
            "numDeletedRows": self.removed_rows,
            "numCopiedRows": self.rows,
            "numDeletionVectorsRemoved": sum(logged.file.dv_id is not None for logged in self.replaced),
        }


class JudgedRemoval(JudgedBy):
    """Meaning of failures of a removal of rows."""

    def verdict(self, error: BaseException) -> Verdict:
        """Try again after rows were added: the next attempt checks that all files that were read are still live."""
        return Verdict.TAKEN if conflict_kind(error) == _ADDED else classify(error)


class RemovalWriter:
    """Writes the files of one partition without some of their rows, through a transaction that is never committed."""

    def __init__(
        self, scala: DeltaScala, snapshot: Any, paths: OutputPaths, output: OutputFormat, proofs: Proofs
    ) -> None:
        self._scala = scala
        self._log = proofs.log
        self._snapshot = snapshot
        self._paths = paths
        self._format = output
        self._proofs = proofs

    def write(self, live: LiveGroup, rows: RowsToRemove, counts: Mapping[LoggedFile, int]) -> WrittenRemoval:
        """Write the files that hold the rows; raises Corrupt, having deleted what was written, if rows are missing."""
        replaced = tuple(counts)
        values = one_spelling(self._log.location, self._paths.shape.metadata.partition_columns, live)
        stored = self._format.storage(replaced)
        with refused_values(self._log.location):
            outputs, changes = self._write(replaced, rows, values, stored)
        removed = sum(counts.values())
        try:
            self._paths.check(live, [output.file.path for output in outputs])
            completed = self._format.complete(replaced, outputs, self._format.check(stored, outputs)) if outputs else ()
            kept = self._check_rows(replaced, completed, removed)
            proof = self._proofread(live, rows, replaced, completed, changes)
        except BaseException:
            self._log.delete([*(output.key for output in outputs), *(FileKey(str(one.path())) for one in changes)])
            raise
        return WrittenRemoval(
            live, completed, kept, proof=proof, replaced=replaced, changes=changes, removed_rows=removed
        )

    def _proofread(
        self,
        live: LiveGroup,
        rows: RowsToRemove,
        replaced: Sequence[LoggedFile],
        outputs: Sequence[LoggedFile],
        changes: Sequence[Any],
    ) -> Proof:
        proof = rows.compare(self._proofs, live, replaced, outputs)
        if not changes:
            return proof
        columns = self._paths.shape.metadata.partition_columns
        recorded = decode_adds(self._scala.to_json(self._scala.seq(changes)), columns)
        return proof.joined(self._proofs.check_changes(live, replaced, (*outputs, *recorded)))

    def _write(
        self,
        replaced: Sequence[LoggedFile],
        rows: RowsToRemove,
        values: dict[str, str | None],
        stored: Storage,
    ) -> tuple[tuple[LoggedFile, ...], tuple[Any, ...]]:
        scala, columns = self._scala, self._paths.shape.metadata.partition_columns
        read = exact_rows(scala, self._log, self._snapshot, replaced, stored)
        codec = self._format.codec(stored)
        kept = self._without(rows.mark(read))
        functions = scala.resolve("org.apache.spark.sql.functions")
        # As many outputs as inputs, each with the rows of one input in their order.
        placed = kept.repartition(len(replaced), scala.seq([functions.col(FILE)]))
        # A writer sorts by the partition columns, which have one value here, unless it finds that done.
        order = [*(str(SortColumn(column.name)).removesuffix(" ASC") for column in columns), FILE, PART, ROW]
        in_order = placed.sortWithinPartitions(scala.seq([functions.expr(name) for name in order]))
        txn = self._paths.transaction_for(values, [logged.file.path for logged in replaced])
        options = scala.none if codec is None else scala.some(self._log.write_options(compression=codec))
        written = txn.writeFiles(in_order.drop(scala.seq([FILE, PART, ROW])), options, True, scala.seq())  # noqa: FBT003 - isOptimize
        outputs: list[LoggedFile] = []
        changes: list[Any] = []
        for place, action in enumerate(json.loads(scala.to_json(written))):
            if "modificationTime" not in action:
                changes.append(written.apply(place))
                continue
            # The inputs' own spelling of the partition values: a reader in another time zone must see the same value.
            final = {**action, "dataChange": True, "partitionValues": values}
            outputs.append(LoggedFile(decode_add(final, columns), encode(final)))
        return tuple(outputs), tuple(changes)

    def _without(self, marked: Any) -> Any:
        """Return the frame without the marked rows; with a change data feed, with them and what became of each."""
        if not has_change_feed(self._paths.shape.metadata):
            return marked.filter(f"NOT {REMOVED}").drop(REMOVED)
        change = f"CASE WHEN {REMOVED} THEN 'delete' END AS {_CHANGE_TYPE}"
        return marked.selectExpr(self._scala.seq(["*", change])).drop(REMOVED)

    def _adds(self, files: Sequence[LoggedFile]) -> Any:
        return self._scala.adds(json_array(files))

    def _check_rows(self, replaced: Sequence[LoggedFile], outputs: Sequence[LoggedFile], removed: int) -> int:
        found, kept = (self._rows(files) for files in (replaced, outputs))
        if kept != found - removed and not are_visible(kept + removed, replaced, lambda: self._read(replaced)):
            raise Corrupt(
                f"the removal of {removed} rows from {len(replaced)} files at {self._log.location} was stopped before "
                f"its commit: {found} rows in, {kept} rows out. The table is unchanged"
            )
        return kept

    def _rows(self, files: Sequence[LoggedFile]) -> int:
        counted = logical_rows(files)
        return self._read(files) if counted is None else counted

    def _read(self, files: Sequence[LoggedFile]) -> int:
        return self._log.rows(self._snapshot, self._adds(files))


class RemovalTarget(DeltaTarget):
    """A table that a removal of rows is committed to; any touch of a file that was read for it makes it stale."""

    condition: str = ""
    failures: Failures = JudgedRemoval(FAILURES.rules, FAILURES.refused)

    def begin(self, offered: tuple[WrittenGroup, ...]) -> Attempt[WrittenGroup]:
        """Raise Conflict if the owner has changed the properties meanwhile: the rows were chosen by those before."""
        attempt = super().begin(offered)
        found = self._log.shape(attempt.base.snapshot())
        if not same_properties(found.metadata, self._shape.metadata):
            raise Conflict(
                f"the properties of {self.location} changed while rows to remove were searched; they are searched "
                "again",
                kind=METADATA_CHANGED,
            )
        return attempt

    def commit(self, attempt: Attempt[WrittenGroup]) -> int:
        """Commit as a DELETE, after passing Delta all files that were read to find the rows."""
        removal = _only(attempt.groups)
        now_ms = int(time.time() * 1000)
        attempt.base.trackFilesRead(self._scala.adds(json_array(removal.live.inputs)))
        outputs = self._scala.adds(json_array(removal.outputs))
        replaced = self._scala.adds(json_array(removal.replaced))
        removes = self._scala.removes(replaced, now_ms, data_change=True)
        actions = outputs.concat(removes).concat(self._scala.seq(removal.changes))
        compared_by = "" if removal.proof is None else weakest([removal.proof])  # No row was written.
        return self._log.commit_delete(attempt.base, actions, self.condition, removal.metrics(), compared_by)

    def _replaced(self, group: WrittenGroup) -> Sequence[LoggedFile]:
        return _only([group]).replaced


def has_change_feed(metadata: TableMetadata) -> bool:
    """Return whether commits have to record the rows that they change."""
    return metadata.configuration.get(CHANGE_FEED, "false").lower() == "true"


def same_properties(one: TableMetadata, other: TableMetadata) -> bool:
    """Return whether the properties that can bear on the policy are the same."""
    return policy_digest(one.configuration) == policy_digest(other.configuration)


def _only(groups: Sequence[WrittenGroup]) -> WrittenRemoval:
    (removal,) = groups
    if not isinstance(removal, WrittenRemoval):
        raise TypeError(f"expected a removal of rows, found {type(removal).__name__}")
    return removal
