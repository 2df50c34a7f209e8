"""Rows of index files as Spark reads and places them."""

from collections.abc import Mapping, Sequence
from typing import Any

from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.superseded_rows import FILE, NAME
from actor.formats.qbeast.index_rows import FoundRange, Places
from shared.formats.qbeast.placement import RowCount, Rows
from shared.formats.qbeast.transformations import Coordinate
from shared.paths.sql_text import quoted

CUBE = "__lakewright_cube"
_WEIGHT, _VALUES, _BLOCK = "__lakewright_weight", "__lakewright_values", "__lakewright_block"
ADDED = (FILE, _WEIGHT, _VALUES, _BLOCK, CUBE)
"""Columns that exist only while rows are placed; `CUBE` is the one that a row belongs into."""


class SparkRows:
    """The rows of a frame that reads some files; it has the columns that coordinates name."""

    def __init__(self, scala: DeltaScala, coordinates: Sequence[Coordinate], rows: Any) -> None:
        self._scala = scala
        self._coordinates = coordinates
        self._rows = rows
        self._functions = scala.resolve("org.apache.spark.sql.functions")

    def total(self) -> int:
        """Count them."""
        return int(self._rows.count())

    def counted(self, places: Places) -> Rows:
        """Count them by their places."""
        counted = (
            self.placed(places)
            .groupBy(FILE, self._scala.seq([_BLOCK, CUBE]))
            .agg(
                self._functions.expr("count(1) AS counted"),
                self._scala.seq([self._functions.expr(f"min({_WEIGHT}) AS low")]),
            )
        )
        found = self._scala.rows(counted)
        return {(one[FILE], one[_BLOCK], one[CUBE]): RowCount(one["counted"], one["low"]) for one in found}

    def ranges(self) -> Mapping[str, Sequence[FoundRange]]:
        """Return the range of each column by the name of a file; one without rows has none."""
        named = {f"c{place}": one for place, one in enumerate(self._coordinates)}
        ranges = [self._functions.expr(f"{_range(one)} AS {name}") for name, one in named.items()]
        grouped = self._with_file(["*"]).groupBy(FILE, self._scala.seq())
        counted = grouped.agg(self._functions.expr("count(1) AS counted"), self._scala.seq(ranges))
        found = self._scala.rows(counted)
        return {one[FILE]: [one[name] for name in named] for one in found}

    def placed(self, places: Places) -> Any:
        """Return the frame with the name of each row's file, its weight, its block there, and its cube."""
        names = ", ".join(quoted(one.column) for one in self._coordinates)
        values = ", ".join(f"{_mapped(one)} AS c{place}" for place, one in enumerate(self._coordinates))
        located = self._with_file(["*", f"hash({names}) AS {_WEIGHT}", f"struct({values}) AS {_VALUES}"])
        blocks, cubes = places.functions(self._scala, self._coordinates)
        lit, file = self._functions.lit, self._functions.col(FILE)
        block = lit("") if blocks is None else self._named(blocks, file)
        return located.withColumn(_BLOCK, block).withColumn(CUBE, self._named(cubes, lit("")))

    def _with_file(self, columns: Sequence[str]) -> Any:
        read = self._rows.selectExpr(self._scala.seq([*columns, f"_metadata.file_name AS {FILE}"]))
        return read.withColumn(FILE, self._functions.expr(NAME))

    def _named(self, function: Any, file: Any) -> Any:
        given = [self._functions.col(_VALUES), self._functions.col(_WEIGHT), file]
        return function.ofColumns().apply(self._scala.seq(given))


def _mapped(one: Coordinate) -> str:
    """Return the expression of the value to map: of instants the milliseconds, of days their number.

    Those from before 1900 the library's Java may map otherwise, so they have no place.
    """
    name = quoted(one.column)
    if not one.is_day and not one.is_instant:
        return name
    return f"IF({name} < DATE'1900-01-01', DOUBLE('NaN'), CAST({_ordered(one)} AS DOUBLE))"


def _ordered(one: Coordinate) -> str:
    name = quoted(one.column)
    return f"unix_date({name})" if one.is_day else f"unix_millis({name})" if one.is_instant else name


def _range(one: Coordinate) -> str:
    ordered, number = _ordered(one), f"CAST({_mapped(one)} AS DOUBLE)"
    outside = f"count_if(isnan({number}) OR abs({number}) = DOUBLE('Infinity')) > 0"
    return f"named_struct('low', min({ordered}), 'high', max({ordered}), 'outside', {outside})"
