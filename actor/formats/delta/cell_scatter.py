"""Moves the rows of operations on cells without Spark's SQL: one task for each (`RowScatter.java`), column by column.

Each value is decoded and encoded as the file stores it, so no type can change, and nothing is planned or compiled for a
run. A task goes by the clustering columns as files store them. What speaks against that leaves the run to Spark.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from actor.cells.columns import CellColumn, Stored
from actor.cells.outputs import cuts_of
from actor.formats.delta.actions import LoggedFile, decode_add, encode, json_array
from actor.formats.delta.cell_bounds import is_bounded, read_statistics, stored_in
from actor.formats.delta.column_merge import MERGED_REASONS
from actor.formats.delta.copy_choice import DeltaCandidate
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footer_reader import paths_and_sizes
from actor.formats.delta.footers import Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.parquet.copy_choice import reason_to_encode
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS
from actor.jvm.scala import jvm_context
from shared.layout.cells.boxes import Point
from shared.layout.cells.routes import Route, outputs_of

MOST_HIDDEN_ROWS = 200_000
"""Rows of an operation that vectors hide, at most: as text, they travel to the JVM with each of its tasks."""

_NOT_FINITE = ('"NaN"', '"Infinity"', '"-Infinity"')
"""Bounds in statistics, as Spark writes them, that no footer has."""


class LeftToSpark(Exception):  # noqa: N818
    """A task found what it cannot write exactly."""


@dataclass(frozen=True, slots=True)
class CellScatter:
    """The tasks of one run, whose outputs get this codec, as Spark names it."""

    scala: DeltaScala
    tasks: ParquetTasks
    columns: tuple[CellColumn, ...]
    stored: tuple[Stored, ...]
    codec: str

    def points(self, live: LiveGroup, every: int) -> list[Point]:
        """Return each so many-th row of the group's files as a point; raises LeftToSpark."""
        log = self.tasks.log
        files = paths_and_sizes(log, live.inputs)
        context = jvm_context(log.session)
        rows = self._run(
            lambda: json.loads(
                self.scala.group.sampled(context, log.hadoop_conf, *files, *self._keys(live.inputs), every)
            )
        )["rows_read"]
        return [tuple(one.number(value) for one, value in zip(self.stored, row, strict=True)) for row in rows]

    def write(self, live: LiveGroup, route: Route, first: int) -> list[LoggedFile]:
        """Write the rows of the group's files, each to the output at the end of its route.

        first: number of the first output, which its file has in its name. An output without rows is no file. Raises
        LeftToSpark.
        """
        cuts = json.dumps(cuts_of(route, self.stored))
        settings = self.codec.upper(), *self._keys(live.inputs), cuts, first, len(outputs_of(route))
        result = self._run(lambda: self.tasks.run("scattered", live, {}, self.codec, *settings))
        are_tight = any("tightBounds" in _statistics(one) for one in live.inputs)
        return [_logged(made, are_tight=are_tight) for made in result["outputs"]]

    def _run(self, call: Any) -> Mapping[str, Any]:
        result: Mapping[str, Any] | None = self.tasks.classes.run(call)
        if result is None or "obstacle" in result:
            raise LeftToSpark
        return result

    def _keys(self, files: Sequence[LoggedFile]) -> tuple[str, str]:
        """Return the hidden rows of each file, and the clustering columns."""
        hidden = self.tasks.log.hidden_rows(self.scala.adds(json_array(files)), MOST_HIDDEN_ROWS)
        if hidden is None:
            raise LeftToSpark
        return json.dumps(hidden), json.dumps([column.path for column in self.columns])


def find_scatter(
    scala: DeltaScala, tasks: ParquetTasks, columns: tuple[CellColumn, ...], live: LiveGroup, stored: Storage
) -> CellScatter | None:
    """Return the tasks of a run on these files, which are stored like this; None if Spark has to write it."""
    codec = tasks.format.codec(stored)
    known = tuple(found for column in columns if (found := stored_in(stored.schemas, column)) is not None)
    if codec is None or len(known) < len(columns) or not all(_is_bounded(one, columns) for one in live.inputs):
        return None
    candidate = DeltaCandidate(
        shape=tasks.paths.shape,
        mode=live.group.mode,
        bytes=live.group.bytes,
        full_bytes=0,
        drops_rows=False,  # They are left out.
        is_available=tasks.classes.are_usable,
    ).with_footers(tasks.footers.describe(live.inputs).files)
    reason = reason_to_encode(candidate, DEFAULT_LIMITS)
    if reason is not None and reason not in MERGED_REASONS:
        return None
    return CellScatter(scala, tasks, columns, known, codec)


def of_files(live: LiveGroup, files: Sequence[LoggedFile]) -> LiveGroup:
    """Return a group of other files."""
    group = replace(live.group, files=tuple(logged.file for logged in files))
    return replace(live, group=group, inputs=tuple(files))


def _statistics(logged: LoggedFile) -> Mapping[str, Any]:
    return read_statistics(json.loads(logged.json).get("stats"))


def _is_bounded(logged: LoggedFile, columns: Sequence[CellColumn]) -> bool:
    """Return whether footers say of a file's rows, wherever they go, at least what the log says."""
    text = json.loads(logged.json).get("stats") or ""
    statistics = read_statistics(text)
    return not any(one in text for one in _NOT_FINITE) and all(is_bounded(statistics, one) for one in columns)


def _logged(made: Mapping[str, Any], *, are_tight: bool) -> LoggedFile:
    """Return a file of the task; all but the number of its rows is known by its footer."""
    statistics = {"numRecords": made["rows"], **({"tightBounds": True} if are_tight else {})}
    add = {
        "path": made["path"],
        "partitionValues": {},
        "size": made["size"],
        "modificationTime": made["modification"],
        "dataChange": False,
        "stats": json.dumps(statistics),
    }
    return LoggedFile(decode_add(add, ()), encode(add))
