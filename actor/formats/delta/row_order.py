"""The rows of a group's outputs in the order that its plan names, as a frame of Spark's that is written as it is.

Spark packs the files of a scan by size and begins with the largest, so the order of inputs is kept by sorting: by the
place of each row's file in the group, then of its part in the file, then by the order in which the part is read. A row
whose file is not found among the inputs would be lost here, and the comparison of rows in and rows out stops such a
rewrite.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.log import TableLog
from actor.jvm.scala import Scala, jvm_session
from shared.errors import Unsupported
from shared.paths.data_paths import file_name
from shared.paths.sql_text import literal
from shared.policy.row_order import RowOrder, SortColumn
from shared.table import PartitionColumn

_FILE, _PLACE = "__lakewright_file", "__lakewright_place"
_PART, _ROW = "__lakewright_part", "__lakewright_row"
"""Columns that exist only while rows are put in order."""


class RowSorter:
    """Puts the rows of one table's groups in order."""

    def __init__(self, scala: Scala, log: TableLog, columns: Sequence[PartitionColumn]) -> None:
        self._scala = scala
        self._log = log
        # A writer sorts by the partition columns, which have one value here, unless it finds that done.
        self._first = [str(SortColumn(column.name)) for column in columns]

    def ordered(self, frame: Any, inputs: Sequence[LoggedFile], order: RowOrder | None) -> Any:
        """Return the frame with its rows in as many parts as there are to be outputs, each in order."""
        if order is None:
            return frame.coalesce(1)
        return self._by_columns(frame, order) if order.columns else self._by_inputs(frame, inputs)

    def _by_inputs(self, frame: Any, inputs: Sequence[LoggedFile]) -> Any:
        names = [file_name(logged.file.path).rpartition("/")[2] for logged in inputs]
        if len(set(names)) < len(names):
            raise Unsupported(
                f"two of {len(names)} files to merge in order at {self._log.location} have the same name in different "
                "folders, so their rows cannot be distinguished",
                field="path",
            )
        places = ", ".join(f"({literal(name)}, {place})" for place, name in enumerate(names))
        values = f"SELECT * FROM VALUES {places} AS known({_FILE}, {_PLACE})"  # noqa: S608 - names are literals
        known = jvm_session(self._log.session).sql(values)
        read = (
            f"_metadata.file_name AS {_FILE}",
            f"_metadata.file_block_start AS {_PART}",
            f"monotonically_increasing_id() AS {_ROW}",  # Grows along the rows that one task reads.
        )
        placed = frame.selectExpr(self._scala.seq(["*", *read]))
        joined = placed.join(known.hint("broadcast", self._scala.seq()), _FILE)
        in_order = self._sorted(joined.coalesce(1), [f"{_PLACE} ASC", f"{_PART} ASC", f"{_ROW} ASC"])
        return in_order.drop(self._scala.seq([_FILE, _PLACE, _PART, _ROW]))

    def _by_columns(self, frame: Any, order: RowOrder) -> Any:
        known = {name.lower() for name in frame.columns()}
        for column in order.columns:
            if column.name.lower() not in known:
                raise Unsupported(
                    f"the sort order of the table at {self._log.location} names the column {column.name!r}, which it "
                    "does not have: nothing was rewritten; correct lakewright.sort-by or lakewright.zorder-by",
                    field="sort-by",
                )
        names = [str(column) for column in order.columns]
        if order.is_interleaved:
            curve = self._scala.module("org.apache.spark.sql.delta.skipping.MultiDimClustering")
            named = self._scala.seq(column.name for column in order.columns)
            # Delta splits rows at ranges of the curve's position, and leaves them unsorted inside.
            return self._sorted(curve.cluster(frame, order.outputs, named, "zorder"), names)
        if order.outputs == 1:
            return self._sorted(frame.coalesce(1), names)
        return self._sorted(frame.repartitionByRange(order.outputs, self._columns(names)), names)

    def _sorted(self, frame: Any, by: Iterable[str]) -> Any:
        return frame.sortWithinPartitions(self._columns([*self._first, *by]))

    def _columns(self, orders: Iterable[str]) -> Any:
        """Return sort orders such as "`a` DESC" as Spark's columns."""
        functions = self._scala.resolve("org.apache.spark.sql.functions")
        found = []
        for order in orders:
            name, _, direction = order.rpartition(" ")
            column = functions.expr(name)
            found.append(column.desc() if direction == "DESC" else column.asc())
        return self._scala.seq(found)
