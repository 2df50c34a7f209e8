"""Moves the rows of operations on cells by tasks without Spark's SQL (`row_tasks`).

They go by the clustering columns as files store them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from actor.cells.columns import CellColumn, Stored, stored_points
from actor.cells.outputs import cuts_of
from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.cell_bounds import is_bounded, read_statistics, stored_in
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footers import Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.row_tasks import RowTasks, find_row_tasks, stats_of
from shared.layout.cells.boxes import Point
from shared.layout.cells.routes import Route, outputs_of


@dataclass(frozen=True, slots=True)
class CellScatter:
    """The tasks of one run."""

    rows: RowTasks
    stored: tuple[Stored, ...]

    def points(self, files: Sequence[LoggedFile], every: int) -> list[Point]:
        """Return about each so many-th row of files as a point; raises LeftToSpark."""
        return stored_points(self.stored, self.rows.read(files, self.rows.scala.row_sample(every)))

    def write(self, live: LiveGroup, route: Route, first: int) -> list[LoggedFile]:
        """Write the rows of the group's files, each to the output at the end of its route (see `RowTasks.write`)."""
        cuts = self.rows.scala.cut_tree.of(json.dumps(cuts_of(route, self.stored)))
        return self.rows.write(live, cuts, first, len(outputs_of(route)))


def find_scatter(
    scala: DeltaScala, tasks: ParquetTasks, columns: tuple[CellColumn, ...], live: LiveGroup, stored: Storage
) -> CellScatter | None:
    """Return the tasks of a run on these files, which are stored like this; None if Spark has to write it."""
    known = tuple(found for column in columns if (found := stored_in(stored.schemas, column)) is not None)
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
    return all(is_bounded(statistics, one) for one in columns)
