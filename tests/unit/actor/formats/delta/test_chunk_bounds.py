"""Bounds of a column over all row groups of a file; what a row group leaves out is left out."""

from typing import Any

import pytest

from actor.formats.delta.chunk_bounds import Bounds, decode_bounds
from actor.formats.delta.columns import Column
from actor.formats.parquet.file_columns import LeafCounts

NUMBER = Column(("n",), "INT64", "int", (64,))
TEXT = Column(("t",), "BINARY", "text")
DECIMAL = Column(("d",), "FIXED_LEN_BYTE_ARRAY", "decimal", (10, 2))


@pytest.mark.parametrize(
    ("column", "least", "greatest", "expected"),
    [
        (Column(("b",), "BOOLEAN", "boolean"), "false", "true", (False, True)),
        (Column(("i",), "INT32", "int", (32,)), "-3", "4", (-3, 4)),
        (NUMBER, "-3", "9007199254740993", (-3, 9007199254740993)),
        (Column(("f",), "FLOAT", "float"), "-Infinity", "0.1", (float("-inf"), 0.10000000149011612)),
        (Column(("g",), "DOUBLE", "double"), "0.5", "1e300", (0.5, 1e300)),
        (TEXT, "61", "c3a4", (b"a", "ä".encode())),
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
