"""One Iceberg table in the JVM: loading, planning, staging, committing and deleting, each as few calls as can be.

Every private or awkward name of Iceberg's Java classes is here, so that no other file guesses.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import structlog
from py4j.java_gateway import JavaMember, JavaObject

from actor.formats.iceberg.commit import Replacement
from actor.formats.iceberg.copy_choice import ManifestEntry
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.inputs import (
    AppliedDelete,
    InputGroup,
    LiveInput,
    ScannedTask,
    delete_digest,
    deleted_rows_to_plan_with,
)
from actor.formats.iceberg.table_columns import TableColumns, table_columns
from actor.jvm.errors import first_line
from actor.rewrite.model import NotAsked
from shared.errors import Corrupt
from shared.formats.iceberg.deletes import can_name_rows
from shared.formats.iceberg.head_cache import HeadCache
from shared.formats.iceberg.metadata import TableHead, as_paimon, decode_head, may_be_of_paimon
from shared.formats.iceberg.names import COMMIT_KEY, PAIMON_SCHEMA, SPEC_KEY, TAGS_KEY
from shared.formats.iceberg.partitions import Spec
from shared.formats.iceberg.tags import decode_tags, file_tags
from shared.layout.planner import FileGroup
from shared.table import DataFile, DeleteKind, PartitionKey

_log = structlog.get_logger(__name__)

_ICEBERG = "org.apache.iceberg"
_PRUNABLE = frozenset({"string", "date", "int", "long"})
"""Types of identity partitions that a scan is pruned by; the others are filtered file by file."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
"""How Iceberg's expressions read a date."""

_MAX_FILTERED = 100
"""Partitions that one scan is pruned by; a larger expression costs more than the files that it leaves out."""


