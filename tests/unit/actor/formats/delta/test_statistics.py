"""Statistics of outputs are completed exactly, from bounds as Parquet stores them, and only with what inputs had."""

import json
from typing import Any

import pytest

from actor.formats.delta.chunk_bounds import Bounds, decode_bounds
from actor.formats.delta.columns import Column
from actor.formats.delta.exact_values import NOT_EXACT, checked_columns, refusal
from actor.formats.delta.output_format import choose_codec
from actor.formats.delta.statistics import columns_to_complete, completed
from actor.formats.parquet.file_columns import LeafCounts
from shared.errors import RefusedFiles
from shared.refusals import RefusalReason
from tests.support.java_errors import JavaError

BOOLEAN = Column(("b",), "BOOLEAN", "boolean")
LONG = Column(("l",), "INT64", "int", (64,))
STAMP = Column(("t",), "INT64", "timestamp", ("MICROS", True))
TEXT = Column(("s",), "BINARY", "text")
INNER = Column(("g", "b"), "BOOLEAN", "boolean")
NESTED = Column(("a", "[]"), "BOOLEAN", "boolean", nested=True)
COLUMNS = [BOOLEAN, LONG, STAMP, TEXT, INNER, NESTED]


def test_only_what_an_input_had_is_searched() -> None:
    ours = '{"numRecords":1,"minValues":{"l":1},"nullCount":{"l":0,"b":0}}'
    assert columns_to_complete(ours, ["", '{"minValues":{"l":0}}'], COLUMNS) == []
    assert columns_to_complete(ours, ["{}", '{"minValues":{"b":false,"g":{"b":true}}}'], COLUMNS) == [BOOLEAN, INNER]
    assert columns_to_complete(ours, ['{"nullCount":{"s":0}}'], COLUMNS) == [TEXT]


def test_cut_timestamps_are_completed_even_if_only_the_output_has_them() -> None:
    assert columns_to_complete('{"maxValues":{"t":"2024-01-01T00:00:00.999Z"}}', [], COLUMNS) == [STAMP]


def test_bounds_are_written_as_the_protocol_says() -> None:
    had = json.dumps({"minValues": {"b": True, "s": "", "t": "x", "d": "x", "m": 1}, "nullCount": {"b": 1}})
    day, small = Column(("d",), "INT32", "date"), Column(("m",), "INT32", "decimal", (9, 2))
    bounds = {
        BOOLEAN: Bounds(False, True, 3),
        STAMP: Bounds(-62135596800000000, 253402300799999999, 0),
        TEXT: Bounds(b"a" * 40, b"z" * 40, 0),
        day: Bounds(-719162, 2932896, 0),
        small: Bounds(-5, 12345, 0),
    }
    assert json.loads(completed('{"numRecords":9}', [had], bounds)) == {
        "numRecords": 9,
        "nullCount": {"b": 3},
        "minValues": {
            "b": False, "t": "0001-01-01T00:00:00.000000Z", "s": "a" * 32, "d": "0001-01-01", "m": -0.05
        },
        "maxValues": {
            "b": True, "t": "9999-12-31T23:59:59.999999Z", "s": "z" * 32 + "\U0010ffff", "d": "9999-12-31", "m": 123.45
        },
    }  # fmt: skip


@pytest.mark.parametrize("bad", [b"\xff\xfe", b"a" * 32 + "\U0010ffff\U0010ffff".encode()])
def test_no_bound_is_tighter_than_the_data(bad: bytes) -> None:
    stats = json.loads(completed("{}", ['{"maxValues":{"s":"x"}}'], {TEXT: Bounds(bad, bad, 0)}))
    assert "s" not in stats.get("maxValues", {})


def test_a_column_of_nulls_has_a_count_and_no_bounds() -> None:
    had = '{"minValues":{"b":true},"nullCount":{"b":0}}'
    assert json.loads(completed("{}", [had], {BOOLEAN: Bounds(None, None, 7)})) == {"nullCount": {"b": 7}}


