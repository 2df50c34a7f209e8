"""Writes the rows of index files again: each into the cube that it belongs into, and small cubes into one file.

The rules are proved before and after. The rows of every block of the inputs are counted by them, and so are the rows of
every block that was written; where a block has other rows than it says, nothing is committed.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode, json_array
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.superseded_rows import FILE, NAME, files_by_name
from actor.formats.delta.write import EncodingWriter, logical_rows
from actor.formats.delta.written_group import WrittenGroup
from actor.formats.parquet.copy_rules import EncodeReason
from actor.formats.qbeast.index_job import IndexRewrite
from actor.jvm.scala import jvm_session
from shared.errors import Corrupt, RefusedFiles
from shared.formats.qbeast.files import Block
from shared.formats.qbeast.placement import (
    BlocksByFile,
    RowCount,
    Rows,
    block_tags,
    blocks_differ,
    plan_outputs,
    require_lawful,
    rows_of_blocks,
    rows_of_cubes,
)
from shared.formats.qbeast.transformations import Coordinate, encode_coordinates
from shared.paths.data_paths import file_name
from shared.paths.sql_text import literal, quoted
from shared.refusals import RefusalReason

_WEIGHT, _VALUES = "__lakewright_weight", "__lakewright_values"
_BLOCK, _CUBE, _OUTPUT = "__lakewright_block", "__lakewright_cube", "__lakewright_output"
"""Columns that exist only while rows are placed."""

LAST_JAVA = 17
"""The last release of Java that the Spark of Qbeast's library runs on."""

_PART = re.compile(r"part-(\d+)-")
"""The number of an output's part in its name, as Spark writes it."""


