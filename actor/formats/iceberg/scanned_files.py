"""The files that a scan of an Iceberg table found, as inputs of a rewrite: sizes, rows, partitions, tags and deletes.

One call describes all files (`IcebergScan.java`), and one all deletes; only partition values that JSON does not have
take calls of their own.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from actor.formats.iceberg.copy_choice import ManifestEntry
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.inputs import (
    AppliedDelete,
    Listed,
    LiveInput,
    deleted_rows_to_plan_with,
)
from actor.formats.iceberg.listed_deletes import ListedDeletes, PartitionKeys
from shared.formats.iceberg.deletes import deletes_id
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import TAGS_KEY
from shared.formats.iceberg.tags import decode_tags, file_tags
from shared.table import DataFile, PartitionKey


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
    """The files of one scan of a table under these metadata; `tasks` is Java's list of Iceberg's scan tasks.

    listed: Java's list of their deletes, None where it is still to be made.
    """

    def __init__(self, scala: IcebergScala, head: TableHead, table: Any, tasks: Any, listed: Any = None) -> None:
        self._scala = scala
        self._table = table
        self._tasks = tasks
        self._keys = PartitionKeys(scala, head)
        self._tags = _TagLookup(head)
        self._listed = listed

    @cached_property
    def deletes(self) -> ListedDeletes:
        """The deletes that apply to the files."""
        return ListedDeletes(self._keys, self._listed or self._scala.iceberg_deletes.of(self._table, self._tasks))

    def each(self) -> Iterator[ScannedFile]:
        """Yield what is known of each file (see `IcebergScan.rows`); each partition is decoded once."""
        keys: dict[int, PartitionKey] = {}
        rows: list[list[Any]] = orjson.loads(self._scala.iceberg_scan.rows(self._tasks))
        for number, (path, size, count, spec, sequence, deletes, first, values, *entry) in enumerate(rows):
            if first not in keys:
                keys[first] = self._keys.of(spec, values, lambda task=first: self._tasks.get(task).file())
            yield ScannedFile(
                number, path, size, count, spec, sequence, bool(deletes), ManifestEntry(*entry), keys[first]
            )

    def live_input(self, found: ScannedFile) -> LiveInput:
        """Return a file with its deletes and tags; its task is known by its number."""
        deletes: tuple[AppliedDelete, ...] = ()
        if found.has_deletes:
            is_ours = self._tags.is_of_ours(found.sequence)
            deletes = self.deletes.of(found.number, found.path, found.sequence, is_ours=is_ours)
        of_file, added_ms = self._tags.of(found.sequence, found.path)
        places = [one for one in deletes if one.is_positional]
        # What cannot name a row of this file takes part in its rewrite, and is no reason for one.
        named = [one for one in places if one.may_name_rows]
        file = DataFile(
            found.path,
            found.size,
            found.key,
            dv_id=deletes_id([one.path for one in named], has_values=len(places) < len(deletes)),
            rows=found.rows,
            deleted_rows=deleted_rows_to_plan_with(named, found.rows),
            modified_ms=added_ms,
            tags=of_file,
        )
        scanned = Listed(self._tasks, found.number)
        return LiveInput(found.path, found.size, found.rows, found.spec, deletes, file, found.entry, scanned)


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
            return file_tags({}, path), 0
        if by.id not in self._decoded:
            self._decoded[by.id] = decode_tags(by.summary.get(TAGS_KEY))
        return file_tags(self._decoded[by.id], path), by.timestamp_ms
