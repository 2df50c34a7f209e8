"""Which indexed columns tasks read as files store them."""

from dataclasses import replace
from typing import Any

import pytest

from actor.formats.delta.columns import Column
from actor.formats.qbeast.stored_keys import StoredKey, stored_keys
from shared.formats.qbeast.transformations import Coordinate

LINE = Coordinate("linear", "C", "LongDataType")
DAY, INSTANT = replace(LINE, type="DateDataType"), replace(LINE, type="TimestampDataType")
HASH, BINS, NOTHING = replace(LINE, kind="hashing"), replace(LINE, kind="histogram"), replace(LINE, kind="constant")

INT, LONG = Column(("c",), "INT32", "int", (32, 32)), Column(("c",), "INT64", "int", (64, 64))
TEXT, DATE = Column(("c",), "BINARY", "text"), Column(("c",), "INT32", "date")
MICROS = Column(("c",), "INT64", "timestamp", ("MICROS", True))
DECIMAL = Column(("c",), "FIXED_LEN_BYTE_ARRAY", "decimal", (12, 3))
BOOLEAN, FLOAT, DOUBLE = (Column(("c",), kind.upper(), kind) for kind in ("boolean", "float", "double"))


def find(one: Coordinate, kind: Any, *leaves: Column) -> tuple[StoredKey, ...] | None:
    return stored_keys(
        [one], [{"name": "c", "type": kind}], [[Column(("x",), "INT32", "int"), leaf] for leaf in leaves]
    )


@pytest.mark.parametrize(
    ("one", "kind", "leaf"),
    [
        (LINE, "byte", INT),
        (LINE, "short", INT),
        (LINE, "integer", INT),
        (LINE, "long", LONG),
        (LINE, "float", FLOAT),
        (LINE, "double", DOUBLE),
        (LINE, "decimal(12,3)", DECIMAL),
        (LINE, "decimal(12,3)", replace(DECIMAL, physical="INT64")),
        (DAY, "date", DATE),
        (INSTANT, "timestamp", MICROS),
        (HASH, "string", TEXT),
        (HASH, "boolean", BOOLEAN),
        (HASH, "decimal(12,3)", DECIMAL),
        (BINS, "string", TEXT),
        (NOTHING, "boolean", BOOLEAN),
    ],
)
def test_columns_that_are_stored_as_spark_reads_them_are_keys(one: Coordinate, kind: str, leaf: Column) -> None:
    assert find(one, kind, leaf, leaf) == (StoredKey(("c",), kind),)


@pytest.mark.parametrize(
    ("one", "kind", "leaf"),
    [
        (LINE, "long", INT),
        (LINE, "integer", LONG),
        (LINE, "integer", replace(INT, kind="uint")),
        (LINE, "decimal(12,2)", DECIMAL),
        (LINE, "decimal(12,3)", LONG),
        (LINE, "long", DECIMAL),
        (LINE, "date", DATE),
        (LINE, "string", TEXT),
        (DAY, "timestamp", MICROS),
        (INSTANT, "date", DATE),
        (INSTANT, "timestamp_ntz", MICROS),
        (INSTANT, "timestamp", replace(MICROS, detail=("MILLIS", True))),
        (INSTANT, "timestamp", replace(MICROS, detail=("MICROS", False))),
        (HASH, "timestamp", MICROS),
        (HASH, "string", replace(TEXT, kind="bytes")),
        (HASH, "binary", replace(TEXT, kind="bytes")),
        (BINS, "long", LONG),
        (HASH, {"type": "struct"}, TEXT),
        (HASH, "string", replace(TEXT, path=("d",))),
    ],
)
def test_what_spark_reads_otherwise_or_maps_otherwise_is_left_to_it(one: Coordinate, kind: Any, leaf: Column) -> None:
    assert find(one, kind, leaf) is None


def test_a_column_has_its_name_in_files_and_all_files_and_columns_count() -> None:
    mapped = {"name": "c", "type": "long", "metadata": {"delta.columnMapping.physicalName": "col-7"}}
    leaf = replace(LONG, path=("col-7",))
    assert stored_keys([LINE], [mapped], [[leaf]]) == (StoredKey(("col-7",), "long"),)
    assert stored_keys([LINE], [mapped], [[leaf], [LONG]]) is None
    assert stored_keys([LINE, replace(LINE, column="gone")], [mapped], [[leaf]]) is None
    assert find(LINE, "long", LONG, INT) is None
