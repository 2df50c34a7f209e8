"""Boxes of files and of cells, in whole numbers: for each clustering column the numbers from one to below another.

The numbers have the order of the values (`key_values`). Null is the first of all numbers, because nulls are put before
every value, and NaN the last, as Spark sorts it. So each row is a point of numbers, without exceptions.
"""

from collections.abc import Iterable
from math import isnan

from shared.layout.key_values import number_of

Span = tuple[int, int]
"""The first number, and the first above all: where the second is one more than the first, all rows are equal."""

Box = tuple[Span, ...]
"""A span for each clustering column, in their order."""

Point = tuple[int, ...]
"""The numbers of one row."""

NAN = 1 << 300
"""The number of NaN: beyond all values of all types."""

NULL = -NAN
"""The number of null."""

EVERYTHING: Span = (NULL, NAN + 1)
"""The span of a file whose bounds are not known."""


def span_of(low: object, high: object, type_name: str, *, nulls: int | None, rows: int | None) -> Span:
    """Return the span of a column from the bounds of a file in a log, where bounds are JSON.

    nulls, rows: how many of the file's rows are null, and how many it has; None where it is not known.
    """
    if nulls is not None and nulls == rows:
        return NULL, NULL + 1
    first, last = number_of_row(low, type_name), number_of_row(high, type_name)
    if first is None or last is None or last < first:
        return EVERYTHING
    return first if nulls == 0 else NULL, last + 1


def number_of_row(value: object, type_name: str) -> int | None:
    """Return the number of a row's value, or of a bound, as JSON has it; None where there is none of this type."""
    if type_name in ("float", "double") and isinstance(value, str) and value in _NOT_FINITE:
        value = float(value)
    is_nan = isinstance(value, float) and isnan(value)
    return NAN if is_nan else number_of(value, type_name)


_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
"""How Delta spells the numbers that JSON does not have."""


def hull(boxes: Iterable[Box]) -> Box:
    """Return the least box that holds all boxes; there is at least one."""
    return tuple((min(low for low, _ in spans), max(high for _, high in spans)) for spans in zip(*boxes, strict=True))


def hull_of_points(points: Iterable[Point]) -> Box:
    """Return the least box that holds all points; there is at least one."""
    return tuple((min(numbers), max(numbers) + 1) for numbers in zip(*points, strict=True))


def holds(outer: Box, inner: Box) -> bool:
    """Return whether a box has no part outside of another."""
    return all(low <= first and end <= high for (low, high), (first, end) in zip(outer, inner, strict=True))


def has_one_key(box: Box) -> bool:
    """Return whether all rows of a box are equal in all columns."""
    return all(high - low == 1 for low, high in box)
