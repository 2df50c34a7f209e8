"""Which runs on cells are left to Spark, and what a task is told of the others."""

import json
from dataclasses import replace
from typing import Any

import pytest

from actor.cells.columns import CellColumn
from actor.formats.delta.cell_scatter import MOST_HIDDEN_ROWS, CellScatter, LeftToSpark, find_scatter, of_files
from actor.formats.delta.columns import Column
from actor.formats.delta.footers import Storage
from actor.formats.delta.log import TableLog
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.parquet.classes import ParquetClasses
from shared.layout.cells.boxes import NULL
from shared.layout.cells.routes import CellOutput, Fork
from shared.layout.cells.tree import Cut
from tests.support.fake_copies import FOOTER, FakeCopies
from tests.support.fake_delta import FakeTable, live_group
from tests.support.fake_delta_table import METADATA, PREFIX, add

V, T = Column(("v",), "INT64", "int", (64, 64)), Column(("t",), "BINARY", "text")
STORED = Storage(((V, T),), {"snappy": 100})
COLUMNS = CellColumn(("v",), ("v",), "long"), CellColumn(("t",), ("t",), "string")
STATS = {
    "numRecords": 10,
    "minValues": {"v": 1, "t": "a"},
    "maxValues": {"v": 5, "t": "z"},
    "nullCount": {"v": 0, "t": 0},
}
MADE = {"name": "o", "size": 50, "rows": 4, "modification": 7}


class Bench:
    """Two files of ten rows; `said`: what each task says; `told`: what it was told after the inputs."""

    def __init__(self, stats: dict[str, Any] = STATS, said: dict[str, Any] | None = None, **footer: Any) -> None:
        self.table = FakeTable()
        self.table.commit({"metaData": METADATA | {"partitionColumns": []}})
        self.table.commit(*(add(name, partitionValues={}, stats=json.dumps(stats)) for name in "xy"))
        self.scala = FakeCopies(self.table, (FOOTER, FOOTER | footer), {})
        self.live = live_group(self.table, "x", "y")
        self.log = TableLog(self.scala, self.table.log().session, "file:///lake/t")  # type: ignore[arg-type]
        snapshot = self.log.transaction().snapshot()
        paths = OutputPaths(self.scala, self.log, snapshot, self.log.shape(snapshot), PREFIX)  # type: ignore[arg-type]
        self.tasks = ParquetTasks(self.scala, self.log, paths, ParquetClasses())  # type: ignore[arg-type]
        self.said, self.told = {"attempt": 0} | (said or {}), list[tuple[Any, ...]]()
        self.scala.group.scattered = self.scala.group.sampled = self._run

    def _run(self, _context: Any, *given: Any) -> str:
        self.told.append(given[3:])
        return json.dumps(self.said)

    def find(self, stored: Storage = STORED) -> CellScatter | None:
        return find_scatter(self.scala, self.tasks, COLUMNS, self.live, stored)

    @property
    def scatter(self) -> CellScatter:
        found = self.find()
        assert found is not None
        return found


def test_a_task_gets_the_cuts_as_files_store_values_and_says_what_it_wrote() -> None:
    bench = Bench(STATS | {"tightBounds": True}, {"outputs": [MADE]})
    left, right = CellOutput(None), CellOutput(None)
    route = Fork(Cut(0, 3), left, Fork(Cut(1, int.from_bytes(b"m".ljust(32, b"\0"))), right, left))
    (written,) = bench.scatter.write(bench.live, route, 5)
    _folder, _prefix, suffix, codec, hidden, columns, cuts, first, count = bench.told[0]
    assert (suffix, codec, first, count) == (".c000.snappy.parquet", "SNAPPY", 5, 2)
    assert [json.loads(one) for one in (hidden, columns)] == [[[], []], [["v"], ["t"]]]
    assert json.loads(cuts) == [[0, 3, -1, 1], [1, "6d", -2, -1]]
    found = json.loads(written.json)
    assert (found["path"], found["size"], found["dataChange"]) == ("o", 50, False)
    assert json.loads(found["stats"]) == {"numRecords": 4, "tightBounds": True}


def test_rows_are_points_by_their_values_in_the_files() -> None:
    bench = Bench(said={"rows_read": [[7, "61"], [None, None]]})
    points = bench.scatter.points(bench.live, 3)
    assert points == [(7, int.from_bytes(b"a".ljust(32, b"\0"))), (NULL, NULL)]
    assert bench.told[0][-1] == 3


def test_an_obstacle_or_too_many_hidden_rows_leave_the_run_to_spark() -> None:
    bench = Bench(said={"obstacle": "damaged"})
    output = CellOutput(None)
    with pytest.raises(LeftToSpark):
        bench.scatter.write(bench.live, output, 0)
    with pytest.raises(LeftToSpark):
        bench.scatter.points(bench.live, 1)
    bench.scala.row_vectors.hidden = lambda *given: None if given[-1] == MOST_HIDDEN_ROWS else "[[],[]]"
    with pytest.raises(LeftToSpark):
        bench.scatter.points(bench.live, 1)
    assert len(bench.told) == 2


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        ({}, True),
        ({"codecs": ["zstd"]}, True),
        ({"created_by": "another"}, True),
        ({"obstacle": "int96"}, False),
        ({"columns": "others"}, False),
        ({"keys": ["org.apache.spark.legacyDateTime"]}, False),
    ],
)
def test_files_that_may_not_be_merged_by_column_are_left_to_spark(changes: dict[str, Any], is_found: bool) -> None:
    assert (Bench(**changes).find() is not None) is is_found


def test_columns_without_a_plain_order_or_without_bounds_are_left_to_spark() -> None:
    assert Bench().find(replace(STORED, schemas=((V,),))) is None
    assert Bench().find(replace(STORED, codec_bytes={})) is None
    assert Bench({"numRecords": 10}).find() is None
    not_finite = STATS | {"maxValues": {"v": 5, "t": "z", "x": "NaN"}}
    assert Bench(not_finite).find() is None
    bench = Bench()
    bench.tasks.classes._are_usable = False
    assert bench.find() is None


def test_a_group_of_some_files_has_their_bytes() -> None:
    bench = Bench()
    some = of_files(bench.live, bench.live.inputs[1:])
    assert [one.file.path for one in some.inputs] == ["y"] == [file.path for file in some.group.files]
