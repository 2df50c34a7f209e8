"""Rows of index files with the cubes that they belong into, by the rules of their revision, which are proved first.

Zone and release of the writer's Java may bear on the rules, and no table names them. So the rows of every block are
counted by the rules; where a block has other rows than it says, its file is not touched.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableLog
from actor.formats.delta.superseded_rows import FILE, NAME, files_by_name
from actor.formats.qbeast.index_table import AddedTo, IndexRewrite
from shared.errors import RefusedFiles
from shared.formats.qbeast.cubes import ROOT
from shared.formats.qbeast.domains import count_domains, lowered_weights, without_unrecorded
from shared.formats.qbeast.placement import BlocksByFile, RowCount, Rows, blocks_differ, rows_of_blocks, rows_of_cubes
from shared.formats.qbeast.transformations import Coordinate, encode_coordinates
from shared.formats.qbeast.weights import CubeWeights
from shared.paths.data_paths import file_name
from shared.paths.sql_text import quoted
from shared.refusals import RefusalReason

CUBE = "__lakewright_cube"
_WEIGHT, _VALUES, _BLOCK = "__lakewright_weight", "__lakewright_values", "__lakewright_block"
ADDED = (FILE, _WEIGHT, _VALUES, _BLOCK, CUBE)
"""Columns that exist only while rows are placed; `CUBE` is the one that a row belongs into."""

LAST_JAVA = 17
"""The last release of Java that the Spark of Qbeast's library runs on."""


