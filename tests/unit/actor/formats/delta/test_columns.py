"""How columns are stored in Parquet, and which changes of that keep every value."""

from typing import Any

import pytest

from actor.formats.delta.columns import Column, difference, fits, leaves


def primitive(name: str, physical: str, original: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "repetition": "OPTIONAL", "logicalTypeAnnotation": None, "id": None, "primitive": True,
        "primitiveTypeName": physical, "originalType": original,
    } | more  # fmt: skip


def group(name: str, *fields: dict[str, Any], original: str | None = None, repetition: str = "OPTIONAL") -> Any:
    return {
        "name": name, "repetition": repetition, "primitive": False, "fields": list(fields), "originalType": original
    }  # fmt: skip


def column(kind: str, *detail: Any, physical: str = "INT64", **more: Any) -> Column:
    return Column(("c",), physical, kind, detail, **more)


INT96 = column("timestamp", "INT96", True, physical="INT96")
MICROS, NANOS, MILLIS = (column("timestamp", unit, True) for unit in ("MICROS", "NANOS", "MILLIS"))
LOCAL = column("timestamp", "MICROS", False)
DATE = column("date", physical="INT32")
INT, LONG = column("int", 32, physical="INT32"), column("int", 64)
FLOAT, DOUBLE = column("float", physical="FLOAT"), column("double", physical="DOUBLE")
TEXT, BYTES = column("text", physical="BINARY"), column("bytes", physical="BINARY")


def decimal(precision: int, scale: int, physical: str = "FIXED_LEN_BYTE_ARRAY") -> Column:
    return column("decimal", precision, scale, physical=physical)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (MICROS, MICROS), (INT96, MICROS), (MILLIS, MICROS), (LOCAL, LOCAL), (DATE, DATE), (DATE, LOCAL), (INT, LONG),
        (INT, DOUBLE), (FLOAT, DOUBLE), (decimal(10, 2), decimal(10, 2, "INT64")), (decimal(10, 2), decimal(12, 4)),
        (INT, decimal(12, 2)), (TEXT, BYTES), (LONG, decimal(20, 0)),
    ],
)  # fmt: skip
def test_what_holds_every_value_fits(given: Column, written: Column) -> None:
    assert fits(given, written)
    assert difference(given, written, mapped=True) == ""


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (MICROS, INT96), (NANOS, MICROS), (MICROS, MILLIS), (MICROS, LOCAL), (LOCAL, MICROS), (INT96, LOCAL),
        (INT96, INT96), (DATE, MICROS), (LONG, INT), (LONG, DOUBLE), (DOUBLE, FLOAT), (decimal(10, 2), decimal(10, 1)),
        (decimal(10, 2), decimal(10, 3)), (INT, decimal(10, 1)), (LONG, decimal(19, 0)), (TEXT, LONG), (INT, FLOAT),
    ],
)  # fmt: skip
def test_what_could_lose_a_value_does_not(given: Column, written: Column) -> None:
    assert not fits(given, written)
    assert "would become" in difference(given, written, mapped=False)


def test_nulls_and_field_ids_are_kept() -> None:
    assert "required" in difference(INT, column("int", 32, physical="INT32", required=True), mapped=False)
    numbered = column("int", 32, physical="INT32", field_id=3)
    assert "field id 3" in difference(numbered, INT, mapped=True)
    assert difference(numbered, INT, mapped=False) == ""


def test_wrappers_of_lists_and_maps_have_no_names() -> None:
    spark = group("l", group("list", primitive("element", "INT32"), repetition="REPEATED"), original="LIST")
    arrow = group("l", group("list", primitive("item", "INT32"), repetition="REPEATED"), original="LIST")
    old = group("l", primitive("array", "INT32", repetition="REPEATED"), original="LIST")
    found = [leaves({"fields": [one]}) for one in (spark, arrow, old)]
    assert {columns[0].path for columns in found} == {("l", "[]")}
    assert all(columns[0].nested for columns in found)
    pair = (primitive("key", "BINARY", "UTF8"), primitive("value", "BOOLEAN"))
    by_name = group("m", group("key_value", *pair, repetition="REPEATED"), original="MAP")
    assert [leaf.path for leaf in leaves({"fields": [by_name]})] == [("m", "key"), ("m", "value")]


def test_meanings_are_read_from_the_annotations() -> None:
    stamp = {"unit": "NANOS", "adjustedToUTC": True}
    schema = {
        "fields": [
            primitive("a", "INT64", logicalTypeAnnotation=stamp),
            primitive("b", "INT32", "INT_16", logicalTypeAnnotation={}),
            primitive("c", "INT32", "UINT_32", logicalTypeAnnotation={}),
            primitive("d", "INT96"),
            primitive("e", "FIXED_LEN_BYTE_ARRAY", "DECIMAL", logicalTypeAnnotation={"precision": 9, "scale": 2}),
            group("s", primitive("f", "BOOLEAN", repetition="REQUIRED"), repetition="OPTIONAL"),
        ]
    }
    found = {leaf.path[-1]: (leaf.kind, leaf.detail, leaf.required, leaf.nested) for leaf in leaves(schema)}
    assert found == {
        "a": ("timestamp", ("NANOS", True), False, False),
        "b": ("int", (32, 16), False, False),
        "c": ("uint", (32, 32), False, False),
        "d": ("timestamp", ("INT96", True), False, False),
        "e": ("decimal", (9, 2), False, False),
        "f": ("boolean", (), False, False),
    }


def test_field_ids_are_read_from_the_printed_schema() -> None:
    schema = {"fields": [primitive("a = 9;", "INT64"), group("s", primitive("b", "BINARY", "UTF8"))]}
    lines = ["optional int64 a = 9; = 1;", "optional group s = 2 {", "optional binary b (STRING);", "}", "}"]
    text = "\n".join(["message spark_schema {", *lines])
    assert [leaf.field_id for leaf in leaves(schema, text)] == [1, None]
    assert [leaf.field_id for leaf in leaves(schema, "something else")] == [None, None]


def test_bytes_without_a_meaning_are_bytes() -> None:
    (found,) = leaves({"fields": [primitive("b", "BINARY")]})
    assert (found.kind, found.detail) == ("bytes", ())
