"""What the tasks of a run on cells are told, and which runs are left to Spark."""

import json
from dataclasses import replace
from typing import Any

from actor.cells.columns import CellColumn
from actor.formats.delta.cell_scatter import CellScatter, find_scatter, of_files
from actor.formats.delta.footers import Storage
from shared.layout.cells.boxes import NULL
from shared.layout.cells.routes import CellOutput, Fork
from shared.layout.cells.tree import Cut
from tests.support.fake_row_tasks import MADE, STATS, STORED, FakeRowTasks, V

COLUMNS = CellColumn(("v",), ("v",), "long"), CellColumn(("t",), ("t",), "string")


def find(bench: FakeRowTasks, stored: Storage = STORED) -> CellScatter | None:
    return find_scatter(bench.scala, bench.tasks, COLUMNS, bench.live, stored)


def found(bench: FakeRowTasks) -> CellScatter:
    scatter = find(bench)
    assert scatter is not None
    return scatter


def told_cuts(told: tuple[Any, ...]) -> Any:
    kind, cuts = told[-3]
    assert kind == "CutTree"
    return json.loads(cuts)


def test_a_task_gets_the_cuts_as_files_store_values_and_says_what_it_wrote() -> None:
    bench = FakeRowTasks(said={"outputs": [MADE]})
    left, right = CellOutput(None), CellOutput(None)
    route = Fork(Cut(0, 3), left, Fork(Cut(1, int.from_bytes(b"m".ljust(32, b"\0"))), right, left))
    (written,) = found(bench).write(bench.live, route, 5)
    assert json.loads(bench.told[0][5]) == [["v"], ["t"]]
    assert told_cuts(bench.told[0]) == [[0, 3, -1, 1], [1, "6d", -2, -1]]
    assert bench.told[0][-2:] == (5, 2)
    assert written.file.path == "o"


def test_rows_are_points_by_their_values_in_the_files() -> None:
    bench = FakeRowTasks(said={"read": [[7, "61"], [None, None]]})
    points = found(bench).points(bench.live.inputs, 3)
    assert points == [(7, int.from_bytes(b"a".ljust(32, b"\0"))), (NULL, NULL)]
    assert bench.told[0][-1] == ("RowSample", 3)


def test_columns_without_a_plain_order_or_without_bounds_are_left_to_spark() -> None:
    assert find(FakeRowTasks(), replace(STORED, schemas=((V,),))) is None
    assert find(FakeRowTasks({"numRecords": 10})) is None
    assert find(FakeRowTasks(), replace(STORED, codec_bytes={})) is None
    assert find(FakeRowTasks(STATS)) is not None


def test_a_group_of_some_files_has_their_bytes() -> None:
    bench = FakeRowTasks()
    some = of_files(bench.live, bench.live.inputs[1:])
    assert [one.file.path for one in some.inputs] == ["y"] == [file.path for file in some.group.files]
