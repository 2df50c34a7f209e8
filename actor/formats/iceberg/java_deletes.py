"""The delete files of one Iceberg table in the JVM: read from a snapshot, and merged."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from actor.formats.iceberg.delete_groups import LiveDeletes
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.java_table import MOST_TEXT, JavaTable, new_deletes
from actor.formats.iceberg.scanned_files import ScannedFiles
from actor.formats.iceberg.staged import NewDeletes
from actor.formats.iceberg.value_groups import LiveValues
from shared.errors import Corrupt
from shared.formats.iceberg.delete_merges import FIRST_WITH_VECTORS, MOST_ROWS
from shared.formats.iceberg.metadata import TableHead

MOST_PAIRS = 4_000_000
"""Pairs of a data file and a delete file by position that applies to it: 2,000 of each, and 100 bytes for a pair."""

MOST_OLDER = 200_000
"""Data files that deletes by value apply to, and pairs of these and deletes by position: some KiB for each file."""


class JavaDeletes:
    """`TableDeletes` of a loaded table."""

    def __init__(self, scala: IcebergScala, table: JavaTable) -> None:
        self._scala = scala
        self._table = table

    def look(self, head: TableHead) -> LiveDeletes | None:
        """Return the deletes of the newest snapshot of these metadata, which has one; None: they are too many to hold.

        Raises Corrupt for a data file or a delete file that is live twice, for what hides its rows is not clear.
        """
        raw, snapshot = self._table.raw, head.current or 0
        listed = self._scala.iceberg_deletes.live(raw, snapshot, MOST_PAIRS)
        if listed is None:
            return None
        scanned = ScannedFiles(self._scala, head, raw, listed.tasks(), listed)
        self._require_once(scanned, head)
        inputs = tuple(scanned.live_input(one) for one in scanned.each())
        return LiveDeletes(snapshot, inputs, tuple(scanned.deletes.all()), scanned.deletes.unapplied())

    def by_value(self, head: TableHead) -> LiveValues | None:
        """Return the deletes by value of the newest snapshot, with their data files; None: they are too many to hold.

        Raises Corrupt for a data file or a delete file that is live twice, for what hides its rows is not clear.
        """
        raw, snapshot = self._table.raw, head.current or 0
        has_vectors = head.protocol.min_writer >= FIRST_WITH_VECTORS
        listed = self._scala.iceberg_deletes.byValue(raw, snapshot, has_vectors, MOST_OLDER)
        if listed is None:
            return None
        scanned = ScannedFiles(self._scala, head, raw, listed.tasks(), listed)
        self._require_once(scanned, head)
        inputs = tuple(scanned.live_input(one) for one in scanned.each())
        lineage = self._table.lineage(inputs) if inputs else []
        numbers = {one.path: number or 0 for one, (_, number) in zip(inputs, lineage, strict=True)}
        values = scanned.deletes.by_value()
        return LiveValues(snapshot, inputs, numbers, values, head.unpartitioned, partial(_uncovered, listed))

    def _require_once(self, scanned: ScannedFiles, head: TableHead) -> None:
        if scanned.deletes.twice:
            raise Corrupt(f"{head.location}: {scanned.deletes.twice[0]} is live twice")

    def is_of_one_file(self, delete: AppliedDelete, path: str) -> bool:
        """Return whether a file of positions names rows of this data file alone, as its rows say."""
        rows = self._scala.resolve("io.lakewright.iceberg.IcebergRows")
        return bool(rows.isOfOneFile(self._table.raw, delete.raw, path, MOST_ROWS))

    def merged(
        self, inputs: Sequence[LiveInput], deletes: Sequence[Sequence[AppliedDelete]]
    ) -> list[NewDeletes | None]:
        """Write the rows that delete files of one look name in each data file; None: they name none of its rows."""
        has_vectors = self._table.head().protocol.min_writer >= FIRST_WITH_VECTORS
        listed = [[one.listed for one in some if one.listed is not None] for some in deletes]
        numbers = json.dumps([[one.number for one in some] for some in listed])
        rows = self._scala.resolve("io.lakewright.iceberg.IcebergRows")(self._table.raw, MOST_ROWS)
        written = rows.merged(self._table.files(inputs), listed[0][0].objects, numbers, has_vectors)
        return [None if one is None else _merged(one) for one in self._scala.items(written)]

    def converted(self, inputs: Sequence[LiveInput], deletes: Sequence[AppliedDelete]) -> list[NewDeletes | None]:
        """Write the rows that delete files of one look and place hide in each data file; None: they hide none there."""
        has_vectors = self._table.head().protocol.min_writer >= FIRST_WITH_VECTORS
        listed = [one.listed for one in deletes if one.listed is not None]
        numbers = json.dumps([one.number for one in listed])
        rows = self._scala.resolve("io.lakewright.iceberg.IcebergRows")(self._table.raw, MOST_ROWS)
        written = rows.converted(self._table.tasks(inputs), listed[0].objects, numbers, has_vectors, MOST_TEXT)
        return [None if one is None else _merged(one) for one in self._scala.items(written)]


def _uncovered(listed: Any, group: InputGroup) -> str | None:
    """Return a data file for which a scan found a delete by value of a group that the group lacks for it."""
    tasks = [one.scanned.number for one in group.inputs if one.scanned is not None]
    values = [[one.listed for one in file.deletes if not one.is_positional] for file in group.inputs]
    found = listed.uncovered(json.dumps(tasks), json.dumps([[one.number for one in some if one] for some in values]))
    return None if found is None else str(found)


def _merged(raw: Any) -> NewDeletes:
    offset = raw.contentOffset()
    vector = None if offset is None else (int(offset), int(raw.contentSizeInBytes()))
    return replace(new_deletes(raw, None), rows=int(raw.recordCount()), vector=vector)
