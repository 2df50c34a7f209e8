"""Tags name a cell by the names in files; what names no cell of the columns costs bytes, and never rows."""

import json

import pytest

from shared.layout.cells.boxes import EVERYTHING, NAN, NULL, Box
from shared.layout.cells.tags import decode_cell, encode_cell

COLUMNS = (("col-1",), ("s", "b"))


@pytest.mark.parametrize("cell", [((NULL, 7), (-5, NAN + 1)), ((0, 1 << 256), (3, 4)), (EVERYTHING, EVERYTHING)])
def test_a_cell_is_read_back_as_it_was_written(cell: Box) -> None:
    assert decode_cell(encode_cell(cell, COLUMNS), COLUMNS) == cell


def test_open_sides_are_null_and_a_file_that_waits_names_no_cell() -> None:
    assert encode_cell(((NULL, 7), (-5, NAN + 1)), COLUMNS) == '[[["col-1"],null,7],[["s","b"],-5,null]]'
    assert encode_cell(None, COLUMNS) == "[]"
    assert decode_cell("[]", COLUMNS) is None


def test_a_cell_of_other_columns_is_none() -> None:
    text = encode_cell(((1, 2), (3, 4)), COLUMNS)
    assert decode_cell(text, COLUMNS[:1]) is None
    assert decode_cell(text, COLUMNS[::-1]) is None


@pytest.mark.parametrize(
    "text",
    ["", "{}", "7", '"a"', "[7]", "[[7, 1, 2]]", '[["col-1", 1]]', "[" * 100_000]
    + [json.dumps([[["col-1"], *span]]) for span in ([2, 1], [1, 1], [1.5, 2], [True, 2], ["1", 2], [1, 1 << 301])],
)
def test_any_other_text_names_none(text: str) -> None:
    assert decode_cell(text, COLUMNS[:1]) is None
