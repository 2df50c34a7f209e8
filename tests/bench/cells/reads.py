"""What ranges and points read of a layout, compared with OPTIMIZE's layout of the same rows."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from shared.layout.cells.boxes import Box, Point, hull_of_points
from tests.bench.cells.hilbert import along_curve
from tests.support.simulated_table import overlap

SHARES = (0.001, 0.01, 0.1)
"""Shares of the rows that a range has, in one column or in the first two together."""

QUERIES = 40
"""Ranges of each kind, and points."""

Laid = Sequence[tuple[Box, int]]
"""Box and rows of each file of a layout."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Bytes that ranges and points read, and files that ranges open, as multiples of OPTIMIZE's layout."""

    bytes: float
    files: float
    point_bytes: float


def optimized(points: Sequence[Point], rows: Sequence[int], target_rows: int) -> Laid:
    """Return the layout of all rows along the curve, in files of the target size."""
    return [
        (hull_of_points(points[row] for row in part), len(part))
        for part in evenly(along_curve(points, rows), target_rows)
    ]


def evenly(rows: Sequence[int], target_rows: int) -> Iterable[Sequence[int]]:
    """Divide rows into files of about the target size."""
    count = max(1, round(len(rows) / target_rows))
    ends = [len(rows) * at // count for at in range(count + 1)]
    return (rows[low:high] for low, high in pairwise(ends) if low < high)


def queries(points: Sequence[Point], rows: Sequence[int]) -> Mapping[str, list[Box]]:
    """Return boxes of ranges and points, by name; the same for all layouts of these rows."""
    dice = random.Random(3)
    columns = len(points[0])
    values = [sorted(points[row][column] for row in rows) for column in range(columns)]
    whole = [(column[0], column[-1] + 1) for column in values]
    found: dict[str, list[Box]] = {}

    def box(limited: Mapping[int, float]) -> Box:
        spans = list(whole)
        for column, share in limited.items():
            width = max(1, int(len(rows) * share))
            first = dice.randrange(len(rows) - width + 1)
            spans[column] = values[column][first], values[column][first + width - 1] + 1
        return tuple(spans)

    for share in SHARES:
        for column in range(min(2, columns)):
            found[f"column {column + 1}, {share:.1%}"] = [box({column: share}) for _ in range(QUERIES)]
        if columns > 1:
            found[f"both, {share:.1%}"] = [box({0: share**0.5, 1: share**0.5}) for _ in range(QUERIES)]
    found["point"] = [hull_of_points([points[row]]) for row in dice.sample(rows, QUERIES)]
    return found


def compare(laid: Laid, best: Laid, asked: Mapping[str, list[Box]]) -> Reads:
    """Return what a layout reads over what the best one reads, the mean over the kinds of ranges."""
    mine, theirs = ({name: _read(one, boxes) for name, boxes in asked.items()} for one in (laid, best))
    over = {name: (mine[name][0] / theirs[name][0], mine[name][1] / theirs[name][1]) for name in asked}
    ranges = [over[name] for name in asked if name != "point"]
    return Reads(fmean(one for one, _ in ranges), fmean(other for _, other in ranges), over["point"][0])


def mean_reads(found: Sequence[Reads]) -> Reads:
    """Return the mean of several measurements."""
    return Reads(*(fmean(getattr(one, name) for one in found) for name in ("bytes", "files", "point_bytes")))


def _read(laid: Laid, boxes: Sequence[Box]) -> tuple[int, int]:
    """Return the rows and the files that are read."""
    met = [rows for box in boxes for own, rows in laid if overlap(own, box)]
    return sum(met), len(met)