@pytest.mark.parametrize(
    ("configuration", "codec_bytes", "chosen"),
    [
        ({}, {"snappy": 10, "zstd": 20}, "zstd"),
        ({"delta.parquet.compression.codec": "NONE"}, {"snappy": 10}, "uncompressed"),
        ({"delta.parquet.compression.codec": "magic"}, {"gzip": 10}, "gzip"),
        ({}, {"brotli": 99, "snappy": 1}, "snappy"),
        ({}, {"brotli": 99}, None),
        ({}, {}, None),
    ],
)
def test_the_tables_codec_goes_first_then_that_of_most_bytes(
    configuration: dict[str, str], codec_bytes: dict[str, int], chosen: str | None
) -> None:
    assert choose_codec(configuration, codec_bytes) == chosen


def maximum(column: Column, greatest: object) -> object:
    """Return the upper bound that is written for this one of the footer, None where none is."""
    stats = json.loads(
        completed("{}", [f'{{"maxValues":{{"{column.path[0]}":1}}}}'], {column: Bounds(greatest, greatest, 0)})
    )
    return stats.get("maxValues", {}).get(column.path[0])


@pytest.mark.parametrize(
    ("column", "greatest", "written"),
    [
        (Column(("f",), "DOUBLE", "double"), 1.5, 1.5),
        (Column(("f",), "DOUBLE", "double"), float("nan"), None),
        (Column(("f",), "FLOAT", "float"), float("inf"), None),
        (STAMP, 10**18, None),
        (Column(("d",), "INT32", "date"), 10**7, None),
        (Column(("x",), "INT64", "time_micros"), 7, None),
        (Column(("s",), "BINARY", "text"), b"short", "short"),
    ],
)
def test_a_bound_that_json_has_no_word_for_is_left_out(column: Column, greatest: object, written: object) -> None:
    assert maximum(column, greatest) == written


def test_a_field_of_a_struct_is_completed_inside_of_it() -> None:
    stats = completed("{}", ['{"minValues":{"g":{"b":true}}}'], {INNER: Bounds(False, True, 2)})
    assert json.loads(stats) == {"minValues": {"g": {"b": False}}, "maxValues": {"g": {"b": True}}}


@pytest.mark.parametrize("broken", ["no JSON", '{"minValues":', "[]"])
def test_statistics_that_are_no_json_object_have_no_bounds_and_hide_none_of_others(broken: str) -> None:
    bounds = {BOOLEAN: Bounds(False, True, 0)}
    assert columns_to_complete(broken, [broken], COLUMNS) == []
    assert completed(broken, [broken], bounds) == "{}"
    assert json.loads(completed(broken, [broken, '{"nullCount":{"b":1}}'], bounds)) == {"nullCount": {"b": 0}}


NUMBER = Column(("n",), "INT64", "int", (64,))
OTHER_TEXT = Column(("t",), "BINARY", "text")
DECIMAL = Column(("d",), "FIXED_LEN_BYTE_ARRAY", "decimal", (10, 2))


@pytest.mark.parametrize(
    ("column", "least", "greatest", "expected"),
    [
        (Column(("b",), "BOOLEAN", "boolean"), "false", "true", (False, True)),
        (Column(("i",), "INT32", "int", (32,)), "-3", "4", (-3, 4)),
        (NUMBER, "-3", "9007199254740993", (-3, 9007199254740993)),
        (Column(("f",), "FLOAT", "float"), "-Infinity", "0.1", (float("-inf"), 0.10000000149011612)),
        (Column(("g",), "DOUBLE", "double"), "0.5", "1e300", (0.5, 1e300)),
        (OTHER_TEXT, "61", "c3a4", (b"a", "ä".encode())),
        (DECIMAL, "ff38", "0100", (-200, 256)),
    ],
)
def test_bounds_are_read_as_parquet_stores_them(
    column: Column, least: str, greatest: str, expected: tuple[Any, Any]
) -> None:
    leaf = LeafCounts(9, 2, is_bounded=True, least=least, greatest=greatest)
    assert decode_bounds(leaf, column) == Bounds(*expected, 2)


