"""Removes rows of one partition: the files that hold them are written again without them, in one commit as a DELETE.

Every file of the partition was read to find the rows, and each of them must still be live, with the same deletion
vector, when the commit is made: if any was touched meanwhile, nothing is committed, and the partition is read again.
Rows that were appended meanwhile are in other files, which stay. Rows in = rows out + rows removed is checked before
the commit, and values are stored as in the inputs, as for every rewrite. With a change data feed, the removed rows are
written to it, and nothing else is.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.commit import METADATA_CHANGED, Committer
from actor.formats.delta.conflicts import CommitFailure, classify, conflict_kind
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.superseded_rows import FILE, PART, REMOVED, ROW, SupersededRows
from actor.formats.delta.write import WrittenGroup, json_array, logical_rows, one_spelling
from actor.jvm.scala import Scala
from shared.errors import Conflict, Corrupt
from shared.layout.row_order import SortColumn
from shared.properties import policy_digest
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


@dataclass(frozen=True, slots=True)
class WrittenRemoval(WrittenGroup):
    """Files without the removed rows, which no commit refers to yet; `live` are all files that were read.

    replaced: those that hold the removed rows; changes: actions of the change data feed; removed_rows: how many.
    """

    replaced: tuple[LoggedFile, ...] = ()
    changes: tuple[Any, ...] = ()
    removed_rows: int = 0

    @property
    def keys(self) -> tuple[FileKey, ...]:
        """All files that were written for the commit, those of the change data feed included.

        Delta writes these to `_change_data`, or beside the outputs where folders are random.
        """
        return (*(output.key for output in self.outputs), *map(_key_of, self.changes))


class RemovalWriter:
    """Writes the files of one partition without some of their rows, through a transaction that is never committed."""

    def __init__(self, scala: Scala, log: TableLog, snapshot: Any, paths: OutputPaths, output: OutputFormat) -> None:
        self._scala = scala
        self._log = log
        self._snapshot = snapshot
        self._paths = paths
        self._format = output

    def write(self, live: LiveGroup, rows: SupersededRows, counts: Mapping[LoggedFile, int]) -> WrittenRemoval:
        """Write the files that hold the rows; raises Corrupt, having deleted what was written, if rows are missing."""
        replaced = tuple(counts)
        values = one_spelling(self._log.location, self._paths.shape.metadata.partition_columns, live)
        stored = self._format.storage(replaced)
        outputs, changes = self._write(replaced, rows, values, self._format.codec(stored))
        removed = sum(counts.values())
        try:
            self._paths.check(live, [output.file.path for output in outputs])
            completed = self._format.complete(replaced, outputs, self._format.check(stored, outputs)) if outputs else ()
            kept = self._check_rows(replaced, completed, removed)
        except BaseException:
            self._log.delete([*(output.key for output in outputs), *map(_key_of, changes)])
            raise
        return WrittenRemoval(live, completed, kept, replaced=replaced, changes=changes, removed_rows=removed)

    def _write(
        self,
        replaced: Sequence[LoggedFile],
        rows: SupersededRows,
        values: dict[str, str | None],
        codec: str | None,
    ) -> tuple[tuple[LoggedFile, ...], tuple[Any, ...]]:
        scala, columns = self._scala, self._paths.shape.metadata.partition_columns
        read = scala.row_tracking.preserveRowTrackingColumns(
            self._log.frame(self._snapshot, self._adds(replaced)), self._snapshot
        )
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
        if kept != found - removed:
            raise Corrupt(
                f"the removal of {removed} rows from {len(replaced)} files at {self._log.location} was stopped before "
                f"its commit: {found} rows in, {kept} rows out. The table is unchanged"
            )
        return kept

    def _rows(self, files: Sequence[LoggedFile]) -> int:
        counted = logical_rows(files)
        return self._log.rows(self._snapshot, self._adds(files)) if counted is None else counted


class RemovalCommitter(Committer):
    """Commits a removal of rows; any touch of a file that was read for it makes it stale."""

    condition: str = "superseded()"

    def _split_conflicted(
        self, txn: Any, offered: tuple[WrittenGroup, ...]
    ) -> tuple[tuple[WrittenGroup, ...], tuple[WrittenGroup, ...]]:
        """Raise Conflict if the owner has changed the properties meanwhile: the rows were chosen by those before."""
        found = self._log.shape(txn.snapshot())
        if not same_properties(found.metadata, self._shape.metadata):
            raise Conflict(
                f"the properties of {self._log.location} changed while rows to remove were searched; they are searched "
                "again",
                kind=METADATA_CHANGED,
            )
        return super()._split_conflicted(txn, offered)

    def _commit(self, txn: Any, offered: Sequence[WrittenGroup]) -> int:
        return self._log.commit_delete(txn, self._actions(txn, offered), self.condition, self._metrics(offered))

    def _actions(self, txn: Any, offered: Sequence[WrittenGroup]) -> Any:
        removal = _only(offered)
        now_ms = int(time.time() * 1000)
        txn.trackFilesRead(self._scala.adds(json_array(removal.live.inputs)))
        outputs = self._scala.adds(json_array(removal.outputs))
        replaced = self._scala.adds(json_array(removal.replaced))
        removes = self._scala.removes(replaced, now_ms, data_change=True)
        return outputs.concat(removes).concat(self._scala.seq(removal.changes))

    def _metrics(self, offered: Sequence[WrittenGroup]) -> dict[str, int]:
        removal = _only(offered)
        return {
            **NOTHING_REMOVED,
            "numRemovedFiles": len(removal.replaced),
            "numRemovedBytes": sum(logged.file.size_bytes for logged in removal.replaced),
            "numAddedFiles": len(removal.outputs),
            "numAddedBytes": sum(logged.file.size_bytes for logged in removal.outputs),
            "numAddedChangeFiles": len(removal.changes),
            "numDeletedRows": removal.removed_rows,
            "numCopiedRows": removal.rows,
            "numDeletionVectorsRemoved": sum(logged.file.dv_id is not None for logged in removal.replaced),
        }

    def _classify(self, error: Exception) -> CommitFailure:
        """Try again after rows were added: the next attempt checks that all files that were read are still live."""
        return CommitFailure.TAKEN if conflict_kind(error) == _ADDED else classify(error)

    def _replaced(self, group: WrittenGroup) -> Sequence[LoggedFile]:
        return _only([group]).replaced


def has_change_feed(metadata: TableMetadata) -> bool:
    """Return whether commits have to record the rows that they change."""
    return metadata.configuration.get(CHANGE_FEED, "false").lower() == "true"


def same_properties(one: TableMetadata, other: TableMetadata) -> bool:
    """Return whether the properties that can bear on the policy are the same."""
    return policy_digest(one.configuration) == policy_digest(other.configuration)


def _key_of(change: Any) -> FileKey:
    return FileKey(str(change.path()))


def _only(groups: Sequence[WrittenGroup]) -> WrittenRemoval:
    (removal,) = groups
    if not isinstance(removal, WrittenRemoval):
        raise TypeError(f"expected a removal of rows, found {type(removal).__name__}")
    return removal
