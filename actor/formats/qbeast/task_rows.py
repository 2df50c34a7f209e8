"""Rows of index files as tasks without Spark's SQL read, place and move them (`actor.formats.delta.row_tasks`).

Of a few thousand rows, planning a query costs far more than reading them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footers import Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.row_tasks import RowTasks, find_row_tasks
from actor.formats.delta.write import logical_rows
from actor.formats.qbeast.index_rows import FoundRange, Places, name_of
from actor.formats.qbeast.stored_keys import stored_keys
from shared.formats.qbeast.files import Block
from shared.formats.qbeast.placement import RowCount, Rows
from shared.formats.qbeast.transformations import Coordinate, encode_coordinates
from shared.policy.policy import MIB

MOST_BYTES = 64 * MIB
"""Bytes of files that one task reads and writes, at most: outputs of more have several row groups.

Spark puts the rows of these into the order of cubes, so that a query skips some, and its tasks share the work.
"""

MOST_ROWS = 5_000_000
"""Rows of files that one task reads, at most: it remembers the output of each, four bytes a row."""


@dataclass(frozen=True, slots=True)
class TaskRows:
    """The rows of files whose indexed columns are stored plainly, of which the log has the number of rows."""

    tasks: RowTasks
    types: str
    coordinates: tuple[Coordinate, ...]
    files: tuple[LoggedFile, ...]

    @property
    def rules(self) -> tuple[str, str]:
        """By what they are read and placed: the types of their keys, and the rules of the revision."""
        return self.types, encode_coordinates(self.coordinates)

    def total(self) -> int:
        """Count them."""
        return logical_rows(self.files) or 0

    def counted(self, places: Places) -> Rows:
        """Count them by their places; raises LeftToSpark."""
        names = json.dumps([name_of(one) for one in self.files])
        fold = self._jvm.CubeCount(self.types, names, *places.functions(self.tasks.scala, self.coordinates))
        found = self.tasks.read(self.files, fold)
        return {(name, block, cube): RowCount(rows, least) for name, block, cube, rows, least in found}

    def ranges(self) -> Mapping[str, Sequence[FoundRange]]:
        """Return the range of each column by the name of a file, one without rows has none; raises LeftToSpark."""
        if not self.coordinates:
            return {name_of(one): [] for one in self.files if logical_rows([one])}
        found = self.tasks.read(self.files, self._jvm.ValueRanges(self.types, len(self.files)))
        return {name_of(one): ranges for one, ranges in zip(self.files, found, strict=True) if ranges is not None}

    def write(self, live: LiveGroup, places: Places, planned: Sequence[Sequence[Block]]) -> list[LoggedFile]:
        """Write the rows of a group of these files, each into the file of its cube's block; raises LeftToSpark."""
        numbers = {block.cube: number for number, blocks in enumerate(planned) for block in blocks}
        _, cubes = places.functions(self.tasks.scala, self.coordinates)
        return self.tasks.write(live, self._jvm.CubeRoute(self.types, cubes, json.dumps(numbers)), 0, len(planned))

    @property
    def _jvm(self) -> Any:
        return self.tasks.scala.qbeast


def find_task_rows(
    scala: DeltaScala, tasks: ParquetTasks, coordinates: Sequence[Coordinate], live: LiveGroup, stored: Storage
) -> TaskRows | None:
    """Return the rows of a group's files, which are stored like this; None if Spark has to read or write them."""
    counts = [logged.file.rows for logged in live.inputs]
    if live.group.bytes > MOST_BYTES or None in counts or sum(filter(None, counts)) > MOST_ROWS:
        return None
    keys = stored_keys(coordinates, tasks.paths.shape.stored.fields, stored.schemas)
    found = None if keys is None else find_row_tasks(scala, tasks, [key.path for key in keys], live, stored)
    if keys is None or found is None:
        return None
    return TaskRows(found, json.dumps([key.type for key in keys]), tuple(coordinates), live.inputs)
