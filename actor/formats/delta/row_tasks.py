"""Tasks that read key columns of files, and move their rows, without Spark's SQL: one for each operation.

Each value is decoded and encoded as the file stores it, column by column (`RowScatter.java`, `ColumnMerge.java`), so no
type can change, and nothing is planned or compiled for a run. What speaks against that leaves the rows to Spark.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode, json_array
from actor.formats.delta.copy_choice import DeltaCandidate
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footer_reader import paths_and_sizes
from actor.formats.delta.footers import Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.statistics import load_statistics
from actor.formats.parquet.copy_choice import reason_to_encode
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, MERGED_REASONS
from actor.jvm.scala import jvm_context
from actor.rewrite.late_rows import MOST_ROWS

_NOT_FINITE = ('"NaN"', '"Infinity"', '"-Infinity"')
"""Bounds in statistics, as Spark writes them, that no footer has."""


class LeftToSpark(Exception):  # noqa: N818
    """A task found what it cannot read or write exactly."""


@dataclass(frozen=True, slots=True)
class RowTasks:
    """The tasks of one rewrite, whose outputs get this codec, as Spark names it, and these values of their partition.

    keys: paths of the key columns.
    """

    scala: DeltaScala
    tasks: ParquetTasks
    keys: tuple[tuple[str, ...], ...]
    codec: str
    values: dict[str, str | None]

    def read(self, files: Sequence[LoggedFile], fold: Any) -> Any:
        """Return what a `KeyFold` of the JVM finds in the rows of files; raises LeftToSpark."""
        log = self.tasks.log
        given = jvm_context(log.session), log.hadoop_conf, *paths_and_sizes(log, files), self._hidden(files)
        return self._run(lambda: json.loads(self.scala.group.read(*given, json.dumps(self.keys), fold)))["read"]

    def write(self, live: LiveGroup, route: Any, first: int, outputs: int) -> list[LoggedFile]:
        """Write the rows of the group's files, each to the output that a `KeyRoute` of the JVM names.

        first: number of the first output, which its file has in its name. An output without rows is no file. Raises
        LeftToSpark.
        """
        settings = self._hidden(live.inputs), json.dumps(self.keys), route, first, outputs
        return self._logged(live, self._written(live, "scattered", *settings)["outputs"])

    def merge(self, live: LiveGroup) -> list[LoggedFile]:
        """Write the rows of the group's files, one file after the other, as one file; raises LeftToSpark."""
        written = self._logged(live, [self._written(live, "merged", self._hidden(live.inputs))])
        if not written[0].file.rows:
            self.tasks.log.delete([written[0].key])  # Spark writes no file without rows.
            raise LeftToSpark
        return written

    def _written(self, live: LiveGroup, name: str, *settings: Any) -> Mapping[str, Any]:
        return self._run(lambda: self.tasks.run(name, live, self.values, self.codec, self.codec.upper(), *settings))

    def _logged(self, live: LiveGroup, written: Iterable[Mapping[str, Any]]) -> list[LoggedFile]:
        """Return files of a task; all but the numbers of their rows is known by their footers."""
        are_tight = any("tightBounds" in load_statistics(stats_of(one)) for one in live.inputs)
        columns, found = self.tasks.paths.shape.metadata.partition_columns, list[LoggedFile]()
        for made in written:
            statistics = {"numRecords": made["rows"], **({"tightBounds": True} if are_tight else {})}
            add = {
                "path": made["path"],
                "partitionValues": self.values,
                "size": made["size"],
                "modificationTime": made["modification"],
                "dataChange": False,
                "stats": json.dumps(statistics),
                **({"tags": dict(live.group.tags)} if live.group.tags else {}),
            }
            found.append(LoggedFile(decode_add(add, columns), encode(add)))
        return found

    def _run(self, call: Any) -> Mapping[str, Any]:
        result: Mapping[str, Any] | None = self.tasks.classes.run(call)
        if result is None or "obstacle" in result:
            raise LeftToSpark
        return result

    def _hidden(self, files: Sequence[LoggedFile]) -> Any:
        """Return the hidden rows of each file, as Java's object, None if no file has a vector."""
        if not any(logged.file.dv_id for logged in files):
            return None
        hidden = self.tasks.log.hidden_rows(self.scala.adds(json_array(files)), MOST_ROWS)
        if hidden is None:
            raise LeftToSpark
        return hidden


def find_row_tasks(
    scala: DeltaScala,
    tasks: ParquetTasks,
    keys: Sequence[tuple[str, ...]],
    live: LiveGroup,
    stored: Storage,
    values: dict[str, str | None] | None = None,
) -> RowTasks | None:
    """Return the tasks of a rewrite of these files, which are stored like this; None if Spark has to write it.

    values: of the partition, where there is one.
    """
    codec, shape = tasks.format.codec(stored), tasks.paths.shape
    # In mode `id`, a file may hold the column under the name of another one.
    is_named = shape.metadata.configuration.get("delta.columnMapping.mode") != "id"
    if codec is None or not is_named or not tasks.format.may_stay(stored):
        return None
    if not all(_is_finite(stats_of(logged)) for logged in live.inputs):
        return None
    candidate = DeltaCandidate(
        shape=shape,
        mode=live.group.mode,
        bytes=live.group.bytes,
        full_bytes=0,
        drops_rows=False,  # They are left out.
        loses_folder=tasks.paths.loses_folder(values or {}, [logged.file.path for logged in live.inputs]),
        is_available=tasks.classes.are_usable,
    ).with_footers(tasks.footers.describe(live.inputs).files)
    reason = reason_to_encode(candidate, DEFAULT_LIMITS)
    is_exact = reason is None or reason in MERGED_REASONS
    return RowTasks(scala, tasks, tuple(keys), codec, values or {}) if is_exact else None


def stats_of(logged: LoggedFile) -> str:
    """Return the statistics of a file as the log has them, empty where it has none."""
    return json.loads(logged.json).get("stats") or ""


def _is_finite(statistics: str) -> bool:
    """Return whether footers can say of a file's rows, wherever they go, what the log says."""
    return not any(one in statistics for one in _NOT_FINITE)
