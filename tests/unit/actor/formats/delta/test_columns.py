"""How columns are stored in Parquet, which of them readers take for others, and which changes keep every value."""

import json
from typing import Any

import pytest

from actor.formats.delta.columns import Column, difference, fits, leaves
from actor.formats.delta.proofreading import leaf_columns, stored_fields
from actor.formats.delta.stored_schema import as_stored, columns_with_default
from actor.formats.parquet.file_columns import ParquetField
from actor.proofread.model import Field, FoundBy


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


def test_ids_of_rows_are_no_columns_and_structs_come_with_their_fields() -> None:
    columns = (Field("_row", "row_id"), Field("s", "struct", children=(Field("a", "int32"),)))
    assert [path for path, _, _ in leaf_columns(columns)] == [("s",), ("s", "a")]


def test_a_column_that_a_file_lacks_is_not_found_in_it() -> None:
    columns, stored = (Field("a", "int32"), Field("b", "int32")), ParquetField("b", physical="INT32")
    assert list(stored_fields(columns, [stored], FoundBy.NAME)) == [(("b",), stored)]


ID = {"delta.columnMapping.id": 3, "delta.columnMapping.physicalName": "col-3", "delta.typeChanges": [{}]}


def field(name: str, type_: Any, *, nullable: bool = False, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def metadata(*fields: dict[str, Any], **configuration: str) -> dict[str, Any]:
    schema = json.dumps({"type": "struct", "fields": list(fields)})
    return {"id": "t", "schemaString": schema, "partitionColumns": [], "configuration": configuration}


def stored(*fields: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(as_stored(metadata(*fields))["schemaString"])["fields"]
    return found


def test_everything_may_be_null_at_each_depth() -> None:
    array = {"type": "array", "elementType": "integer", "containsNull": False}
    mapping = {"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": False}
    struct = {"type": "struct", "fields": [field("m", mapping)]}
    found = stored(field("s", struct))
    inner = found[0]["type"]["fields"][0]
    assert (found[0]["nullable"], inner["nullable"]) == (True, True)
    assert inner["type"]["valueContainsNull"] is True
    assert inner["type"]["valueType"]["containsNull"] is True


def test_of_a_fields_metadata_only_what_is_said_of_files_stays() -> None:
    """Whatever else an engine keeps there asks it to do something to values."""
    asks = {"delta.generationExpression": "a", "delta.invariants": "{}", "EXISTS_DEFAULT": "5", "anything new": 1}
    assert stored(field("a", "string", **ID, **asks))[0]["metadata"] == ID


def test_texts_of_a_declared_size_are_texts() -> None:
    kinds = [one["type"] for one in stored(*(field(kind, kind) for kind in ("char(3)", "varchar(10)", "date")))]
    assert kinds == ["string", "string", "date"]


def test_constraints_go_and_other_properties_stay() -> None:
    kept = {"delta.columnMapping.mode": "name", "lakewright.enabled": "true"}
    found = as_stored(metadata(field("a", "long"), **kept, **{"delta.constraints.positive": "a > 0"}))
    assert found["configuration"] == kept


def test_the_metadata_of_a_table_that_enforces_nothing_are_its_own() -> None:
    plain = metadata(field("a", "long", nullable=True))
    plain["schemaString"] = " " + plain["schemaString"]
    assert as_stored(plain) == plain


def test_a_default_that_is_null_is_none() -> None:
    fields = [
        field("a", "long", EXISTS_DEFAULT="NULL"),
        field("b", "long", EXISTS_DEFAULT="5", **ID),
        field("c", "long"),
    ]
    assert columns_with_default(metadata(*fields)) == {"b": "col-3"}


def test_a_default_of_null_or_of_a_partition_column_leaves_files_as_all_readers_see_them() -> None:
    """Spark writes a default of null as a cast, and the default of a partition column that it creates a table with."""
    fields = [
        *(field(name, "integer", EXISTS_DEFAULT=text) for name, text in (("a", "CAST(NULL AS INT)"), ("b", "null"))),
        field("day", "date", EXISTS_DEFAULT="DATE '2026-01-01'"),
        field("c", "string", EXISTS_DEFAULT="'NULL'"),
    ]
    assert columns_with_default(metadata(*fields) | {"partitionColumns": ["day"]}) == {"c": "c"}


def test_a_type_that_a_user_defined_stays_as_it_is() -> None:
    defined = {"type": "udt", "class": "org.example.PointUDT", "sqlType": {"type": "array", "containsNull": False}}
    assert stored(field("d", defined))[0]["type"] == defined
