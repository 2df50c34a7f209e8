"""One Iceberg table in the JVM: loading, planning, staging, committing and deleting, each as few calls as can be.

Every private or awkward name of Iceberg's Java classes is here, so that no other file guesses.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import structlog
from py4j.java_gateway import JavaMember

from actor.formats.iceberg.commit import Replacement
from actor.formats.iceberg.copy_choice import ManifestEntry
from actor.formats.iceberg.float_columns import float_columns
from actor.formats.iceberg.head_cache import HeadCache
from actor.formats.iceberg.inputs import (
    AppliedDelete,
    InputGroup,
    LiveInput,
    ScannedTask,
    delete_digest,
    deleted_rows_to_plan_with,
)
from actor.jvm.errors import first_line
from actor.jvm.scala import Scala
from shared.errors import Corrupt
from shared.formats.iceberg.metadata import TableHead, decode_head
from shared.formats.iceberg.names import SPEC_KEY, TAGS_KEY
from shared.formats.iceberg.partitions import Spec
from shared.formats.iceberg.tags import decode_tags, file_tags
from shared.layout.planner import FileGroup
from shared.table import DataFile, DeleteKind, PartitionKey

_log = structlog.get_logger(__name__)

_ICEBERG = "org.apache.iceberg"
_PRUNABLE = frozenset({"string", "date", "int", "long"})
"""Types of identity partitions that a scan is pruned by; the others are filtered file by file."""

_MAX_FILTERED = 100
"""Partitions that one scan is pruned by; a larger expression costs more than the files that it leaves out."""


class JavaTable:
    """A loaded table; `table` is Iceberg's object."""

    def __init__(self, scala: Scala, table: Any, location: str, heads: HeadCache | None = None) -> None:
        self._scala = scala
        self._table = table
        self._heads = heads or HeadCache()
        self.location = location
        self.with_classes: Callable[[Callable[[], Any]], Any] = lambda _: None
        """Returns what a call of our Java classes returns, none of them None; None in a JVM that cannot use them."""

    @property
    def raw(self) -> Any:
        """Iceberg's own object."""
        return self._table

    def refresh(self) -> TableHead:
        """Read the newest metadata, and return them."""
        self._table.refresh()
        return self.head()

    def head(self) -> TableHead:
        """Return the metadata as they were last read; decoded once, as every snapshot of the table is in them."""
        identity = self.with_classes(lambda: str(self._scala.iceberg_scan.identity(self._table)))
        known = self._heads.get(self.location, identity) if identity else None
        if known is not None:
            return known
        parser = self._scala.resolve(f"{_ICEBERG}.TableMetadataParser")
        current = self._table.operations().current()
        path = str(current.metadataFileLocation() or "")
        head = decode_head(orjson.loads(parser.toJson(current)), self.location, path)
        if identity:
            self._heads.put(self.location, identity, head)
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
        scan = self._table.newScan().useSnapshot(snapshot).ignoreResiduals()
        # Those of the snapshot: a column that the table got since is none that its scan knows.
        if floats and (names := float_columns(self._schema(scan))):
            scan = scan.includeColumnStats(self._scala.java_list(names))
        if (expression := self._any_of(head, partitions)) is not None:
            scan = scan.filter(expression)
        tags = _TagLookup(head)
        found: dict[str, LiveInput] = {}
        planned = scan.planFiles()
        try:
            # A CloseableIterable cannot be iterated by py4j.
            tasks = self._scala.resolve(f"{_ICEBERG}.relocated.com.google.common.collect.Lists").newArrayList(planned)
        finally:
            planned.close()
        rows = self.with_classes(lambda: orjson.loads(self._scala.to_json(self._scala.iceberg_scan.rows(tasks))))
        for one in self._asked(tasks, head) if rows is None else self._described(tasks, rows, head):
            if (paths is None or one.path in paths) and (partitions is None or one.key in partitions):
                if one.path in found:
                    raise Corrupt(f"{self.location}: {one.path} is live twice, and its rows would be written once")
                # What reads all files of a partition or of the table needs no tasks.
                found[one.path] = self._live_input(one, tasks, head, tags, has_task=paths is not None)
        return found

    def _described(self, tasks: Any, rows: list[list[Any]], head: TableHead) -> Iterator["_Found"]:
        """Return what is known of the files of a scan (see `IcebergScan.rows`); each partition is asked for once."""
        keys: dict[int, PartitionKey] = {}
        for number, (path, size, count, spec, sequence, deletes, first, *entry) in enumerate(rows):
            if first not in keys:
                keys[first] = self._key(head.specs[spec], tasks.get(first).file())
            yield _Found(number, path, size, count, spec, sequence, bool(deletes), ManifestEntry(*entry), keys[first])

    def _asked(self, tasks: Any, head: TableHead) -> Iterator["_Found"]:
        """Return the same, field by field: in a JVM that could not make our classes."""
        for number, task in enumerate(tasks):
            file = task.file()
            yield _Found(
                number,
                str(file.location()),
                int(file.fileSizeInBytes()),
                int(file.recordCount()),
                int(file.specId()),
                file.fileSequenceNumber(),
                bool(len(task.deletes())),
                ManifestEntry(str(file.format()).lower(), file.keyMetadata() is not None, file.sortOrderId() or 0),
                self._key(head.specs[file.specId()], file),
            )

    def _live_input(
        self, found: "_Found", tasks: Any, head: TableHead, tags: "_TagLookup", *, has_task: bool
    ) -> LiveInput:
        deletes: tuple[AppliedDelete, ...] = ()
        if found.has_deletes:
            deletes = tuple(self._applied(one, found.path, head) for one in tasks.get(found.number).deletes())
        of_file, added_ms = tags.of(found.sequence, found.path)
        file = DataFile(
            found.path,
            found.size,
            found.key,
            dv_id=delete_digest(deletes),
            rows=found.rows,
            deleted_rows=deleted_rows_to_plan_with(deletes, found.rows),
            modified_ms=added_ms,
            tags=of_file,
        )
        scanned = ScannedTask(tasks, found.number) if has_task else None
        return LiveInput(found.path, found.size, found.rows, found.spec, deletes, file, found.entry, scanned)

    def _schema(self, scan: Any) -> Mapping[str, Any]:
        parser = self._scala.resolve(f"{_ICEBERG}.SchemaParser")
        found: Mapping[str, Any] = json.loads(parser.toJson(scan.schema()))
        return found

    def _key(self, spec: Spec, file: Any) -> PartitionKey:
        values = file.partition()
        any_class = self._scala.resolve("java.lang.Class").forName("java.lang.Object")
        return spec.key([_value(values.get(index, any_class)) for index in range(len(spec.fields))])

    def _applied(self, delete: Any, path: str, head: TableHead) -> AppliedDelete:
        kind = DeleteKind.POSITION
        if str(delete.content()) == "EQUALITY_DELETES":
            kind = DeleteKind.EQUALITY
        elif str(delete.format()) == "PUFFIN":
            kind = DeleteKind.VECTOR
        is_vector = kind is DeleteKind.VECTOR
        # By its field, or, in files of older writers, by equal bounds of the paths in it; None for deletes by value.
        only = self._scala.resolve(f"{_ICEBERG}.util.ContentFileUtil").referencedDataFileLocation(delete)
        is_of_one_file = only is not None and str(only) == path
        return AppliedDelete(
            f"{delete.location()}#{delete.contentOffset()}" if is_vector else str(delete.location()),
            kind,
            int(delete.recordCount()),
            # A file of positions may name a row twice.
            is_exact=is_vector and is_of_one_file,
            is_of_one_file=is_of_one_file,
            partition=self._key(head.specs[delete.specId()], delete),
            raw=delete,
        )

    def _any_of(self, head: TableHead, partitions: Collection[PartitionKey] | None) -> Any:
        """Return a filter that all files of the partitions pass, None where nothing can be pruned."""
        if partitions is None or len(partitions) > _MAX_FILTERED:
            return None
        expressions = self._scala.resolve(f"{_ICEBERG}.expressions.Expressions")
        found = None
        for partition in partitions:
            one = self._expression(expressions, head, partition)
            if one is None:
                return None
            found = one if found is None else getattr(expressions, "or")(found, one)
        return found

    def _expression(self, expressions: Any, head: TableHead, partition: PartitionKey) -> Any:
        values = json.loads(partition)
        spec = head.specs.get(int(values.get(SPEC_KEY, 0)))
        found = None
        for field, source in () if spec is None else zip(spec.fields, head.sources[spec.id], strict=True):
            if field.transform != "identity" or field.type not in _PRUNABLE or source is None:
                continue
            text = values[field.name]
            literal = int(text) if field.type in ("int", "long") and text is not None else text
            one = expressions.isNull(source) if text is None else expressions.equal(source, literal)
            found = one if found is None else getattr(expressions, "and")(found, one)
        return found

    def stage(self, name: str, group: InputGroup) -> None:
        """Make the group's scan tasks readable and its outputs collectable under a name."""
        self._static("SparkTableCache").add(name, self._table)
        tasks = self._of_inputs("tasks", group.inputs)
        if tasks is None:
            tasks = self._scala.java_list(one.task for one in group.inputs)
        self._manager().stageTasks(self._table, name, tasks)

    def files(self, inputs: Sequence[LiveInput]) -> Any:
        """Return Iceberg's objects of these files as a list of Java's."""
        found = self._of_inputs("files", inputs)
        return self._scala.java_list(one.task.file() for one in inputs) if found is None else found

    def _of_inputs(self, member: str, inputs: Sequence[LiveInput], *first: Any) -> Any:
        """Return what a member of `IcebergScan` returns for the tasks of inputs; None where one call cannot do it.

        first: its arguments before these.
        """
        found = _of_one_scan(inputs)
        if found is None:
            return None
        tasks, numbers = found
        return self.with_classes(
            lambda: getattr(self._scala.iceberg_scan, member)(*first, tasks, self._scala.java_list(numbers))
        )

    def unstage(self, name: str) -> None:
        """Forget a name."""
        self._static("SparkTableCache").remove(name)
        self._manager().removeTasks(self._table, name)
        self._coordinator().clearRewrite(self._table, name)

    def outputs(self, name: str) -> list[Any]:
        """Return the files that were written under a name, as Iceberg's objects."""
        return list(self._coordinator().fetchNewFiles(self._table, name))

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

    def commit(self, change: Replacement, *, since: int, summary: Mapping[str, str]) -> None:
        """Make a change in one snapshot, whose outputs get the sequence number of the snapshot `since`.

        So later deletes by value apply to them, too; Iceberg refuses the commit if rows of an input were deleted
        by their place, or an input was removed.
        """
        rewrite = self._table.newRewrite().validateFromSnapshot(since)
        rewrite.dataSequenceNumber(self._table.snapshot(since).sequenceNumber())
        for group in change.groups:
            if self._of_inputs("remove", group.live.inputs, rewrite) is None:
                for file in group.live.inputs:
                    rewrite.deleteFile(file.task.file())
            for output in group.raw:
                rewrite.addFile(output)
        for delete in change.deletes:
            rewrite.deleteFile(delete.raw)
        for name, value in summary.items():
            rewrite.set(name, value)
        rewrite.commit()

    def set_properties(self, values: Mapping[str, str]) -> None:
        """Set properties in one commit of the metadata, which Iceberg repeats on newer ones."""
        update = self._table.updateProperties()
        for name, value in values.items():
            update.set(name, value)
        update.commit()

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files that no snapshot refers to; what cannot be deleted is logged, and is an orphan."""
        io = self._table.io()
        for path in paths:
            try:
                io.deleteFile(path)
            except Exception as error:  # noqa: BLE001 - tidying must not hide why it was needed
                _log.warning("orphan_file_not_deleted", path=path, error=first_line(error))

    def _manager(self) -> Any:
        return self._scala.resolve(f"{_ICEBERG}.spark.ScanTaskSetManager").get()

    def _coordinator(self) -> Any:
        return self._scala.resolve(f"{_ICEBERG}.spark.FileRewriteCoordinator").get()

    def _static(self, name: str) -> Any:
        """Return the one object of a class whose static `get()` py4j mistakes for a method of its objects."""
        found = self._scala.resolve(f"{_ICEBERG}.spark.{name}")
        return JavaMember("get", found, f"z:{found._fqn}", found._gateway_client)()  # noqa: SLF001


class _Found(NamedTuple):
    """A file that a scan found; `number` is its task's, `sequence` its sequence number (None: not known)."""

    number: int
    path: str
    size: int
    rows: int
    spec: int
    sequence: int | None
    has_deletes: bool
    entry: ManifestEntry
    key: PartitionKey


