"""Boxes from bounds in a log: whatever bounds leave out, no row lies outside of its file's box."""

import pytest

from shared.layout.cells.boxes import EVERYTHING, NAN, NULL, span_of
from shared.layout.key_values import number_of

CUT_TO = 32
"""Characters of a text to which Delta cuts bounds."""


def test_bounds_are_the_first_and_the_last_number() -> None:
    assert span_of(3, 7, "long", nulls=0, rows=10) == (3, 8)


@pytest.mark.parametrize("nulls", [1, None], ids=["some", "unknown"])
def test_nulls_open_a_box_to_the_left(nulls: int | None) -> None:
    assert span_of(3, 7, "long", nulls=nulls, rows=10) == (NULL, 8)


def test_a_file_of_nulls_is_the_left_end_alone() -> None:
    assert span_of(None, None, "long", nulls=10, rows=10) == (NULL, NULL + 1)


@pytest.mark.parametrize(
    ("low", "high"),
    [(None, 7), (3, None), (None, None), (7, 3), ("3", 7)],
    ids=["no low", "no high", "none", "7 to 3", "text"],
)
def test_without_bounds_a_file_may_hold_everything(low: object, high: object) -> None:
    assert span_of(low, high, "long", nulls=0, rows=10) == EVERYTHING
    assert span_of(low, high, "binary", nulls=0, rows=10) == EVERYTHING


def test_nan_lies_above_all_numbers_and_opens_a_box_to_the_right_only() -> None:
    assert span_of(-1.5, "NaN", "double", nulls=0, rows=2) == (number_of(-1.5, "double"), NAN + 1)
    assert span_of("NaN", "NaN", "float", nulls=0, rows=2) == (NAN, NAN + 1)
    assert span_of(float("nan"), float("nan"), "double", nulls=0, rows=2) == (NAN, NAN + 1)
    assert span_of("NaN", "NaN", "string", nulls=0, rows=2)[1] < NAN


@pytest.mark.parametrize("text", ["short", "x" * 40, "ä" * 40, "\U0010ffff" * 40, "x" * 31 + "ä" * 9])
def test_a_text_that_bounds_cut_short_lies_in_its_box(text: str) -> None:
    rounded_up = text if len(text) <= CUT_TO else text[:CUT_TO] + "\U0010ffff"
    low, end = span_of(text[:CUT_TO], rounded_up, "string", nulls=0, rows=1)
    number = number_of(text, "string")
    assert number is not None
    assert low <= number < end
    assert number_of(None, "string") is None


def test_infinity_is_a_number_as_the_log_spells_it() -> None:
    low, high = number_of(float("-inf"), "double"), number_of(float("inf"), "double")
    assert low is not None
    assert high is not None
    assert span_of("-Infinity", "Infinity", "double", nulls=0, rows=2) == (low, high + 1)
    assert span_of("Infinity", "Infinity", "date", nulls=0, rows=2) == EVERYTHING
