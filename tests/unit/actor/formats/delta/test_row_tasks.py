"""Which rewrites tasks on keys are exact for, and what they say of the files that they wrote."""

import json
from dataclasses import replace
from typing import Any

import pytest

from actor.formats.delta.columns import Column
from actor.formats.delta.footers import Storage
from actor.formats.delta.row_tasks import LeftToSpark, RowTasks, find_row_tasks
from actor.rewrite.late_rows import MOST_ROWS
from tests.support.fake_delta import live_group
from tests.support.fake_delta_table import add, remove, vector
from tests.support.fake_row_tasks import MADE, STATS, STORED, FakeRowTasks, T, V

ROUTE = object()


def find(bench: FakeRowTasks, stored: Storage = STORED) -> RowTasks | None:
    return find_row_tasks(bench.scala, bench.tasks, [("v",), ("t",)], bench.live, stored)


def found(bench: FakeRowTasks) -> RowTasks:
    tasks = find(bench)
    assert tasks is not None
    return tasks


def test_a_task_gets_the_keys_and_says_what_it_wrote() -> None:
    bench = FakeRowTasks(STATS | {"tightBounds": True}, {"outputs": [MADE]})
    (written,) = found(bench).write(bench.live, ROUTE, 5, 2)
    _folder, _prefix, suffix, codec, hidden, columns, route, first, count = bench.told[0]
    assert (suffix, codec, route, first, count) == (".c000.snappy.parquet", "SNAPPY", ROUTE, 5, 2)
    assert (hidden, json.loads(columns)) == (None, [["v"], ["t"]])
    logged = json.loads(written.json)
    assert (logged["path"], logged["size"], logged["dataChange"]) == ("o", 50, False)
    assert json.loads(logged["stats"]) == {"numRecords": 4, "tightBounds": True}


def test_an_obstacle_or_too_many_hidden_rows_leave_rows_to_spark() -> None:
    bench = FakeRowTasks(said={"obstacle": "damaged"})
    with pytest.raises(LeftToSpark):
        found(bench).write(bench.live, ROUTE, 0, 1)
    with pytest.raises(LeftToSpark):
        found(bench).read(bench.live.inputs, object())
    bench = with_vector(FakeRowTasks())
    bench.scala.row_vectors.hidden = lambda *given: None if given[-1] == MOST_ROWS else "all"
    with pytest.raises(LeftToSpark):
        found(bench).read(bench.live.inputs, object())
    assert bench.told == []


def with_vector(bench: FakeRowTasks) -> FakeRowTasks:
    """Have two rows of the first file be hidden."""
    bench.table.vectors["v"] = [3, 7]
    bench.table.commit(*(remove(name) for name in "xy"))
    stats = json.dumps(STATS)
    bench.table.commit(add("x", partitionValues={}, stats=stats, deletionVector=vector(2, "v")))
    bench.table.commit(add("y", partitionValues={}, stats=stats))
    bench.live = live_group(bench.table, "x", "y")
    return bench


def test_files_become_one_without_hidden_rows_and_a_file_without_rows_is_not_kept() -> None:
    bench = with_vector(FakeRowTasks(said=MADE))
    tags = {"lakewright.level": "3"}
    bench.live = replace(bench.live, group=replace(bench.live.group, tags=tags))
    (written,) = found(bench).merge(bench.live)
    suffix, codec, hidden = bench.told[0][2:]
    assert (suffix, codec, json.loads(hidden.text())) == (".c000.snappy.parquet", "SNAPPY", [[3, 7], []])
    logged = json.loads(written.json)
    assert (logged["path"], json.loads(logged["stats"]), logged["tags"]) == ("o", {"numRecords": 4}, tags)
    none = with_vector(FakeRowTasks(said=MADE | {"rows": 0}))
    with pytest.raises(LeftToSpark):
        found(none).merge(none.live)
    assert none.table.deleted == ["o"]


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
    assert (find(FakeRowTasks(**changes)) is not None) is is_found


def test_bounds_that_no_footer_has_no_codec_and_executors_without_the_classes_leave_rows_to_spark() -> None:
    assert find(FakeRowTasks(STATS | {"maxValues": {"v": 5, "t": "z", "x": "NaN"}})) is None
    assert find(FakeRowTasks(), replace(STORED, codec_bytes={})) is None
    bench = FakeRowTasks()
    bench.tasks.classes._are_usable = False
    assert find(bench) is None


@pytest.mark.parametrize(("mode", "is_found"), [("name", True), ("id", False)])
def test_columns_that_are_found_by_id_are_left_to_spark(mode: str, *, is_found: bool) -> None:
    """A file may hold one under the name that another has in the table."""
    details = {f"delta.columnMapping.{name}": value for name, value in (("id", 1), ("physicalName", "v"))}
    fields = [{"name": "a", "type": "long", "nullable": True, "metadata": details}]
    schema = json.dumps({"type": "struct", "fields": fields})
    metadata = {"schemaString": schema, "configuration": {"delta.columnMapping.mode": mode}}
    assert (find(FakeRowTasks(metadata=metadata)) is not None) is is_found


@pytest.mark.parametrize(("unit", "is_found"), [("MICROS", True), ("MILLIS", False)])
def test_columns_that_spark_never_writes_so_are_left_to_it(unit: str, *, is_found: bool) -> None:
    """A task keeps the form of instants in milliseconds, which is refused of an output."""
    instant = Column(("x",), "INT64", "timestamp", (unit, True))
    assert (find(FakeRowTasks(), replace(STORED, schemas=((V, T, instant),))) is not None) is is_found


@pytest.mark.parametrize("is_lost", [False, True])
def test_files_in_folders_of_values_that_the_output_would_not_name_are_left_to_spark(
    monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    bench = FakeRowTasks()
    monkeypatch.setattr(bench.tasks.paths, "loses_folder", lambda values, _: is_lost and values == {"p": "a"})
    found = find_row_tasks(bench.scala, bench.tasks, [("v",)], bench.live, STORED, {"p": "a"})
    assert (found is None) is is_lost
