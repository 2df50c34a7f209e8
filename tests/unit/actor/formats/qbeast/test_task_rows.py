"""What tasks on rows of an index are told, and which rows they are left."""

import json
from dataclasses import replace
from typing import Any

import pytest

from actor.formats.delta.row_tasks import LeftToSpark
from actor.formats.qbeast import task_rows
from actor.formats.qbeast.index_rows import Places
from actor.formats.qbeast.task_rows import TaskRows, find_task_rows
from shared.formats.qbeast.files import MAX_WEIGHT, Block
from shared.formats.qbeast.placement import RowCount
from shared.formats.qbeast.transformations import Coordinate, encode_coordinates
from tests.support.fake_row_tasks import MADE, STATS, STORED, FakeRowTasks

COORDINATES = (Coordinate("linear", "v", "LongDataType", 0.0, 0.1), Coordinate("hashing", "t", null="7"))
RULES, TYPES = encode_coordinates(COORDINATES), '["long", "string"]'
INDEX = ("ofIndex", RULES, '{"": {"": 5}}')


class Bench(FakeRowTasks):
    """Two files with an indexed number and an indexed text."""

    def find(self, coordinates: tuple[Coordinate, ...] = COORDINATES) -> TaskRows | None:
        return find_task_rows(self.scala, self.tasks, coordinates, self.live, STORED)

    @property
    def rows(self) -> TaskRows:
        found = self.find()
        assert found is not None
        return found


@pytest.fixture(autouse=True)
def schema(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [{"name": "v", "type": "long"}, {"name": "t", "type": "string"}]
    monkeypatch.setattr("actor.formats.delta.log.TableShape.fields", fields)


def test_rows_are_counted_by_their_block_in_their_file_and_their_cube() -> None:
    bench = Bench(said={"read": [["x", "A", "", 3, -7], ["y", "", "", 2, 9]]})
    blocks = {"x": [Block("A", 1, 8, 3)], "y": [Block("", 2, MAX_WEIGHT, 2)]}
    found = bench.rows.counted(Places({"": 5}, blocks))
    assert found == {("x", "A", ""): RowCount(3, -7), ("y", "", ""): RowCount(2, 9)}
    in_files = "ofFiles", RULES, json.dumps({"x": {"A": 8}, "y": {"": MAX_WEIGHT}})
    assert bench.told[0][-2:] == ('[["v"], ["t"]]', ("CubeCount", TYPES, '["x", "y"]', in_files, INDEX))


def test_rows_of_no_block_are_counted_by_cubes_or_by_levels_below_them() -> None:
    bench = Bench(said={"read": []})
    assert bench.rows.rules == (TYPES, RULES)
    bench.rows.counted(Places({"": 5}))
    bench.rows.counted(Places({"": 5}, levels=True))
    below = ("ofPlaces", *INDEX[1:])
    assert [told[-1][3:] for told in bench.told] == [(None, INDEX), (None, below)]
    assert bench.rows.total() == 20


def test_ranges_are_those_of_files_that_have_rows() -> None:
    of_x = [{"low": 1, "high": 5, "outside": False}, {"low": None, "high": None, "outside": False}]
    bench = Bench(said={"read": [of_x, None]})
    assert bench.rows.ranges() == {"x": of_x}
    assert bench.told[0][-1] == ("ValueRanges", TYPES, 2)
    without = bench.find(())
    assert without is not None
    assert (without.ranges(), len(bench.told)) == ({"x": [], "y": []}, 1)


def test_each_row_is_written_into_the_file_of_its_cube() -> None:
    bench = Bench(said={"outputs": [MADE]})
    planned = [[Block("", 1, 5, 2), Block("A", 1, 8, 3)], [Block("g", 1, 8, 3)]]
    (written,) = bench.rows.write(bench.live, Places({"": 5}), planned)
    assert (written.file.path, written.file.rows) == ("o", 4)
    assert bench.told[0][-3:] == (("CubeRoute", TYPES, INDEX, '{"": 0, "A": 0, "g": 1}'), 0, 2)
    bench.said |= {"obstacle": "damaged"}
    with pytest.raises(LeftToSpark):
        bench.rows.write(bench.live, Places({"": 5}), planned)


def test_many_bytes_rows_that_are_not_counted_and_columns_that_are_not_plain_are_left_to_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Bench({name: value for name, value in STATS.items() if name != "numRecords"}).find() is None
    assert Bench(obstacle="int96").find() is None
    odd: Any = (replace(COORDINATES[0], column="t"),)
    assert Bench().find(odd) is None
    bench = Bench()
    monkeypatch.setattr(task_rows, "MOST_BYTES", bench.live.group.bytes)
    assert bench.find() is not None
    monkeypatch.setattr(task_rows, "MOST_BYTES", bench.live.group.bytes - 1)
    assert bench.find() is None
    monkeypatch.setattr(task_rows, "MOST_BYTES", bench.live.group.bytes)
    monkeypatch.setattr(task_rows, "MOST_ROWS", 19)
    assert bench.find() is None