def _of_one_scan(inputs: Sequence[LiveInput]) -> tuple[Any, list[int]] | None:
    """Return Java's list of the tasks of these files, and the number of each in it; None if they are of several."""
    scanned = [one.scanned for one in inputs if one.scanned is not None]
    if len(scanned) < len(inputs) or any(one.tasks is not scanned[0].tasks for one in scanned):
        return None
    return scanned[0].tasks, [one.number for one in scanned]


class _TagLookup:
    """The tags of files by the snapshots that added them."""

    def __init__(self, head: TableHead) -> None:
        self._snapshots = {one.sequence_number: one for one in head.snapshots.values() if one.sequence_number}
        self._decoded: dict[int, Mapping[str, Mapping[str, str]]] = {}

    def of(self, sequence: int | None, path: str) -> tuple[Mapping[str, str], int]:
        """Return a file's tags, and when it was added in ms since 1970 (0: not known)."""
        by = self._snapshots.get(sequence or 0)
        if by is None:
            return {}, 0
        if by.id not in self._decoded:
            self._decoded[by.id] = decode_tags(by.summary.get(TAGS_KEY))
        return file_tags(self._decoded[by.id], path), by.timestamp_ms


def _value(value: Any) -> Any:
    """Return a partition value as Python's; of Java's objects only byte buffers and UUIDs arrive as such."""
    if hasattr(value, "array"):
        return bytes(value.array())
    return str(value.toString()) if hasattr(value, "toString") else value
