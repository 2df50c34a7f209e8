"""The files that a scan of an Iceberg table found, as inputs of a rewrite: sizes, rows, partitions, tags and deletes.

One call describes all files (`IcebergScan.java`); only deletes, and partition values that JSON does not have, take
calls of their own.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson
from py4j.java_gateway import JavaObject

from actor.formats.iceberg.copy_choice import ManifestEntry
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.inputs import (
    AppliedDelete,
    LiveInput,
    ScannedTask,
    delete_digest,
    deleted_rows_to_plan_with,
)
from shared.formats.iceberg.deletes import can_name_rows
from shared.formats.iceberg.manifests import vector_name
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import TAGS_KEY
from shared.formats.iceberg.partitions import Spec
from shared.formats.iceberg.tags import decode_tags, file_tags
from shared.table import DataFile, DeleteKind, PartitionKey


class ScannedFile(NamedTuple):
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


class ScannedFiles:
    """The files of one scan under these metadata; `tasks` is Java's list of Iceberg's scan tasks."""

    def __init__(self, scala: IcebergScala, head: TableHead, tasks: Any) -> None:
        self._scala = scala
        self._head = head
        self._tasks = tasks
        self._tags = _TagLookup(head)

    def each(self) -> Iterator[ScannedFile]:
        """Yield what is known of each file (see `IcebergScan.rows`); each partition is decoded once."""
        keys: dict[int, PartitionKey] = {}
        rows: list[list[Any]] = orjson.loads(self._scala.iceberg_scan.rows(self._tasks))
        for number, (path, size, count, spec, sequence, deletes, first, values, *entry) in enumerate(rows):
            if first not in keys:
                of_spec = self._head.specs[spec]
                is_plain = values is not None
                keys[first] = of_spec.key(values) if is_plain else self._key(of_spec, self._tasks.get(first).file())
            yield ScannedFile(
                number, path, size, count, spec, sequence, bool(deletes), ManifestEntry(*entry), keys[first]
            )

    def live_input(self, found: ScannedFile, *, has_task: bool) -> LiveInput:
        """Return a file with its deletes and tags; its task is known by its number if it `has_task`."""
        deletes: tuple[AppliedDelete, ...] = ()
        if found.has_deletes:
            is_ours = self._tags.is_of_ours(found.sequence)
            listed = self._tasks.get(found.number).deletes()
            deletes = tuple(self._applied(one, found, is_ours=is_ours) for one in listed)
        of_file, added_ms = self._tags.of(found.sequence, found.path)
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
        scanned = ScannedTask(self._tasks, found.number) if has_task else None
        return LiveInput(found.path, found.size, found.rows, found.spec, deletes, file, found.entry, scanned)

    def _key(self, spec: Spec, file: Any) -> PartitionKey:
        values = file.partition()
        any_class = self._scala.resolve("java.lang.Class").forName("java.lang.Object")
        return spec.key([_value(values.get(index, any_class)) for index in range(len(spec.fields))])

    def _applied(self, delete: Any, file: ScannedFile, *, is_ours: bool) -> AppliedDelete:
        kind = DeleteKind.POSITION
        if str(delete.content()) == "EQUALITY_DELETES":
            kind = DeleteKind.EQUALITY
        elif str(delete.format()) == "PUFFIN":
            kind = DeleteKind.VECTOR
        is_vector = kind is DeleteKind.VECTOR
        # By its field, or, in files of older writers, by equal bounds of the paths in it; None for deletes by value.
        content_files = self._scala.resolve("org.apache.iceberg.util.ContentFileUtil")
        only = content_files.referencedDataFileLocation(delete)
        is_of_one_file = only is not None and str(only) == file.path
        is_later = kind is not DeleteKind.EQUALITY and not can_name_rows(delete.dataSequenceNumber(), file.sequence)
        return AppliedDelete(
            vector_name(str(delete.location()), delete.contentOffset()) if is_vector else str(delete.location()),
            kind,
            int(delete.recordCount()),
            # A file of positions may name a row twice.
            is_exact=is_vector and is_of_one_file,
            is_of_one_file=is_of_one_file,
            partition=self._key(self._head.specs[delete.specId()], delete),
            may_name_rows=not is_later,
            is_of_earlier=is_later and is_ours,
            key_ids=tuple(delete.equalityFieldIds() or ()) if kind is DeleteKind.EQUALITY else (),
            is_parquet=str(delete.format()) == "PARQUET",
            offset=int(delete.contentOffset()) if is_vector else 0,
            size_bytes=int(delete.contentSizeInBytes() if is_vector else delete.fileSizeInBytes()),
            raw=delete,
        )


class _TagLookup:
    """The tags of files by the snapshots that added them."""

    def __init__(self, head: TableHead) -> None:
        self._snapshots = {one.sequence_number: one for one in head.snapshots.values() if one.sequence_number}
        self._decoded: dict[int, Mapping[str, Mapping[str, str]]] = {}

    def is_of_ours(self, sequence: int | None) -> bool:
        """Return whether a rewrite of ours added the files of this number; False where that is not known."""
        by = self._snapshots.get(sequence or 0)
        return by is not None and by.is_of_ours

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
