"""One Iceberg table in the JVM: loading, planning, staging, committing and deleting, each as few calls as can be.

Every private or awkward name of Iceberg's Java classes is here, so that no other file guesses.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import structlog
from py4j.java_gateway import JavaMember

from actor.formats.iceberg.commit import StagedGroup
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput, delete_digest, exact_deleted_rows
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

    def __init__(self, scala: Scala, table: Any, location: str) -> None:
        self._scala = scala
        self._table = table
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
        """Return the metadata as they were last read, in one call."""
        parser = self._scala.resolve(f"{_ICEBERG}.TableMetadataParser")
        return decode_head(json.loads(parser.toJson(self._table.operations().current())), self.location)

    def inputs(
        self,
        head: TableHead,
        snapshot: int,
        *,
        partitions: Collection[PartitionKey],
        paths: Collection[str] | None = None,
    ) -> dict[str, LiveInput]:
        """Return the live files of some partitions in a snapshot by path: all (None), or those with these paths.

        Raises Corrupt for a path that is live twice, for a rewrite would remove both and write the rows of one.
        """
        scan = self._table.newScan().useSnapshot(snapshot).ignoreResiduals()
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
        for task in tasks:
            file = task.file()
            path = str(file.location())
            if paths is not None and path not in paths:
                continue
            spec = head.specs[file.specId()]
            key = self._key(spec, file)
            if key in partitions:
                if path in found:
                    raise Corrupt(f"{self.location}: {path} is live twice, and its rows would be written once")
                found[path] = _live_input(task, file, path, key, tags)
        return found

    def _key(self, spec: Spec, file: Any) -> PartitionKey:
        values = file.partition()
        any_class = self._scala.resolve("java.lang.Class").forName("java.lang.Object")
        return spec.key([_value(values.get(index, any_class)) for index in range(len(spec.fields))])

    def _any_of(self, head: TableHead, partitions: Collection[PartitionKey]) -> Any:
        """Return a filter that all files of the partitions pass, None where nothing can be pruned."""
        if len(partitions) > _MAX_FILTERED:
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
        tasks = self._scala.java_list(one.task for one in group.inputs)
        self._manager().stageTasks(self._table, name, tasks)

    def unstage(self, name: str) -> None:
        """Forget a name."""
        self._static("SparkTableCache").remove(name)
        self._manager().removeTasks(self._table, name)
        self._coordinator().clearRewrite(self._table, name)

    def outputs(self, name: str) -> list[Any]:
        """Return the files that were written under a name, as Iceberg's objects."""
        return list(self._coordinator().fetchNewFiles(self._table, name))

    def live(self, snapshot: int, groups: Iterable[FileGroup]) -> Mapping[str, LiveInput]:
        """Return which files of these groups are live in a snapshot."""
        found = tuple(groups)
        paths = {file.path for group in found for file in group.files}
        return self.inputs(self.head(), snapshot, partitions={group.partition for group in found}, paths=paths)

    def commit(self, groups: Sequence[StagedGroup], *, since: int, summary: Mapping[str, str]) -> None:
        """Replace the groups' inputs in one snapshot, which keeps the sequence number of the snapshot `since`."""
        rewritten = self._scala.resolve("java.util.HashSet")()
        info_class = getattr(self._scala.resolve(f"{_ICEBERG}.actions"), "ImmutableRewriteDataFiles$FileGroupInfo")
        for index, one in enumerate(groups):
            first = one.live.inputs[0]
            info = info_class.builder().globalIndex(index).partitionIndex(index)
            info = info.partition(first.task.file().partition()).build()
            bytes_in = sum(file.size_bytes for file in one.live.inputs)
            tasks = self._scala.java_list(file.task for file in one.live.inputs)
            group = self._scala.resolve(f"{_ICEBERG}.actions.RewriteFileGroup")(
                info, tasks, first.spec, _beyond(bytes_in), _beyond(bytes_in), 1
            )
            new = self._scala.resolve("java.util.HashSet")()
            for file in one.raw:
                new.add(file)
            group.setOutputFiles(new)
            rewritten.add(group)
        properties = self._scala.resolve("java.util.HashMap")()
        for name, value in summary.items():
            properties.put(name, value)
        keeps_sequence_number = True
        manager = self._scala.resolve(f"{_ICEBERG}.actions.RewriteDataFilesCommitManager")(
            self._table, since, keeps_sequence_number, properties
        )
        manager.commitFileGroups(rewritten)

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


def _live_input(task: Any, file: Any, path: str, key: PartitionKey, tags: _TagLookup) -> LiveInput:
    deletes = tuple(_applied(one, path) for one in task.deletes())
    size, rows = int(file.fileSizeInBytes()), int(file.recordCount())
    of_file, added_ms = tags.of(file.fileSequenceNumber(), path)
    known = DataFile(
        path,
        size,
        key,
        dv_id=delete_digest(deletes),
        rows=rows,
        deleted_rows=exact_deleted_rows(deletes),
        modified_ms=added_ms,
        tags=of_file,
    )
    return LiveInput(path, size, rows, int(file.specId()), deletes, known, task)


def _applied(delete: Any, path: str) -> AppliedDelete:
    if str(delete.content()) == "EQUALITY_DELETES":
        return AppliedDelete(str(delete.location()), DeleteKind.EQUALITY, int(delete.recordCount()), is_exact=False)
    is_vector = str(delete.format()) == "PUFFIN"
    return AppliedDelete(
        f"{delete.location()}#{delete.contentOffset()}" if is_vector else str(delete.location()),
        DeleteKind.VECTOR if is_vector else DeleteKind.POSITION,
        int(delete.recordCount()),
        # A file of positions may name a row twice.
        is_exact=is_vector and str(delete.referencedDataFile()) == path,
    )


def _value(value: Any) -> Any:
    """Return a partition value as Python's; of Java's objects only byte buffers and UUIDs arrive as such."""
    if hasattr(value, "array"):
        return bytes(value.array())
    return str(value.toString()) if hasattr(value, "toString") else value


def _beyond(bytes_in: int) -> int:
    """Return a size that no output of so many bytes reaches, so that it is never split."""
    return bytes_in * 4 + 1
