"""Moves the rows of operations on cells by tasks without Spark's SQL (`row_tasks`).

They go by the clustering columns as files store them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.cell_columns import CellColumn, Stored, read_statistics
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footers import Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.row_tasks import RowTasks, find_row_tasks, stats_of
from shared.layout.cells.boxes import Point
from shared.layout.cells.routes import CellOutput, Fork, Route


@dataclass(frozen=True, slots=True)
class CellScatter:
    """The tasks of one run."""

    rows: RowTasks
    stored: tuple[Stored, ...]

    def points(self, files: Sequence[LoggedFile], every: int) -> list[Point]:
        """Return each so many-th row of files as a point; raises LeftToSpark."""
        found = self.rows.read(files, self.rows.scala.row_sample(every))
        return [tuple(one.number(value) for one, value in zip(self.stored, row, strict=True)) for row in found]

    def write(self, live: LiveGroup, route: Route, outputs: Sequence[CellOutput], first: int) -> list[LoggedFile]:
        """Write the rows of the group's files, each to the output at the end of its route (see `RowTasks.write`)."""
        cuts: list[Any] = []
        self._add(cuts, route, {id(output): at for at, output in enumerate(outputs)})
        return self.rows.write(live, self.rows.scala.cut_tree.of(json.dumps(cuts)), first, len(outputs))

    def _add(self, cuts: list[Any], route: Route, numbers: Mapping[int, int]) -> int:
        """Add the cuts of a route, and return its way: the number of its first cut, or -1 less its output's."""
        if not isinstance(route, Fork):
            return -1 - numbers[id(route)]
        bound = self.stored[route.cut.column].bound(route.cut.at)
        if bound is None:
            return self._add(cuts, route.left, numbers)
        at = len(cuts)
        cuts.append(None)
        ways = [self._add(cuts, side, numbers) for side in (route.left, route.right)]
        cuts[at] = [route.cut.column, bound, *ways]
        return at


def find_scatter(
    scala: DeltaScala, tasks: ParquetTasks, columns: tuple[CellColumn, ...], live: LiveGroup, stored: Storage
) -> CellScatter | None:
    """Return the tasks of a run on these files, which are stored like this; None if Spark has to write it."""
    known = tuple(found for column in columns if (found := column.stored(stored.schemas)) is not None)
    if len(known) < len(columns) or not all(_is_bounded(one, columns) for one in live.inputs):
        return None
    rows = find_row_tasks(scala, tasks, [column.path for column in columns], live, stored)
    return None if rows is None else CellScatter(rows, known)


def of_files(live: LiveGroup, files: Sequence[LoggedFile]) -> LiveGroup:
    """Return a group of other files."""
    group = replace(live.group, files=tuple(logged.file for logged in files))
    return replace(live, group=group, inputs=tuple(files))


def _is_bounded(logged: LoggedFile, columns: Sequence[CellColumn]) -> bool:
    """Return whether the log has bounds of a file's keys, which an output's have to show its cell by."""
    statistics = read_statistics(stats_of(logged))
    return all(one.is_bounded(statistics) for one in columns)