def test_a_column_of_nulls_has_no_bounds_and_of_others_all_must_be_known() -> None:
    assert decode_bounds(LeafCounts(7, 7, is_bounded=True), NUMBER) == Bounds(None, None, 7)
    assert decode_bounds(LeafCounts(9, 2), NUMBER) is None
    assert decode_bounds(LeafCounts(9, None, is_bounded=True, least="1", greatest="2"), NUMBER) is None
    assert decode_bounds(LeafCounts(0, 0, is_bounded=True), NUMBER) is None, "of a file without row groups"


def field(name: str, type_: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def stored(kind: str, *path: str, bits: int = 8) -> Column:
    return Column(path, "INT32" if kind == "uint" else "BINARY", kind, (32, bits) if kind == "uint" else ())


def test_texts_that_are_stored_as_texts_are_not_checked() -> None:
    assert checked_columns([field("t", "string")], [stored("text", "t")]) == {}
    assert checked_columns([field("b", "binary")], [stored("bytes", "b")]) == {}


def test_a_text_that_a_file_stores_as_bytes_has_to_be_utf_8() -> None:
    found = checked_columns([field("it's", "string")], [stored("text", "it's"), stored("bytes", "IT'S")])
    assert found == {
        "it's": f"if(coalesce(is_valid_utf8(`it's`), true), `it's`, raise_error('{NOT_EXACT}[it\\'s]'))",
    }


def test_leaves_are_found_at_each_depth_by_their_names_in_files() -> None:
    of_texts = {"type": "array", "elementType": "string", "containsNull": True}
    mapping = {"type": "map", "keyType": "string", "valueType": of_texts, "valueContainsNull": True}
    struct = {"type": "struct", "fields": [field("m", mapping, **{"delta.columnMapping.physicalName": "c1"})]}
    leaf = stored("bytes", "s", "c1", "value", "[]")
    (condition,) = checked_columns([field("s", struct)], [leaf]).values()
    inner = "coalesce(forall(e0, e1 -> coalesce(is_valid_utf8(e1), true)), true)"
    assert f"coalesce(forall(map_values(`s`.`m`), e0 -> {inner}), true)" in condition
    assert "map_keys" not in condition


@pytest.mark.parametrize(("bits", "declared"), [(8, "byte"), (8, "short"), (16, "short"), (32, "long")])
def test_unsigned_integers_must_not_have_become_negative(bits: int, declared: str) -> None:
    found = checked_columns([field("u", declared)], [stored("uint", "u", bits=bits)])
    assert "coalesce(`u` >= 0, true)" in found["u"]


@pytest.mark.parametrize(("bits", "declared"), [(16, "byte"), (32, "integer"), (64, "long")])
def test_unsigned_integers_that_spark_reads_only_as_a_wider_type_are_refused_before_anything_is_written(
    bits: int, declared: str
) -> None:
    with pytest.raises(RefusedFiles, match=f"'u' .* does not read as {declared}"):
        checked_columns([field("u", declared)], [stored("uint", "u", bits=bits)])


def test_only_the_error_of_such_a_value_is_a_refusal() -> None:
    assert refusal(ValueError("another one"), "/t") is None


def test_the_error_of_such_a_value_refuses_the_files_and_names_the_column() -> None:
    error = JavaError("SparkException", "SparkRuntimeException", message=f"[USER_RAISED_EXCEPTION] {NOT_EXACT}[it's]")
    found = refusal(error, "/t")
    assert found is not None
    assert (found.reason, found.field) == (RefusalReason.TYPES, "it's")
    assert str(found).startswith('files of /t are not rewritten: their column "it\'s" holds a text that is no UTF-8')


def test_a_type_that_a_user_defined_is_not_checked() -> None:
    """Spark writes it as it reads it, through the code of that type."""
    defined = {"type": "udt", "class": "org.example.PointUDT", "sqlType": "binary"}
    assert checked_columns([field("d", defined)], [stored("bytes", "d")]) == {}
