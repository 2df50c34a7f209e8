"""Bounds of the clustering columns of an Iceberg table by its manifests, in calls of our Java class."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from actor.formats.iceberg.cell_bounds import Bounds
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.inputs import LiveInput
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.scanned_files import ScannedFiles
from shared.errors import Corrupt
from shared.formats.iceberg.metadata import TableHead


class JavaCells:
    """Bounds of columns, which are named by their field ids, in files of one table."""

    def __init__(self, scala: IcebergScala, table: JavaTable) -> None:
        self._scala = scala
        self._table = table

    def modes(self, columns: Sequence[int]) -> Sequence[str]:
        """Return how much of the values of columns the table's writers keep as bounds, in Iceberg's words."""
        found: list[str] = json.loads(self._scala.iceberg_cells.modes(self._table.raw, json.dumps(columns)))
        return found

    def location(self, name: str) -> str:
        """Return where the table would have a file of this name."""
        found: str = self._scala.iceberg_cells.location(self._table.raw, name)
        return found

    def live(self, head: TableHead, snapshot: int, columns: Sequence[int]) -> dict[LiveInput, Bounds]:
        """Return the live files of a snapshot with their bounds; raises Corrupt for a path that is live twice."""
        cells, raw, ids = self._scala.iceberg_cells, self._table.raw, json.dumps(columns)
        tasks = cells.planned(raw, snapshot, ids)
        scanned = ScannedFiles(self._scala, head, raw, tasks)
        files = [scanned.live_input(one) for one in scanned.each()]
        if len({one.path for one in files}) < len(files):
            raise Corrupt(f"{self._table.location}: a file is live twice, and its rows would be written once")
        return dict(zip(files, json.loads(cells.boundsOf(raw, tasks, ids)), strict=True))

    def bounds(self, files: Iterable[Any], columns: Sequence[int]) -> Sequence[Bounds]:
        """Return the bounds of files, which are Iceberg's objects."""
        listed = self._scala.java_list(files)
        found: list[Bounds] = json.loads(self._scala.iceberg_cells.bounds(self._table.raw, listed, json.dumps(columns)))
        return found
