"""Writes rows of an index again: each into the cube that it belongs into, and small cubes into one file.

The rules are proved before and after. The rows of every block of the inputs are counted by them, and so are the rows of
every block that was written; where a block has other rows than it says, nothing is committed. Tasks without Spark's SQL
do that and move the rows, where they can.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode, json_array
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footers import Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.output_paths import part_of
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.row_tasks import LeftToSpark
from actor.formats.delta.write import EncodingWriter, logical_rows
from actor.formats.delta.written_group import WrittenGroup
from actor.formats.parquet.copy_rules import EncodeReason
from actor.formats.qbeast.index_rows import IndexRows, Places, name_of
from actor.formats.qbeast.index_table import IndexRewrite
from actor.formats.qbeast.placed_rows import PlacedRows
from actor.formats.qbeast.spark_rows import ADDED, CUBE, SparkRows
from actor.formats.qbeast.task_rows import TaskRows, find_task_rows
from actor.jvm.scala import jvm_session
from shared.errors import Corrupt, RefusedFiles
from shared.formats.qbeast.files import Block
from shared.formats.qbeast.placement import (
    Rows,
    block_tags,
    blocks_differ,
    plan_outputs,
    require_lawful,
    rows_of_blocks,
    rows_of_cubes,
)
from shared.paths.sql_text import literal

_OUTPUT = "__lakewright_output"
"""Column that exists only while rows are placed: the number of the file that a row is written into."""


class IndexWriter(EncodingWriter):
    """Writes one group of index files."""

    def __init__(
        self, scala: DeltaScala, snapshot: Any, tasks: ParquetTasks, proofs: Proofs, wanted: IndexRewrite
    ) -> None:
        super().__init__(scala, snapshot, tasks, proofs)
        self._tasks = tasks
        self._wanted = wanted
        names = [field["name"] for field in self._shape.fields]
        self._placed = PlacedRows(scala, tasks.log.location, wanted, names)
        self._planned: list[tuple[Block, ...]] = []
        self._by_tasks: TaskRows | None = None
        self._proved_rules = tasks.index_rules

    def write(self, live: LiveGroup) -> WrittenGroup:
        """Write the group's rows; raises RefusedFiles where the rules do not hold, having written nothing."""
        return self._encode(live, {}, EncodeReason.ROW_ORDER)

    def _by_task(self, live: LiveGroup, _: dict[str, str | None], stored: Storage) -> tuple[LoggedFile, ...] | None:
        rows = self._by_tasks = find_task_rows(self._scala, self._tasks, self._wanted.coordinates, live, stored)
        if rows is not None:
            try:
                return tuple(rows.write(live, self._places(rows, live), self._planned))
            except (LeftToSpark, RefusedFiles):  # Whether blocks have other rows than they say, Spark decides.
                self._by_tasks = None
        return None

    def _places(self, rows: IndexRows, live: LiveGroup) -> Places:
        """Return where rows belong, and plan the outputs, after the proof that the inputs' blocks have their rows.

        Rows of files that are not indexed are in no block, and lower the weights of cubes.
        """
        placed, wanted = self._placed, self._wanted
        found, places = placed.proved(rows, live.inputs) if wanted.added is None else placed.added(rows, wanted.added)
        counts = rows_of_cubes(found)
        self._planned = plan_outputs(counts, places.cubes, wanted.revision)
        expected = logical_rows(live.inputs)
        total = sum(count.rows for count in counts.values()) if expected is None else expected
        require_lawful(self._planned, places.cubes, total, wanted.revision.space)
        return places

    def _arranged(self, rows: Any, live: LiveGroup) -> Any:
        """Return the rows by the cubes that they belong into."""
        read = SparkRows(self._scala, self._wanted.coordinates, rows)
        placed = read.placed(self._places(read, live))
        numbered = [(block.cube, number) for number, blocks in enumerate(self._planned) for block in blocks]
        values = ", ".join(f"({literal(cube)}, {number})" for cube, number in numbered)
        known = f"SELECT * FROM VALUES {values} AS known({CUBE}, {_OUTPUT})"  # noqa: S608 - cubes are literals
        outputs = jvm_session(self._log.session).sql(known).hint("broadcast", self._scala.seq())
        column = self._scala.resolve("org.apache.spark.sql.functions").col
        parted = placed.join(outputs, CUBE).repartitionById(len(self._planned), column(_OUTPUT))
        in_order = parted.sortWithinPartitions(self._scala.seq([column(CUBE)]))
        return in_order.drop(self._scala.seq([*ADDED, _OUTPUT]))

    def _finished(self, live: LiveGroup, outputs: Sequence[LoggedFile]) -> tuple[LoggedFile, ...]:
        """Return the outputs with the tags of their blocks, after the proof that they have these rows."""
        tagged, blocks = list[LoggedFile](), dict[str, Sequence[Block]]()
        for output in outputs:
            number = part_of(output.file.path)
            planned = self._planned[number] if number is not None and number < len(self._planned) else ()
            add = json.loads(output.json)
            add["tags"] = {**(add.get("tags") or {}), **block_tags(self._wanted.revision.id, planned)}
            tagged.append(LoggedFile(decode_add(add, ()), encode(add)))
            blocks[name_of(output)] = planned
        places = Places({}, blocks)
        by_tasks = self._counted_by_tasks(tagged, places)
        problem = blocks_differ(
            blocks, rows_of_blocks(self._counted_by_spark(tagged, places) if by_tasks is None else by_tasks)
        )
        if problem or len(tagged) != len(self._planned):
            raise Corrupt(
                f"the rewrite of {len(live.inputs)} index files of {self._log.location} was stopped before its commit: "
                f"{problem or f'{len(tagged)} files were written, not {len(self._planned)}'}. The table is unchanged"
            )
        if by_tasks is None and self._by_tasks is not None:
            self._proved_rules.add(self._by_tasks.rules)
        return tuple(tagged)

    def _counted_by_tasks(self, files: Sequence[LoggedFile], places: Places) -> Rows | None:
        """Count rows of outputs; None unless blocks of the inputs, or Spark, have proved how tasks read such rows."""
        rows = self._by_tasks
        if rows is None or any(one.file.dv_id is not None for one in rows.files):
            return None
        if self._wanted.added is not None and rows.rules not in self._proved_rules:
            return None
        with suppress(LeftToSpark):
            return replace(rows, files=tuple(files)).counted(places)
        return None

    def _counted_by_spark(self, files: Sequence[LoggedFile], places: Places) -> Rows:
        frame = self._log.frame(self._snapshot, self._scala.adds(json_array(files)))
        return SparkRows(self._scala, self._wanted.coordinates, frame).counted(places)