class JavaTable:
    """A loaded table; `table` is Iceberg's object."""

    def __init__(self, scala: IcebergScala, table: Any, location: str, heads: HeadCache | None = None) -> None:
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
        """Return the metadata as they were last read, but of their `records` the path alone.

        A snapshot is decoded once, as long as the metadata before are kept.
        """
        identity, known = self._heads.get(self.location)
        text = self.with_classes(lambda: str(self._scala.iceberg_head.since(self._table, identity)))
        if text == "" and known is not None:
            return known
        if not text:
            return self.whole_head()
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
        expression = self._any_of(head, partitions)
        tasks = self.with_classes(lambda: self._scala.iceberg_scan.planned(self._table, snapshot, expression, floats))
        tasks = self._planned(snapshot, expression) if tasks is None else tasks
        tags = _TagLookup(head)
        found: dict[str, LiveInput] = {}
        rows = self.with_classes(lambda: orjson.loads(self._scala.iceberg_scan.rows(tasks)))
        for one in self._asked(tasks, head) if rows is None else self._described(tasks, rows, head):
            if (paths is None or one.path in paths) and (partitions is None or one.key in partitions):
                if one.path in found:
                    raise Corrupt(f"{self.location}: {one.path} is live twice, and its rows would be written once")
                # What reads all files of a partition or of the table needs no tasks.
                found[one.path] = self._live_input(one, tasks, head, tags, has_task=paths is not None)
        return found

    def _planned(self, snapshot: int, expression: Any) -> Any:
        """Return the tasks of a scan, without metrics: in a JVM that could not make our classes, which alone copy."""
        scan = self._table.newScan().useSnapshot(snapshot).ignoreResiduals()
        planned = (scan if expression is None else scan.filter(expression)).planFiles()
        try:
            # A CloseableIterable cannot be iterated by py4j.
            return self._scala.resolve(f"{_ICEBERG}.relocated.com.google.common.collect.Lists").newArrayList(planned)
        finally:
            planned.close()

    def _described(self, tasks: Any, rows: list[list[Any]], head: TableHead) -> Iterator["_Found"]:
        """Return what is known of the files of a scan (see `IcebergScan.rows`); each partition is asked for once."""
        keys: dict[int, PartitionKey] = {}
        for number, (path, size, count, spec, sequence, deletes, first, values, *entry) in enumerate(rows):
            if first not in keys:
                of_spec = head.specs[spec]
                is_plain = values is not None
                keys[first] = of_spec.key(values) if is_plain else self._key(of_spec, tasks.get(first).file())
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
            is_ours = tags.is_of_ours(found.sequence)
            deletes = tuple(
                self._applied(one, found, head, is_ours=is_ours) for one in tasks.get(found.number).deletes()
            )
        of_file, added_ms = tags.of(found.sequence, found.path)
        # What cannot name a row of this file takes part in its rewrite, and is no reason for one.
        named = [one for one in deletes if one.may_name_rows]
        file = DataFile(
            found.path,
            found.size,
            found.key,
            dv_id=delete_digest(named),
            rows=found.rows,
            deleted_rows=deleted_rows_to_plan_with(named, found.rows),
            modified_ms=added_ms,
            tags=of_file,
        )
        scanned = ScannedTask(tasks, found.number) if has_task else None
        return LiveInput(found.path, found.size, found.rows, found.spec, deletes, file, found.entry, scanned)

    def _key(self, spec: Spec, file: Any) -> PartitionKey:
        values = file.partition()
        any_class = self._scala.resolve("java.lang.Class").forName("java.lang.Object")
        return spec.key([_value(values.get(index, any_class)) for index in range(len(spec.fields))])

    def _applied(self, delete: Any, file: "_Found", head: TableHead, *, is_ours: bool) -> AppliedDelete:
        kind = DeleteKind.POSITION
        if str(delete.content()) == "EQUALITY_DELETES":
            kind = DeleteKind.EQUALITY
        elif str(delete.format()) == "PUFFIN":
            kind = DeleteKind.VECTOR
        is_vector = kind is DeleteKind.VECTOR
        # By its field, or, in files of older writers, by equal bounds of the paths in it; None for deletes by value.
        only = self._scala.resolve(f"{_ICEBERG}.util.ContentFileUtil").referencedDataFileLocation(delete)
        is_of_one_file = only is not None and str(only) == file.path
        is_later = kind is not DeleteKind.EQUALITY and not can_name_rows(delete.dataSequenceNumber(), file.sequence)
        return AppliedDelete(
            f"{delete.location()}#{delete.contentOffset()}" if is_vector else str(delete.location()),
            kind,
            int(delete.recordCount()),
            # A file of positions may name a row twice.
            is_exact=is_vector and is_of_one_file,
            is_of_one_file=is_of_one_file,
            partition=self._key(head.specs[delete.specId()], delete),
            may_name_rows=not is_later,
            is_of_earlier=is_later and is_ours,
            key_ids=tuple(delete.equalityFieldIds() or ()) if kind is DeleteKind.EQUALITY else (),
            is_parquet=str(delete.format()) == "PARQUET",
            offset=int(delete.contentOffset()) if is_vector else 0,
            size_bytes=int(delete.contentSizeInBytes() if is_vector else delete.fileSizeInBytes()),
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
            if field.type == "date" and text is not None and _DATE.fullmatch(text) is None:
                continue  # Beyond the years that have such a text.
            literal = int(text) if field.type in ("int", "long") and text is not None else text
            one = expressions.isNull(source) if text is None else expressions.equal(source, literal)
            found = one if found is None else getattr(expressions, "and")(found, one)
        return found

    def columns(self, properties: Mapping[str, str]) -> TableColumns:
        """Return the columns of the newest schema, with the name mapping that these properties of the table hold."""
        parser = self._scala.resolve(f"{_ICEBERG}.SchemaParser")
        return table_columns(json.loads(parser.toJson(self._table.schema())), properties)

    def stage(self, name: str, group: InputGroup, *, is_checked: bool = True) -> None:
        """Make the group's scan tasks readable and its outputs collectable under a name.

        Not `is_checked`: columns are read and written as if the schema let them be null.
        """
        table = (
            self._table if is_checked else self._scala.resolve("io.lakewright.iceberg.UncheckedTable").of(self._table)
        )
        self._static("SparkTableCache").add(name, table)
        tasks = self._of_inputs("tasks", group.inputs)
        if tasks is None:
            tasks = self._scala.java_list(one.task for one in group.inputs)
        self._manager().stageTasks(self._table, name, tasks)

    def files(self, inputs: Sequence[LiveInput]) -> Any:
        """Return Iceberg's objects of these files as a list of Java's."""
        found = self._of_inputs("files", inputs)
        return self._scala.java_list(one.task.file() for one in inputs) if found is None else found

    def lineage(self, inputs: Sequence[LiveInput]) -> list[tuple[int | None, int | None]]:
        """Return of each file the id of its first row, and the sequence number that its rows inherit."""
        found = self._of_inputs("lineage", inputs)
        if found is None:
            files = [one.task.file() for one in inputs]
            return [(file.firstRowId(), file.dataSequenceNumber()) for file in files]
        return [(first, sequence) for first, sequence in json.loads(self._scala.to_json(found))]

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
        by their place, or an input was removed. Raises NotAsked where it failed before the catalog was asked.
        """
        watch = self.with_classes(lambda: self._scala.watched_commit(self._table))
        rewrite = self._table.newRewrite() if watch is None else watch.newRewrite(self._table)
        is_built = False
        try:
            self._build(rewrite, change, since, summary)
            is_built = True
            rewrite.commit()
        except Exception as error:
            if not is_built or (watch is not None and not watch.isAsked()):
                raise NotAsked(f"{self.location}: the catalog was not asked for the commit") from error
            raise

    def _build(self, rewrite: Any, change: Replacement, since: int, summary: Mapping[str, str]) -> None:
        rewrite.validateFromSnapshot(change.checked_until or since)
        rewrite.dataSequenceNumber(self._table.snapshot(since).sequenceNumber())
        for group in change.groups:
            if self._of_inputs("remove", group.live.inputs, rewrite) is None:
                for file in group.live.inputs:
                    rewrite.deleteFile(file.task.file())
            for output in group.outputs:
                rewrite.addFile(output.raw)
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

    def names_rows(self, deletes: Mapping[str, Sequence[AppliedDelete]]) -> bool:
        """Return whether a delete file names a row of the data file that it is listed for; reads them.

        In a JVM without our classes, they are taken for such.
        """
        return any(self._names_rows(path, found) for path, found in deletes.items())

    def _names_rows(self, path: str, deletes: Sequence[AppliedDelete]) -> bool:
        files = self._scala.java_list(one.raw for one in deletes)
        answer = self.with_classes(lambda: bool(self._scala.iceberg_scan.namesRows(self._table, files, path)))
        return answer is not False

    def sizes(self, paths: Iterable[str]) -> dict[str, int | None]:
        """Return the size in bytes that the store says each of these files has now, None for one that is not there."""
        io = self._table.io()
        files = {path: io.newInputFile(path) for path in paths}  # Without a length, which it would return as it is.
        return {path: int(file.getLength()) if file.exists() else None for path, file in files.items()}

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

    def is_of_ours(self, sequence: int | None) -> bool:
        """Return whether a rewrite of ours added the files of this number; False where that is not known."""
        by = self._snapshots.get(sequence or 0)
        return by is not None and by.operation == "replace" and COMMIT_KEY in by.summary

    def of(self, sequence: int | None, path: str) -> tuple[Mapping[str, str], int]:
        """Return a file's tags, and when it was added in ms since 1970 (0: not known)."""
        by = self._snapshots.get(sequence or 0)
        if by is None:
            return {}, 0
        if by.id not in self._decoded:
            self._decoded[by.id] = decode_tags(by.summary.get(TAGS_KEY))
        return file_tags(self._decoded[by.id], path), by.timestamp_ms


def _value(value: Any) -> Any:
    """Return a partition value as Python's; of Java's objects only byte buffers and UUIDs arrive as such.

    py4j gives its objects every attribute, so that only the class distinguishes them.
    """
    if not isinstance(value, JavaObject):
        return value
    is_text = str(value.getClass().getName()) == "java.util.UUID"
    return str(value.toString()) if is_text else bytes(value.array())
