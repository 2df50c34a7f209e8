"""One Iceberg table in the JVM: loading, planning, staging, committing and deleting, each as few calls as can be.

Every private or awkward name of Iceberg's Java classes is here or in what describes a scan (`scan_filter`,
`scanned_files`), so that no other file guesses.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import orjson
import structlog
from pyspark.sql import DataFrame

from actor.formats.iceberg.delete_groups import DeletesChange
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, Listed, LiveInput
from actor.formats.iceberg.listed_deletes import ListedDeletes, PartitionKeys
from actor.formats.iceberg.newest_inputs import MOST_SNAPSHOTS, Inputs, after_changes
from actor.formats.iceberg.scan_cache import Scan, ScanCache
from actor.formats.iceberg.scan_filter import scan_filter
from actor.formats.iceberg.scanned_files import ScannedFiles
from actor.formats.iceberg.staged import NewDeletes, Replacement, StagedGroup
from actor.formats.iceberg.table_columns import TableColumns, table_columns
from actor.jvm.errors import first_line
from actor.rewrite.late_rows import MOST_ROWS
from actor.rewrite.model import NotAsked
from shared.errors import Corrupt
from shared.formats.iceberg.delete_merges import FIRST_WITH_VECTORS
from shared.formats.iceberg.head_cache import HeadCache
from shared.formats.iceberg.manifests import vector_name
from shared.formats.iceberg.metadata import TableHead, as_paimon, decode_head, may_be_of_paimon
from shared.formats.iceberg.names import PAIMON_SCHEMA
from shared.layout.planner import FileGroup
from shared.table import PartitionKey

_log = structlog.get_logger(__name__)

MOST_TEXT = 64 << 20
"""Characters of keys of text that are held at once, of one or two bytes each in the heap of the JVM."""

_ICEBERG = "org.apache.iceberg"


class FieldBound(NamedTuple):
    """The id of a field of dates or timestamps, and a value of it in days or microseconds since 1970."""

    column: int
    value: int


class JavaTable:
    """A loaded table; `table` is Iceberg's object."""

    def __init__(
        self,
        scala: IcebergScala,
        table: Any,
        location: str,
        heads: HeadCache | None = None,
        scans: ScanCache | None = None,
    ) -> None:
        self._scala = scala
        self._table = table
        self._heads = heads or HeadCache()
        self._scans = scans or ScanCache()
        self.location = location

    @property
    def raw(self) -> Any:
        """Iceberg's own object."""
        return self._table

    def refresh(self) -> TableHead:
        """Read the newest metadata, and return them."""
        self._table.refresh()
        return self.head()

    def head(self) -> TableHead:
        """Return the metadata as they were last read, but of their `records` the path alone.

        A snapshot is decoded once, as long as the metadata before are kept.
        """
        identity, known = self._heads.get(self.location)
        text = str(self._scala.iceberg_head.since(self._table, identity))
        if known is not None and not text:
            return known
        found = orjson.loads(text)
        before = {} if found["whole"] or known is None else known.snapshots
        gone = set(found["gone"])
        kept = [{"snapshot-id": one} for one in before if one not in gone]
        raw = found["metadata"] | {"snapshots": kept + found["snapshots"]}
        head = self._marked(decode_head(raw, self.location, found["file"], before))
        if found["identity"]:
            self._heads.put(self.location, found["identity"], head)
        return head

    def whole_head(self) -> TableHead:
        """Return the same with all records."""
        parser = self._scala.resolve(f"{_ICEBERG}.TableMetadataParser")
        current = self._table.operations().current()
        path = str(current.metadataFileLocation() or "")
        return self._marked(decode_head(orjson.loads(parser.toJson(current)), self.location, path))

    def _marked(self, head: TableHead) -> TableHead:
        if may_be_of_paimon(head) and self._table.io().newInputFile(f"{head.location}/{PAIMON_SCHEMA}").exists():
            return as_paimon(head)
        return head

    def inputs(
        self,
        head: TableHead,
        snapshot: int,
        *,
        partitions: Collection[PartitionKey] | None,
        paths: Collection[str] | None = None,
        floats: bool = False,
    ) -> dict[str, LiveInput]:
        """Return the live files of partitions (None: all) in a snapshot by path: all (None), or those with these paths.

        floats: their tasks have the metrics of columns of floats, which a copy of row groups needs, and no others.

        Raises Corrupt for a path that is live twice, for a rewrite would remove both and write the rows of one.
        """
        expression = scan_filter(self._scala, head, partitions)
        pruned = None if expression is None or partitions is None else frozenset(partitions)
        key = self.location, head.metadata.table_uuid, snapshot, pruned
        scan = self._scans.get(key, floats=floats)
        if scan is None:
            scan = self._scanned(
                head, self._scala.iceberg_scan.planned(self._table, snapshot, expression, floats), floats=floats
            )
            self._scans.put(key, scan)
        found = {
            path: one
            for path, one in scan.files.items()
            if (paths is None or path in paths) and (partitions is None or one.file.partition in partitions)
        }
        self._require_once(found, scan.twice)
        return found

    def _scanned(self, head: TableHead, tasks: Any, *, floats: bool) -> Scan:
        scanned, found, twice = ScannedFiles(self._scala, head, self._table, tasks), dict[str, LiveInput](), set[str]()
        for one in scanned.each():
            if one.path in found:
                twice.add(one.path)
            found[one.path] = scanned.live_input(one)
        return Scan(found, frozenset(twice), floats)

    def aged(self, head: TableHead, snapshot: int, bound: FieldBound | None) -> dict[LiveInput, bool]:
        """Return the live files that may hold rows below a bound, and whether all are by partition or metrics.

        Without a bound all files are returned, of none of which that is known. Raises Corrupt as `inputs` does.
        """
        ages = self._scala.iceberg_ages
        if bound is None:
            tasks = self._scala.iceberg_scan.planned(self._table, snapshot, None, False)  # noqa: FBT003 - no floats
        else:
            tasks = ages.planned(self._table, snapshot, *bound)
        scan = self._scanned(head, tasks, floats=False)
        found = scan.files
        self._require_once(found, scan.twice)
        below = "1" * len(found) if bound is None else str(ages.below(self._table, tasks, *bound))
        return {one: how == "2" for one, how in zip(found.values(), below, strict=True) if how != "0"}

    def _require_once(self, found: Iterable[str], twice: Collection[str]) -> None:
        for path in found:
            if path in twice:
                raise Corrupt(f"{self.location}: {path} is live twice, and its rows would be written once")

    def columns(self, properties: Mapping[str, str]) -> TableColumns:
        """Return the columns of the newest schema, with the name mapping that these properties of the table hold."""
        parser = self._scala.resolve(f"{_ICEBERG}.SchemaParser")
        return table_columns(json.loads(parser.toJson(self._table.schema())), properties)

    def stage(
        self, name: str, group: InputGroup, *, is_checked: bool = True, prefixes: Sequence[str] | None = None
    ) -> None:
        """Make the group's scan tasks readable and its outputs collectable under a name.

        Not `is_checked`: columns are read and written as if the schema let them be null. prefixes: of the names of
        files, by the number of the part in Spark that writes them.
        """
        named = None if prefixes is None else self._scala.java_list(prefixes)
        self._scala.staged_table.stage(self._table, name, self.tasks(group.inputs), is_checked, named)

    def files(self, inputs: Sequence[LiveInput]) -> Any:
        """Return Iceberg's objects of these files as a list of Java's."""
        return self._of_inputs("files", inputs)

    def tasks(self, inputs: Sequence[LiveInput]) -> Any:
        """Return Iceberg's scan tasks of these files as a list of Java's."""
        return self._of_inputs("tasks", inputs)

    def lineage(self, inputs: Sequence[LiveInput]) -> list[tuple[int | None, int | None]]:
        """Return of each file the id of its first row, and the sequence number that its rows inherit."""
        found = json.loads(self._scala.to_json(self._of_inputs("lineage", inputs)))
        return [(first, sequence) for first, sequence in found]

    def _of_inputs(self, member: str, inputs: Sequence[LiveInput], *first: Any) -> Any:
        """Return what a member of `IcebergScan` returns for the tasks of inputs; first: its arguments before these."""
        tasks, numbers = _of_one_scan([one.scanned for one in inputs])
        return getattr(self._scala.iceberg_scan, member)(*first, tasks, json.dumps(numbers))

    def unstage(self, name: str) -> None:
        """Forget a name."""
        self._scala.staged_table.unstage(self._table, name)

    def read_order(self, frame: DataFrame) -> list[str]:
        """Return the paths of the files that one task reads for a frame, in order; empty if that is not known."""
        found = self._scala.resolve("io.lakewright.iceberg.ScanOrder").of(frame._jdf)  # noqa: SLF001
        return list(orjson.loads(found))

    def outputs(self, name: str) -> list[Any]:
        """Return the files that were written under a name, as Iceberg's objects, whose counts are of all rows."""
        written = self._scala.resolve(f"{_ICEBERG}.spark.FileRewriteCoordinator").get().fetchNewFiles(self._table, name)
        return self._scala.items(self._scala.output_counts.completed(self._table, written))

    def null_counts(self, outputs: Iterable[Any]) -> list[dict[int, int]]:
        """Return how many nulls outputs, as Iceberg's objects, claim to have, by the ids of columns."""
        found = json.loads(self._scala.output_counts.nulls(self._scala.java_list(outputs)))
        return [{int(column): count for column, count in one.items()} for one in found]

    def has_partition_of(self, output: Any, read: LiveInput) -> bool:
        """Return whether an output, as Iceberg's object, has the spec and the partition of an input."""
        spec = read.task.spec()
        order = self._scala.resolve(f"{_ICEBERG}.types.Comparators").forType(spec.partitionType())
        is_same = order.compare(output.partition(), read.task.file().partition()) == 0
        return bool(output.specId() == spec.specId() and is_same)

    def live(self, snapshot: int, groups: Iterable[FileGroup]) -> Mapping[str, LiveInput]:
        """Return which files of these groups are live in a snapshot."""
        found = tuple(groups)
        paths = {file.path for group in found for file in group.files}
        return self.inputs(
            self.head(), snapshot, partitions={group.partition for group in found}, paths=paths, floats=True
        )

    def followed(self, inputs: Inputs, since: int, until: int) -> dict[str, LiveInput] | None:
        """Return what the snapshots after one, up to a later one, left of inputs, and what they delete by position.

        None if the one does not lead to the later one, or over too many others.
        """
        known = list(inputs.values())
        tasks = self.tasks(known)
        listed = self._scala.iceberg_deletes.since(self._table, since, until, MOST_SNAPSHOTS, tasks)
        if listed is None:
            return None
        found = ListedDeletes(PartitionKeys(self._scala, self.head()), listed)
        return after_changes(known, [found.of(place, one.path) for place, one in enumerate(known)], found.removed)

    def commit(self, change: Replacement, *, since: int, summary: Mapping[str, str]) -> None:
        """Make a change in one snapshot, whose outputs get the sequence number of the snapshot `since`.

        So later deletes by value apply to them, too. The commit is refused if rows of an input were deleted by position
        since the change was checked, or deletes of one were removed, or an input was, or if Iceberg would drop deletes
        by value that apply to the outputs. Raises NotAsked where it failed before the catalog was asked.
        """
        watch = self._scala.watched_commit(self._table)
        rewrite = watch.newRewrite(self._table)

        def build() -> None:
            paths = [one.path for group in change.groups for one in group.live.inputs]
            watch.requireDeletes(change.checked_until, self._scala.java_list(paths))
            sequence = int(self._table.snapshot(since).sequenceNumber())
            watch.requireLaterDeletes(sequence)
            self._build(rewrite, change, sequence, summary)

        self._commit(watch, rewrite, build)

    def commit_deletes(self, change: DeletesChange, summary: Mapping[str, str]) -> None:
        """Make a change of delete files in one snapshot, if the one that it holds upon is the newest one still.

        Raises NotAsked where it failed before the catalog was asked.
        """
        watch = self._scala.watched_commit(self._table)
        is_new = change.is_new_to_others
        made = watch.newRowDelta(self._table) if is_new else watch.newRewrite(self._table)

        def build() -> None:
            watch.requireSnapshot(change.upon)
            if is_new:
                made.validateFromSnapshot(change.upon)  # Or each vector that a data file ever had is a conflict.
                made.validateDeletedFiles()  # What is removed must be live, as a rewrite asks by itself.
            for new in change.added:
                _ = made.addDeletes(new.raw) if is_new else made.addFile(new.raw, new.sequence)
            for delete in change.removed:
                _ = made.removeDeletes(delete.raw) if is_new else made.deleteFile(delete.raw)
            for name, value in summary.items():
                made.set(name, value)

        self._commit(watch, made, build)

    def overwrite(self, groups: Iterable[StagedGroup], *, upon: TableHead, summary: Mapping[str, str]) -> None:
        """Replace the inputs of groups by their outputs in one snapshot that changes data, upon exactly these metadata.

        Raises NotAsked where it failed before the catalog was asked.
        """
        watch = self._scala.watched_commit(self._table)
        change = watch.newOverwrite(self._table)

        def build() -> None:
            watch.requireMetadata(upon.records.path)
            change.validateFromSnapshot(upon.current)
            change.validateNoConflictingDeletes()  # And each input must be live.
            for group in groups:
                for file in self.files(group.live.inputs):
                    change.deleteFile(file)
                for output in group.outputs:
                    change.addFile(output.raw)
            for name, value in summary.items():
                change.set(name, value)

        self._commit(watch, change, build)

    def _commit(self, watch: Any, change: Any, build: Callable[[], None]) -> None:
        """Build a change and commit it; raises NotAsked where it failed before the catalog was asked."""
        is_built = False
        try:
            build()
            is_built = True
            change.commit()
        except Exception as error:
            if not is_built or not watch.isAsked():
                raise NotAsked(f"{self.location}: the catalog was not asked for the commit") from error
            raise

    def note(self, summary: Mapping[str, str]) -> None:
        """Commit a snapshot with the files of the newest one, as one that changes no data."""
        change = self._table.rewriteManifests()
        for name, value in summary.items():
            change.set(name, value)
        change.commit()

    def _build(self, rewrite: Any, change: Replacement, sequence: int, summary: Mapping[str, str]) -> None:
        rewrite.validateFromSnapshot(change.checked_until)
        rewrite.dataSequenceNumber(sequence)
        for group in change.groups:
            self._of_inputs("remove", group.live.inputs, rewrite)
            for output in group.outputs:
                rewrite.addFile(output.raw)
            for new in group.deletes:
                rewrite.addFile(new.raw, *(() if new.sequence is None else (new.sequence,)))
        for delete in change.deletes:
            rewrite.deleteFile(delete.raw)
        for name, value in summary.items():
            rewrite.set(name, value)

    def set_properties(self, values: Mapping[str, str]) -> None:
        """Set properties in one commit of the metadata, which Iceberg repeats on newer ones."""
        update = self._table.updateProperties()
        for name, value in values.items():
            update.set(name, value)
        update.commit()

    def named(self, path: str, deletes: Sequence[AppliedDelete]) -> Sequence[int] | None:
        """Return the positions in a data file that delete files name, ascending; None if they are too many to hold."""
        found = self._rows.named(path, self._scala.java_list(one.raw for one in deletes))
        return None if found is None else orjson.loads(found)

    def hidden(self, inputs: Sequence[LiveInput]) -> Any:
        """Return Java's object of the rows of these files that delete files hide (`HiddenRows.java`).

        None where that is not found exactly, or they are too many to hold.
        """
        return self._rows.hidden(self.tasks(inputs), MOST_TEXT)

    def hide(self, output: Any, places: Sequence[int]) -> NewDeletes:
        """Write what hides the rows at these places of an output, which is Iceberg's object."""
        has_vectors = self.head().protocol.min_writer >= FIRST_WITH_VECTORS
        return new_deletes(self._rows.hide(output, json.dumps(places), has_vectors), None)

    def without(self, shared: AppliedDelete, paths: Sequence[str]) -> NewDeletes | None:
        """Write what a delete file names besides rows of these files, under its number; None if that is nothing."""
        raw = self._rows.without(shared.raw, self._scala.java_list(paths))
        return None if raw is None else new_deletes(raw, int(shared.raw.dataSequenceNumber()))

    @cached_property
    def _rows(self) -> Any:
        return self._scala.resolve("io.lakewright.iceberg.IcebergRows")(self._table, MOST_ROWS)

    def sizes(self, paths: Iterable[str]) -> dict[str, int | None]:
        """Return the size in bytes that the store says each of these files has now, None for one that is not there."""
        asked = list(paths)
        return dict(zip(asked, json.loads(self._scala.iceberg_scan.sizes(self._table, json.dumps(asked))), strict=True))

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files that no snapshot refers to; what cannot be deleted is logged, and is an orphan."""
        io = self._table.io()
        for path in paths:
            try:
                io.deleteFile(path)
            except Exception as error:  # noqa: BLE001 - tidying must not hide why it was needed
                _log.warning("orphan_file_not_deleted", path=path, error=first_line(error))


def new_deletes(raw: Any, sequence: int | None) -> NewDeletes:
    """Return what was written, by Iceberg's object."""
    path, offset = str(raw.location()), raw.contentOffset()
    name = path if offset is None else vector_name(path, offset)
    return NewDeletes(name, path, int(raw.fileSizeInBytes()), sequence, raw)


def _of_one_scan(listed: Sequence[Listed | None]) -> tuple[Any, list[int]]:
    """Return Java's list of these objects, and the number of each in it; raises ValueError for several."""
    scanned = [one for one in listed if one is not None]
    if len(scanned) < len(listed) or any(one.objects is not scanned[0].objects for one in scanned):
        raise ValueError("a number names a file in its own scan alone, and these files are of several")
    return scanned[0].objects, [one.number for one in scanned]
