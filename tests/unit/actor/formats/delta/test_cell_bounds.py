"""Clustering columns of a Delta table: bounds, and values as files store them, have the numbers of rows."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from actor.cells.columns import CellColumn, Stored
from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.cell_bounds import box_in, box_of, cell_columns, is_bounded, read_statistics, stored_in
from actor.formats.delta.columns import Column
from shared.errors import RefusedFiles
from shared.layout.cells.boxes import EVERYTHING, NAN, NULL
from shared.layout.cells.tags import CELL_TAG
from shared.layout.key_values import number_of

LONG = CellColumn(("col-1",), ("a",), "long")


def column(kind: str) -> CellColumn:
    return CellColumn(("x",), ("x",), kind)


def logged(stats: object, **tags: str) -> LoggedFile:
    text = stats if isinstance(stats, str) else json.dumps(stats)
    add = {"path": "f", "size": 1, "partitionValues": {}, "stats": text, "tags": tags}
    return LoggedFile(decode_add(add, ()), encode(add))


def stats(low: object, high: object, nulls: int = 0) -> Mapping[str, Any]:
    return {"numRecords": 9, "minValues": {"x": low}, "maxValues": {"x": high}, "nullCount": {"x": nulls}}


@pytest.mark.parametrize(
    ("kind", "bound", "text"),
    [
        ("long", -7, "-7"),
        ("double", 0.1, "0.1"),
        ("float", 0.1, "0.1"),
        ("double", "-Infinity", "-Infinity"),
        ("date", "1969-12-31", "-1"),
        ("timestamp", "2023-11-14T22:13:20.123Z", "1700000000123456"),
        ("timestamp_ntz", "1969-12-31T23:59:59.999", "-1"),
        ("string", "ä" * 32, ("ä" * 40).encode()[:32].hex().upper()),
        ("string", "", ""),
    ],
)
def test_a_row_has_the_number_of_its_bound(kind: str, bound: object, text: str) -> None:
    ((low, high),) = box_in(stats(bound, bound), (column(kind),), is_new=False)
    assert column(kind).number(text) == low == high - 1


def test_decimals_are_exact_to_the_last_digit() -> None:
    kind = column("decimal(38,20)")
    digits = "123456789012345678.12345678901234567890"
    statistics = read_statistics(
        f'{{"numRecords":1,"nullCount":{{"x":0}},"minValues":{{"x":{digits}}},"maxValues":{{"x":{digits}}}}}'
    )
    ((low, _),) = box_in(statistics, (kind,), is_new=False)
    assert kind.number(digits) == low == int(digits.replace(".", "")) * 10**18
    assert kind.number(digits[:-1] + "1") == low + 10**18
    assert kind.below(low) == (f"coalesce(`x` < CAST('{digits.replace('.', '')}E-20' AS DECIMAL(38,20)), true)")
    assert kind.below(low + 1) == kind.below(low + 10**18), "a cut between two values is at the next"


WHOLE = {
    "long": Column(("x",), "INT64", "int", (64, 64)),
    "byte": Column(("x",), "INT32", "int", (32, 8)),
    "date": Column(("x",), "INT32", "date"),
    "timestamp": Column(("x",), "INT64", "timestamp", ("MICROS", True)),
    "timestamp_ntz": Column(("x",), "INT64", "timestamp", ("MICROS", False)),
    "decimal(10,2)": Column(("x",), "INT64", "decimal", (10, 2)),
    "string": Column(("x",), "BINARY", "text"),
}


def stored(kind: str) -> Stored:
    found = stored_in([(WHOLE[kind],)], column(kind))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("long", -7, "-7"),
        ("byte", 7, "7"),
        ("date", -1, "-1"),
        ("timestamp", 1_700_000_000_123_456, "1700000000123456"),
        ("timestamp_ntz", -1, "-1"),
        ("decimal(10,2)", -1234, "-12.34"),
        ("string", ("ä" * 40).encode().hex(), ("ä" * 40).encode()[:32].hex().upper()),
        ("string", "", ""),
        ("long", None, None),
    ],
)
def test_a_row_has_the_same_number_as_files_store_it(kind: str, value: int | str | None, text: str | None) -> None:
    assert stored(kind).number(value) == column(kind).number(text)


@pytest.mark.parametrize(
    ("kind", "at", "bound"),
    [
        ("long", 5, 5),
        ("date", 719_163, 0),
        ("timestamp", 5000, 5000),
        ("decimal(10,2)", 10**36, 1),
        ("decimal(10,2)", 10**36 + 1, 2),
        ("decimal(10,2)", -(10**36) - 1, -1),
        ("string", int.from_bytes(b"ab".ljust(32, b"\0")), "6162"),
        # Only a tag that is wrong names numbers that the type does not have.
        ("long", NAN, None),
        ("long", 1 << 63, None),
        ("long", NULL + 1, -(1 << 63)),
        ("string", NULL + 1, ""),
        ("string", NAN, "ff" * 32),
    ],
)
def test_a_cut_bounds_values_as_files_store_them(kind: str, at: int, bound: int | str | None) -> None:
    assert stored(kind).bound(at) == bound


@pytest.mark.parametrize(
    ("kind", "leaf"),
    [
        ("long", replace(WHOLE["long"], path=("y",))),
        ("long", replace(WHOLE["long"], kind="uint")),
        ("string", replace(WHOLE["string"], kind="bytes")),
        ("date", WHOLE["byte"]),
        ("timestamp", replace(WHOLE["timestamp"], detail=("MILLIS", True))),
        ("timestamp", Column(("x",), "INT96", "int96")),
        ("decimal(10,2)", replace(WHOLE["decimal(10,2)"], physical="FIXED_LEN_BYTE_ARRAY")),
        ("decimal(10,2)", replace(WHOLE["decimal(10,2)"], detail=(10, 1))),
        ("double", Column(("x",), "DOUBLE", "double")),
        ("float", WHOLE["long"]),
    ],
)
def test_other_ways_to_store_a_column_have_no_plain_order(kind: str, leaf: Column) -> None:
    assert stored_in([(leaf,)], column(kind)) is None
    if kind in WHOLE:
        assert stored_in([(WHOLE[kind],), (leaf,)], column(kind)) is None


def test_files_of_others_may_hold_nan_beyond_their_bounds_and_ours_do_not() -> None:
    columns = (column("double"),)
    low, high = number_of(1.5, "double"), number_of(2.5, "double")
    assert high is not None
    assert box_of(columns, logged(stats(1.5, 2.5))) == ((low, NAN + 1),)
    assert box_of(columns, logged(stats(1.5, 2.5), **{CELL_TAG: "[]"})) == ((low, high + 1),)
    assert box_of(columns, logged(stats(None, None, 9))) == ((NULL, NULL + 1),)


@pytest.mark.parametrize("text", ["", "no JSON", "7"])
def test_a_file_without_statistics_may_hold_everything(text: str) -> None:
    assert box_of((LONG,), logged(text)) == (EVERYTHING,)
    assert not is_bounded(read_statistics(text), LONG)


def test_whether_there_are_bounds_does_not_depend_on_nulls_and_nan() -> None:
    assert is_bounded(stats(-1, "NaN", 3), column("double"))
    assert is_bounded(stats(None, None, 9), column("long"))
    assert not is_bounded(stats(None, None, 3), column("long"))
    assert not is_bounded(stats("+10000-01-01", "+10000-01-01"), column("date"))


MAPPED = {"delta.columnMapping.physicalName": "col-1"}
SCHEMA = {
    "fields": [
        {"name": "a", "type": "long", "metadata": MAPPED},
        {
            "name": "s",
            "type": {"type": "struct", "fields": [{"name": "b", "type": "date"}, {"name": "c", "type": "boolean"}]},
        },
    ]
}
NOTED = {
    "fields": [{"name": "minValues", "type": {"fields": [{"name": "col-1", "type": "long"}, SCHEMA["fields"][1]]}}]
}


def test_columns_are_found_by_their_names_in_files() -> None:
    metadata = {"schemaString": json.dumps(SCHEMA)}
    found = cell_columns([("col-1",), ("s", "b")], metadata, NOTED, "file:///t")
    assert found == (LONG, CellColumn(("s", "b"), ("s", "b"), "date"))


@pytest.mark.parametrize(
    ("path", "noted", "name"),
    [
        (("col-1",), {"fields": []}, "a"),
        (("s", "b"), {"fields": [{"name": "minValues", "type": {"fields": []}}]}, "s.b"),
        (("s", "c"), NOTED, "s.c"),
        (("s",), NOTED, "s"),
        (("gone",), NOTED, "gone"),
    ],
)
def test_a_column_without_bounds_is_refused(path: tuple[str, ...], noted: Mapping[str, Any], name: str) -> None:
    with pytest.raises(RefusedFiles, match=f"'{name}'"):
        cell_columns([path], {"schemaString": json.dumps(SCHEMA)}, noted, "file:///t")
