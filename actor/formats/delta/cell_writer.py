"""Writes the rows of one run into cells: each operation reads its own files, by a task without Spark's SQL.

Where such tasks are not exact, Spark reads all operations, and writes them at once: a nested choice by the few cuts
below an operation's node gives each row the number of its output. Before the commit, each output has to lie in the cell
that it names, by its own statistics.
"""

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from actor.cells.columns import point_of, texts_of
from actor.cells.outputs import CellOutputs, is_sampled
from actor.cells.plan import CellPlan
from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.cell_bounds import box_in, is_bounded, read_statistics
from actor.formats.delta.cell_scatter import find_scatter, of_files
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
from shared.errors import RefusedFiles
from shared.layout.cells.boxes import Point
from shared.layout.cells.operations import CellOperation
from shared.layout.cells.tags import CELL_TAG
from shared.refusals import RefusalReason

PROVIDER = "lakewright"
"""Who clustered a file, in its `clusteringProvider`: other implementations leave such files alone."""

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
        plan: CellPlan[LoggedFile],
        operations: Sequence[CellOperation],
    ) -> None:
        super().__init__(scala, snapshot, tasks, proofs)
        self._tasks = tasks
        self._functions = scala.resolve("org.apache.spark.sql.functions")
        self._cell_columns = plan.columns
        self._outputs = CellOutputs(plan, operations)

    def write(self, live: LiveGroup) -> WrittenGroup:
        """Write the group's rows; raises RefusedFiles where an output has no bounds."""
        return self._encode(live, {}, EncodeReason.ROW_ORDER)

    def _by_task(self, live: LiveGroup, _: dict[str, str | None], stored: Storage) -> tuple[LoggedFile, ...] | None:
        """Write the files of all operations; Spark writes all where it has to write one."""
        scatter = find_scatter(self._scala, self._tasks, self._cell_columns, live, stored)
        if scatter is None:
            return None
        written: list[LoggedFile] = []
        try:
            for files, route, first in self._outputs.routes(scatter.points):
                written += scatter.write(of_files(live, files), route, first)
        except LeftToSpark:
            self._log.delete(output.key for output in written)
            return None
        return tuple(written)

    def _frame(self, live: LiveGroup, stored: Storage) -> Any:  # noqa: ARG002 - the operations have the same files
        """Return the rows of all operations, with a part for each output."""
        frames = [
            self._rows_of(files, stored).withColumn(_OUTPUT, self._functions.expr(self._outputs.choice(route, first)))
            for files, route, first in self._outputs.routes(lambda files, every: self._points(files, every, stored))
        ]
        number = self._functions.col(_OUTPUT)
        parted = reduce(lambda one, other: one.union(other), frames).repartitionById(len(self._outputs), number)
        return parted.drop(_OUTPUT)

    def _points(self, files: Sequence[LoggedFile], every: int, stored: Storage) -> list[Point]:
        """Return about each so many-th row of files as a point."""
        values = [*texts_of(self._cell_columns), f"monotonically_increasing_id() AS {_ROW}"]
        read = self._rows_of(files, stored).selectExpr(self._scala.seq(values))
        some = read.filter(is_sampled(_ROW, every)).drop(_ROW)
        return [point_of(self._cell_columns, row) for row in self._scala.rows(some)]

    def _finished(self, live: LiveGroup, outputs: Sequence[LoggedFile]) -> tuple[LoggedFile, ...]:
        """Return the outputs with the tags of their cells, in which they are."""
        return tuple(self._tagged(live, output) for output in outputs)

    def _tagged(self, live: LiveGroup, output: LoggedFile) -> LoggedFile:
        add, path = json.loads(output.json), output.file.path
        statistics = read_statistics(add.get("stats"))
        self._require_bounds(live, statistics)
        box = box_in(statistics, self._cell_columns, is_new=False)
        tag = self._outputs.tag(part_of(path), box, f"{path} of {self._log.location}")
        add |= {"clusteringProvider": PROVIDER, "tags": {**(add.get("tags") or {}), CELL_TAG: tag}}
        return LoggedFile(decode_add(add, ()), encode(add))

    def _require_bounds(self, live: LiveGroup, statistics: Mapping[str, Any]) -> None:
        """Raise RefusedFiles for values without bounds in the log: their file would move again and again."""
        unknown = next((column for column in self._cell_columns if not is_bounded(statistics, column)), None)
        if unknown is not None:
            named = ".".join(unknown.name)
            raise RefusedFiles(
                f"files of {self._log.location} are not put into cells: of their values of {named!r} the log would "
                "hold no bounds, so they would have no place there",
                reason=RefusalReason.BOUNDS,
                field=named,
                files=tuple(logged.file.path for logged in live.inputs),
            )
