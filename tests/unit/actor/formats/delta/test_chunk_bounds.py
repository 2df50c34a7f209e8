"""Bounds of a column over all row groups, whichever way the footer is read; what one chunk leaves out is left out."""

from types import SimpleNamespace
from typing import Any

import pytest

from actor.formats.delta.chunk_bounds import Bounds, bounds_of_chunks, decode_bounds
from actor.formats.delta.columns import Column
from actor.formats.parquet.file_columns import LeafCounts
from tests.support.fake_delta_table import JavaList

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


class Value:
    """Bytes as parquet-java hands them out."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def getBytes(self) -> bytes:  # noqa: N802 - parquet-java's name
        return self._raw


def chunk(least: Any = None, greatest: Any = None, *, nulls: int | None = 0, values: int = 10) -> Any:
    statistics = SimpleNamespace(
        isEmpty=lambda: least is None and nulls is None,
        isNumNullsSet=lambda: nulls is not None,
        getNumNulls=lambda: nulls,
        hasNonNullValue=lambda: least is not None,
        genericGetMin=lambda: least,
        genericGetMax=lambda: greatest,
    )
    return SimpleNamespace(getStatistics=lambda: statistics, getValueCount=lambda: values)


def footer(*row_groups: list[Any]) -> Any:
    return SimpleNamespace(
        getBlocks=lambda: [SimpleNamespace(getColumns=lambda one=one: _list(one)) for one in row_groups]
    )


def _list(chunks: list[Any]) -> JavaList:
    found = JavaList(chunks)
    found.get = found.__getitem__  # type: ignore[attr-defined]
    return found


def bounds(*row_groups: list[Any]) -> dict[Column, Bounds]:
    return bounds_of_chunks(footer(*row_groups), {NUMBER: 0, TEXT: 1})


def test_chunks_are_joined_over_all_row_groups() -> None:
    first = [chunk(3, 9, nulls=1), chunk(Value(b"b"), Value(b"x"))]
    second = [chunk(1, 4, nulls=2), chunk(Value(b"a"), Value(b"c"), nulls=5)]
    assert bounds(first, second) == {NUMBER: Bounds(1, 9, 3), TEXT: Bounds(b"a", b"x", 5)}


def test_a_chunk_of_nulls_adds_its_nulls_alone() -> None:
    nulls = [chunk(nulls=10), chunk(nulls=10)]
    assert bounds([chunk(3, 9), chunk(nulls=10)], nulls) == {NUMBER: Bounds(3, 9, 10), TEXT: Bounds(None, None, 20)}


SILENT = {
    "no statistics": SimpleNamespace(getStatistics=lambda: None),
    "empty ones": chunk(nulls=None),
    "an unknown number of nulls": chunk(1, 2, nulls=None),
    "values without bounds": chunk(nulls=3),
}


@pytest.mark.parametrize("silent", SILENT.values(), ids=SILENT)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_column_that_one_chunk_says_nothing_of_is_left_out(silent: Any, is_first: bool) -> None:
    groups = [[silent, chunk(Value(b"a"), Value(b"b"))], [chunk(1, 2), chunk(Value(b"c"), Value(b"d"))]]
    assert bounds(*(groups if is_first else groups[::-1])) == {TEXT: Bounds(b"a", b"d", 0)}


def test_a_file_without_row_groups_has_no_bounds() -> None:
    assert bounds() == {}
