"""Writes the rows of one run into cells: each operation reads its own files, by a task without Spark's SQL.

Where such tasks are not exact, Spark reads all operations, and writes them at once: a nested choice by the few cuts
below an operation's node gives each row the number of its output. Before the commit, each output has to lie in the cell
that it names, by its own statistics.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.cell_columns import box_of, read_statistics
from actor.formats.delta.cell_plan import PROVIDER, CellPlan
from actor.formats.delta.cell_scatter import CellScatter, find_scatter, of_files
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footers import Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.output_paths import part_of
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.row_tasks import LeftToSpark
from actor.formats.delta.write import EncodingWriter
from actor.formats.delta.written_group import WrittenGroup
from actor.formats.parquet.copy_rules import EncodeReason
from shared.errors import Corrupt, RefusedFiles
from shared.layout.cells.boxes import Point, holds
from shared.layout.cells.operations import BoxedFile, CellOperation, CellWork
from shared.layout.cells.routes import CellOutput, Route, find_route, outputs_of
from shared.layout.cells.tags import CELL_TAG, encode_cell
from shared.refusals import RefusalReason

SAMPLE_ROWS = 10_000
"""Rows of an operation that are read, about, to find out where all of them go."""

BYTES_OF_A_ROW = 8
"""Size of a row, at least, in files whose rows the log does not count."""

_OUTPUT, _ROW = "__lakewright_output", "__lakewright_row"
"""Columns that exist only while rows are placed."""


class CellWriter(EncodingWriter):
    """Writes the operations of one run as one group."""

    def __init__(
        self,
        scala: DeltaScala,
        snapshot: Any,
        tasks: ParquetTasks,
        proofs: Proofs,
        plan: CellPlan,
        operations: Sequence[CellOperation],
    ) -> None:
        super().__init__(scala, snapshot, tasks, proofs)
        self._tasks = tasks
        self._functions = scala.resolve("org.apache.spark.sql.functions")
        self._plan = plan
        self._operations = operations
        self._logged = {boxed.file.key: logged for logged, boxed in plan.files.items()}
        self._outputs: list[CellOutput] = []

    def write(self, live: LiveGroup) -> WrittenGroup:
        """Write the group's rows; raises RefusedFiles where an output has no bounds."""
        return self._encode(live, {}, EncodeReason.ROW_ORDER)

    def _write(
        self, live: LiveGroup, partition_values: dict[str, str | None], stored: Storage
    ) -> tuple[LoggedFile, ...]:
        scatter = find_scatter(self._scala, self._tasks, self._plan.columns, live, stored)
        scattered = None if scatter is None else self._scattered(live, scatter)
        return super()._write(live, partition_values, stored) if scattered is None else scattered

    def _scattered(self, live: LiveGroup, scatter: CellScatter) -> tuple[LoggedFile, ...] | None:
        """Return the files of all operations, None, having deleted them, if Spark has to write one of these."""
        self._outputs = []
        written: list[LoggedFile] = []
        try:
            for operation in self._operations:
                first = len(self._outputs)
                route = self._route(operation, lambda files: scatter.points(files, _every(files)))
                group = of_files(live, self._files_of(operation.files))
                written += scatter.write(group, route, self._outputs[first:], first)
        except LeftToSpark:
            self._log.delete(output.key for output in written)
            return None
        return tuple(written)

    def _frame(self, live: LiveGroup, stored: Storage) -> Any:  # noqa: ARG002 - the operations have the same files
        """Return the rows of all operations, with a part for each output."""
        self._outputs = []
        frames = [self._placed(operation, stored) for operation in self._operations]
        number = self._functions.col(_OUTPUT)
        parted = reduce(lambda one, other: one.union(other), frames).repartitionById(len(self._outputs), number)
        return parted.drop(_OUTPUT)

    def _placed(self, operation: CellOperation, stored: Storage) -> Any:
        """Return the rows of one operation with the numbers of their outputs."""
        first = len(self._outputs)
        route = self._route(operation, lambda files: self._points(files, stored))
        numbers = {id(output): number for number, output in enumerate(self._outputs[first:], first)}
        rows = self._rows_of(self._files_of(operation.files), stored)
        return rows.withColumn(_OUTPUT, self._functions.expr(self._choice(route, numbers)))

    def _route(self, operation: CellOperation, points_of: Callable[[Sequence[LoggedFile]], list[Point]]) -> Route:
        """Return the route of an operation, whose outputs become the last of all."""
        is_moved = operation.work in (CellWork.DOWN, CellWork.SPLIT)
        points = points_of(self._files_of(operation.known)) if is_moved else []
        route = find_route(operation, points, tuple(self._plan.files.values()), self._plan.sizes)
        self._outputs += outputs_of(route)
        return route

    def _files_of(self, files: Sequence[BoxedFile]) -> list[LoggedFile]:
        return [self._logged[one.file.key] for one in files]

    def _choice(self, route: Route, numbers: Mapping[int, int]) -> str:
        """Return the number of a row's output as SQL."""
        if isinstance(route, CellOutput):
            return str(numbers[id(route)])
        below = self._plan.columns[route.cut.column].below(route.cut.at)
        return f"IF({below}, {self._choice(route.left, numbers)}, {self._choice(route.right, numbers)})"

    def _points(self, files: Sequence[LoggedFile], stored: Storage) -> list[Point]:
        """Return rows of files as points: evenly chosen ones where there are many."""
        values = [f"{column.text} AS c{at}" for at, column in enumerate(self._plan.columns)]
        frame = self._rows_of(files, stored)
        read = frame.selectExpr(self._scala.seq([*values, f"monotonically_increasing_id() AS {_ROW}"]))
        some = read.filter(f"pmod({_ROW}, {_every(files)}) = 0").drop(_ROW)
        return [self._point(json.loads(row)) for row in some.toJSON().collectAsList()]

    def _point(self, row: Mapping[str, str]) -> Point:
        return tuple(column.number(row.get(f"c{at}")) for at, column in enumerate(self._plan.columns))

    def _finished(self, live: LiveGroup, outputs: Sequence[LoggedFile]) -> tuple[LoggedFile, ...]:
        """Return the outputs with the tags of their cells, in which they are."""
        return tuple(self._tagged(live, output) for output in outputs)

    def _tagged(self, live: LiveGroup, output: LoggedFile) -> LoggedFile:
        number = part_of(output.file.path)
        if number is None or number >= len(self._outputs):
            raise Corrupt(f"{output.file.path} of {self._log.location} is the output of no operation")
        cell = self._outputs[number].cell
        add = json.loads(output.json)
        self._require_bounds(live, add.get("stats"))
        tag = encode_cell(cell, [column.path for column in self._plan.columns])
        add |= {"clusteringProvider": PROVIDER, "tags": {**(add.get("tags") or {}), CELL_TAG: tag}}
        tagged = LoggedFile(decode_add(add, ()), encode(add))
        box = box_of(self._plan.columns, tagged)
        if cell is not None and not holds(cell, box):
            raise Corrupt(
                f"the rewrite of {len(live.inputs)} files of {self._log.location} was stopped before its commit: an "
                f"output lies outside of its cell, {box} in {cell}. The table is unchanged"
            )
        return tagged

    def _require_bounds(self, live: LiveGroup, text: str | None) -> None:
        """Raise RefusedFiles for values without bounds in the log: their file would move again and again."""
        statistics = read_statistics(text)
        unknown = next((column for column in self._plan.columns if not column.is_bounded(statistics)), None)
        if unknown is not None:
            named = ".".join(unknown.name)
            raise RefusedFiles(
                f"files of {self._log.location} are not put into cells: of their values of {named!r} the log would "
                "hold no bounds, so they would have no place there",
                reason=RefusalReason.BOUNDS,
                field=named,
                files=tuple(logged.file.path for logged in live.inputs),
            )


def _every(files: Sequence[LoggedFile]) -> int:
    """Return of how many rows of files one is read."""
    rows = (one.file.size_bytes // BYTES_OF_A_ROW if one.file.rows is None else one.file.rows for one in files)
    return max(1, sum(rows) // SAMPLE_ROWS)
