"""Order of rows along Hilbert's curve, as OPTIMIZE lays out a clustered table: by quantiles of its own input."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache

from shared.layout.cells.boxes import Point

RANGES = 1000
"""Quantiles of a column, at most: Delta's default."""

CHUNK = 5
"""Bits of a coordinate that are read from a table at once."""

BITS = 2 * CHUNK
MASK = (1 << CHUNK) - 1


def along_curve(points: Sequence[Point], rows: Sequence[int]) -> list[int]:
    """Return rows in the order of the curve; with one column in that of its values."""
    columns = len(points[0])
    if columns == 1:
        return sorted(rows, key=lambda row: points[row])
    bounds = [_bounds(sorted(points[row][column] for row in rows)) for column in range(columns)]

    def position(row: int) -> int:
        ranks = [bisect_right(bound, value) for bound, value in zip(bounds, points[row], strict=True)]
        return hilbert_index(ranks)

    return sorted(rows, key=position)


def _bounds(values: Sequence[int]) -> list[int]:
    ranges = min(RANGES, len(values))
    return sorted({values[len(values) * at // ranges] for at in range(1, ranges)})


def hilbert_index(position: Sequence[int], chunks: int = 2) -> int:
    """Return where a position is on the curve; each coordinate has so many chunks of bits.

    The steps are those of C. Hamilton, Compact Hilbert Indices, 2006; a chunk of them is remembered.
    """
    index, entry, direction = 0, 0, 0
    for shift in range(CHUNK * (chunks - 1), -1, -CHUNK):
        part = tuple(value >> shift & MASK for value in position)
        steps, entry, direction = _steps(part, entry, direction)
        index = index << CHUNK * len(part) | steps
    return index


@cache
def _steps(position: tuple[int, ...], entry: int, direction: int) -> tuple[int, int, int]:
    """Return the steps of one chunk, and in which corner and direction the next chunk begins."""
    columns, index = len(position), 0
    corners = (1 << columns) - 1
    for shift in range(CHUNK - 1, -1, -1):
        corner = sum((value >> shift & 1) << at for at, value in enumerate(position)) ^ entry
        turn = (direction + 1) % columns
        corner = (corner >> turn | corner << columns - turn) & corners
        step = corner
        for by in (1, 2):
            step ^= step >> by
        index = index << columns | step
        first = (step - 1) // 2 * 2 if step else 0
        first ^= first >> 1
        entry ^= (first << turn | first >> columns - turn) & corners
        # The ones at the end of the odd number at or below the step: there the curve goes on.
        odd = step if step & 1 else step - 1
        ones = (odd ^ odd + 1).bit_length() - 1 if step else 0
        direction = (direction + ones + 1) % columns
    return index, entry, direction