class IndexWriter(EncodingWriter):
    """Writes one group of index files."""

    def __init__(
        self, scala: DeltaScala, snapshot: Any, tasks: ParquetTasks, proofs: Proofs, wanted: IndexRewrite
    ) -> None:
        super().__init__(scala, snapshot, tasks, proofs)
        self._wanted = wanted
        self._functions = scala.resolve("org.apache.spark.sql.functions")
        self._planned: list[tuple[Block, ...]] = []

    def write(self, live: LiveGroup) -> WrittenGroup:
        """Write the group's rows; raises RefusedFiles where the rules do not hold, having written nothing."""
        return self._encode(live, {}, EncodeReason.ROW_ORDER)

    def _arranged(self, rows: Any, live: LiveGroup) -> Any:
        """Return the rows by the cubes that they belong into, after the proof that the inputs' blocks have theirs."""
        wanted = self._wanted
        placed, found = self._proved(rows, live)
        counts = rows_of_cubes(found)
        self._planned = plan_outputs(counts, wanted.weights, wanted.revision)
        expected = logical_rows(live.inputs)
        total = sum(count.rows for count in counts.values()) if expected is None else expected
        require_lawful(self._planned, wanted.weights, total, wanted.revision.space)
        numbered = [(block.cube, number) for number, blocks in enumerate(self._planned) for block in blocks]
        values = ", ".join(f"({literal(cube)}, {number})" for cube, number in numbered)
        known = f"SELECT * FROM VALUES {values} AS known({_CUBE}, {_OUTPUT})"  # noqa: S608 - cubes are literals
        outputs = jvm_session(self._log.session).sql(known).hint("broadcast", self._scala.seq())
        column = self._functions.col
        parted = placed.join(outputs, _CUBE).repartitionById(len(self._planned), column(_OUTPUT))
        in_order = parted.sortWithinPartitions(self._scala.seq([column(_CUBE)]))
        return in_order.drop(self._scala.seq([FILE, _WEIGHT, _VALUES, _BLOCK, _CUBE, _OUTPUT]))

    def _finished(self, live: LiveGroup, outputs: Sequence[LoggedFile]) -> tuple[LoggedFile, ...]:
        """Return the outputs with the tags of their blocks, after the proof that they have these rows."""
        tagged, blocks = list[LoggedFile](), dict[str, Sequence[Block]]()
        for output in outputs:
            number = _PART.search(output.file.path)
            planned = self._planned[int(number[1])] if number and int(number[1]) < len(self._planned) else ()
            add = json.loads(output.json)
            add["tags"] = {**(add.get("tags") or {}), **block_tags(self._wanted.revision.id, planned)}
            tagged.append(LoggedFile(decode_add(add, ()), encode(add)))
            blocks[_name(output)] = planned
        written = self._log.frame(self._snapshot, self._scala.adds(json_array(tagged)))
        found = self._counted(self._placed(written, blocks))
        problem = blocks_differ(blocks, rows_of_blocks(found))
        if problem or len(tagged) != len(self._planned):
            raise Corrupt(
                f"the rewrite of {len(live.inputs)} index files of {self._log.location} was stopped before its commit: "
                f"{problem or f'{len(tagged)} files were written, not {len(self._planned)}'}. The table is unchanged"
            )
        return tuple(tagged)

    def _proved(self, rows: Any, live: LiveGroup) -> tuple[Any, Rows]:
        """Return the rows with their cubes, and their number; raises RefusedFiles where blocks have other rows."""
        self._require_columns(rows)
        names = {logged.file.path: name for name, logged in files_by_name(live.inputs, self._log.location).items()}
        blocks: BlocksByFile = {names[file.path]: file.blocks for file in self._wanted.files}
        deleted = {_name(logged) for logged in live.inputs if logged.file.dv_id is not None}
        placed = self._placed(rows, blocks)
        found = self._counted(placed)
        problem = blocks_differ(blocks, rows_of_blocks(found), deleted)
        if problem:
            raise self._refused(f"they do not lead to the blocks that tags of files say: {problem}")
        return placed, found

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

    def _placed(self, rows: Any, blocks: BlocksByFile) -> Any:
        """Return rows with their weight, the block of their file that they are in, and the cube they belong into."""
        rules, seq = self._wanted.coordinates, self._scala.seq
        names = ", ".join(quoted(one.column) for one in rules)
        values = ", ".join(f"{_value(one)} AS c{place}" for place, one in enumerate(rules))
        read = ("*", f"_metadata.file_name AS {FILE}", f"hash({names}) AS {_WEIGHT}", f"struct({values}) AS {_VALUES}")
        by_file = {name: {block.cube: block.max_weight for block in some} for name, some in blocks.items()}
        given = seq([self._functions.col(name) for name in (_VALUES, _WEIGHT, FILE)])
        of_all = seq([self._functions.col(_VALUES), self._functions.col(_WEIGHT), self._functions.lit("")])
        located = rows.selectExpr(seq(read)).withColumn(FILE, self._functions.expr(NAME))
        inside = located.withColumn(_BLOCK, self._cube("ofFiles", by_file).apply(given))
        return inside.withColumn(_CUBE, self._cube("ofIndex", {"": dict(self._wanted.weights)}).apply(of_all))

    def _cube(self, kind: str, weights: dict[str, dict[str, int]]) -> Any:
        make = self._scala.resolve(f"io.lakewright.qbeast.QbeastCube.{kind}")
        text = self._scala.resolve("org.apache.spark.sql.types.DataTypes").StringType
        return self._functions.udf(make(encode_coordinates(self._wanted.coordinates), json.dumps(weights)), text)

    def _counted(self, placed: Any) -> Rows:
        counted = placed.groupBy(FILE, self._scala.seq([_BLOCK, _CUBE])).agg(
            self._functions.expr("count(1) AS counted"),
            self._scala.seq([self._functions.expr(f"min({_WEIGHT}) AS low")]),
        )
        found = map(json.loads, counted.toJSON().collectAsList())
        return {(one[FILE], one[_BLOCK], one[_CUBE]): RowCount(one["counted"], one["low"]) for one in found}


def _value(one: Coordinate) -> str:
    """Return the expression of the value to map: of instants the milliseconds, of days their number.

    Those from before 1900 the library's Java may map otherwise, so they have no place.
    """
    name = quoted(one.column)
    if not one.is_day and not one.is_instant:
        return name
    number = f"unix_date({name})" if one.is_day else f"unix_millis({name})"
    return f"IF({name} < DATE'1900-01-01', DOUBLE('NaN'), CAST({number} AS DOUBLE))"


def _name(logged: LoggedFile) -> str:
    return file_name(logged.file.path).rpartition("/")[2]
