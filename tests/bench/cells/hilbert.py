"""Order of rows along Hilbert's curve, as OPTIMIZE lays out a clustered table: by quantiles of its own input."""

from bisect import bisect_right
from collections.abc import Sequence

from shared.layout.cells.boxes import Point

RANGES = 1000
"""Quantiles of a column, at most: Delta's default."""

BITS = 10


def along_curve(points: Sequence[Point], rows: Sequence[int]) -> list[int]:
    """Return rows in the order of the curve; with one column in that of its values."""
    columns = len(points[0])
    if columns == 1:
        return sorted(rows, key=lambda row: points[row])
    bounds = [_bounds(sorted(points[row][column] for row in rows)) for column in range(columns)]

    def position(row: int) -> int:
        ranks = [bisect_right(bound, value) for bound, value in zip(bounds, points[row], strict=True)]
        return hilbert_index(ranks, BITS)

    return sorted(rows, key=position)


def _bounds(values: Sequence[int]) -> list[int]:
    ranges = min(RANGES, len(values))
    return sorted({values[len(values) * at // ranges] for at in range(1, ranges)})


def hilbert_index(position: Sequence[int], bits: int) -> int:
    """Return the place of a position on the curve, each coordinate of so many bits; by Skilling's transformation."""
    x = list(position)
    for shift in range(bits - 1, 0, -1):
        bit, mask = 1 << shift, (1 << shift) - 1
        for at, value in enumerate(x):
            if value & bit:
                x[0] ^= mask
            else:
                swapped = (x[0] ^ value) & mask
                x[0] ^= swapped
                x[at] ^= swapped
    for at in range(1, len(x)):
        x[at] ^= x[at - 1]
    parity = 0
    for shift in range(bits - 1, 0, -1):
        if x[-1] >> shift & 1:
            parity ^= (1 << shift) - 1
    index = 0
    for shift in range(bits - 1, -1, -1):
        for value in x:
            index = index << 1 | (value ^ parity) >> shift & 1
    return index