class PlacedRows:
    """Places rows by the rules that a rewrite has."""

    def __init__(self, scala: DeltaScala, log: TableLog, wanted: IndexRewrite) -> None:
        self._scala = scala
        self._log = log
        self._wanted = wanted
        self._functions = scala.resolve("org.apache.spark.sql.functions")

    def proved(self, rows: Any, inputs: Sequence[LoggedFile]) -> tuple[Any, Rows]:
        """Return the rows of the inputs with their cubes, and their number.

        Raises RefusedFiles where a block has other rows than it says, with the first one that has.
        """
        self._require_columns(rows)
        names = {logged.file.path: name for name, logged in files_by_name(inputs, self._log.location).items()}
        blocks: BlocksByFile = {names[file.path]: file.blocks for file in self._wanted.files}
        deleted = {name_of(logged) for logged in inputs if logged.file.dv_id is not None}
        placed = self.of_files(rows, blocks)
        found = self.counted(placed)
        problem = blocks_differ(blocks, rows_of_blocks(found), deleted)
        if problem:
            raise self._refused(f"they do not lead to the blocks that tags of files say: {problem}")
        return placed, found

    def of_files(self, rows: Any, blocks: BlocksByFile) -> Any:
        """Return rows with their weight, the block of their file that they are in, and the cube they belong into."""
        by_file = {name: {block.cube: block.max_weight for block in some} for name, some in blocks.items()}
        inside = self._named(self._located(rows), _BLOCK, "ofFiles", by_file)
        return self._named(inside, CUBE, "ofIndex", {"": self._wanted.weights})

    def added(self, rows: Any, to: AddedTo) -> tuple[Any, Rows, CubeWeights]:
        """Return rows that are not indexed with their cubes, their number, and what cubes weigh with them.

        Raises RefusedFiles where the rules cannot be followed.
        """
        wanted = self._wanted
        self._require_columns(rows)
        located = self._located(rows).withColumn(_BLOCK, self._functions.lit(ROOT))

        def count(levels: Mapping[str, int]) -> dict[str, int]:
            found = self.counted(self._named(located, CUBE, "ofPlaces", {"": levels}))
            return {cube: one.rows for cube, one in rows_of_cubes(found).items()}

        domains = count_domains(count, int(located.count()), wanted.revision)
        weights = lowered_weights(domains, to.domains, to.ceilings, wanted.revision)
        while True:  # Each time fewer cubes are lowered.
            placed = self._named(located, CUBE, "ofIndex", {"": weights})
            found = self.counted(placed)
            recorded = without_unrecorded(weights, wanted.weights, rows_of_cubes(found))
            if recorded == weights:
                return placed, found, weights
            weights = recorded

    def _located(self, rows: Any) -> Any:
        """Return rows with the name of their file, their weight, and the values that their place follows from."""
        rules, seq = self._wanted.coordinates, self._scala.seq
        names = ", ".join(quoted(one.column) for one in rules)
        values = ", ".join(f"{mapped(one)} AS c{place}" for place, one in enumerate(rules))
        read = ("*", f"_metadata.file_name AS {FILE}", f"hash({names}) AS {_WEIGHT}", f"struct({values}) AS {_VALUES}")
        return rows.selectExpr(seq(read)).withColumn(FILE, self._functions.expr(NAME))

    def counted(self, placed: Any) -> Rows:
        """Count rows that were placed."""
        counted = placed.groupBy(FILE, self._scala.seq([_BLOCK, CUBE])).agg(
            self._functions.expr("count(1) AS counted"),
            self._scala.seq([self._functions.expr(f"min({_WEIGHT}) AS low")]),
        )
        found = map(json.loads, counted.toJSON().collectAsList())
        return {(one[FILE], one[_BLOCK], one[CUBE]): RowCount(one["counted"], one["low"]) for one in found}

    def _require_columns(self, rows: Any) -> None:
        """Raise RefusedFiles for a column, a zone or a Java by which the rules cannot be followed."""
        known = {str(name).lower() for name in rows.columns()}
        missing = [one.column for one in self._wanted.coordinates if one.column.lower() not in known]
        if missing:
            raise self._refused(f"the table has no column {missing[0]!r}, which its revision names")
        zones = self._scala.resolve("java.time.ZoneId").getAvailableZoneIds()
        for zone in {one.zone for one in self._wanted.coordinates if one.zone.strip("+-0123456789:")}:
            if not zones.contains(zone):
                raise self._refused(f"{zone!r} in lakewright.index-zone is no time zone that Java knows")
        spelled = [one.column for one in self._wanted.coordinates if one.is_spelled]
        release = int(self._scala.resolve("java.lang.Runtime").version().feature())
        if spelled and release > LAST_JAVA:
            raise self._refused(
                f"{spelled[0]!r} holds numbers that Java {release} spells otherwise than Java {LAST_JAVA}, under which "
                f"Qbeast's library runs: let actors run under Java {LAST_JAVA}"
            )

    def _refused(self, problem: str) -> RefusedFiles:
        number, place = self._wanted.revision.id, self._log.location
        return RefusedFiles(
            f"index files of {place} are not rewritten by the rules of revision {number}: {problem}",
            reason=RefusalReason.INDEX,
        )

    def _named(self, located: Any, column: str, kind: str, weights: Mapping[str, Mapping[str, int]]) -> Any:
        """Add the name of a cube of each row; kind: which one, by `QbeastCube.java`."""
        make, lit = self._scala.resolve(f"io.lakewright.qbeast.QbeastCube.{kind}"), self._functions.lit
        text = self._scala.resolve("org.apache.spark.sql.types.DataTypes").StringType
        cube = self._functions.udf(make(encode_coordinates(self._wanted.coordinates), json.dumps(weights)), text)
        file = self._functions.col(FILE) if kind == "ofFiles" else lit("")
        given = [self._functions.col(_VALUES), self._functions.col(_WEIGHT), file]
        return located.withColumn(column, cube.apply(self._scala.seq(given)))


def mapped(one: Coordinate) -> str:
    """Return the expression of the value to map: of instants the milliseconds, of days their number.

    Those from before 1900 the library's Java may map otherwise, so they have no place.
    """
    name = quoted(one.column)
    if not one.is_day and not one.is_instant:
        return name
    number = f"unix_date({name})" if one.is_day else f"unix_millis({name})"
    return f"IF({name} < DATE'1900-01-01', DOUBLE('NaN'), CAST({number} AS DOUBLE))"


def name_of(logged: LoggedFile) -> str:
    """Return the name of a file without its folders."""
    return file_name(logged.file.path).rpartition("/")[2]
