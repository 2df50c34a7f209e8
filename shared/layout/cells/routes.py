"""Routes of the rows of an operation: a nested choice by cuts, with one output at each end.

The rows are known by a sample of points. Every row has an output that lies inside of its cell, whatever the sample left
out. The row decides: a row with a number below a cut goes to its left.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

from shared.layout.cells.boxes import EVERYTHING, Box, Point, has_one_key, hull, hull_of_points
from shared.layout.cells.operations import BoxedFile, CellOperation, CellSizes, CellWork
from shared.layout.cells.tree import Cut, Node

EVEN_SHARE = 0.25
"""Share of the rows on the smaller side from which a cut counts as even."""

MOST_LIVE = 0.8
"""Share of the rows up to which a sample counts as proof that others were deleted, in ways that no log counts."""

NOISE = 4
"""Deviations by which a sample may miss rows."""

NEIGHBORS = 2
"""Cells on both sides of one, in a column."""


@dataclass(frozen=True, slots=True)
class CellOutput:
    """One output: several ends of a route may be one; `cell` is the box of its cell, None if its rows wait."""

    cell: Box | None


@dataclass(frozen=True, slots=True)
class Fork:
    """Two ways for rows: those below the cut, and all others."""

    cut: Cut
    left: "Route"
    right: "Route"


Route = CellOutput | Fork


def outputs_of(route: Route) -> list[CellOutput]:
    """Return the outputs of a route, each once, from the left to the right."""
    ends = [route] if isinstance(route, CellOutput) else [*outputs_of(route.left), *outputs_of(route.right)]
    return list({id(end): end for end in ends}.values())


def find_route(
    operation: CellOperation,
    points: Sequence[Point],
    files: Sequence[BoxedFile],
    sizes: CellSizes,
    *,
    every: int = 1,
) -> Route:
    """Return where the rows of an operation go.

    points: about every so many-th live row of the files that it knows. files: all live files of the table.
    """
    rewritten, known = (max(1, sum(file.live_bytes for file in of)) for of in (operation.files, operation.known))
    if operation.work is CellWork.DOWN:
        piece = sizes.piece_bytes * len(points) / rewritten
        return _Down(hull(file.box for file in operation.files), piece, CellOutput(None)).route(operation.node, points)
    if operation.work is CellWork.SPLIT and points:
        share = _live_share(operation.known, len(points), every)
        if share == 1 or known * share > sizes.cell_bytes or not _becomes_less(operation):
            most = sizes.cell_bytes * len(points) / (known * share)
            piece = sizes.piece_bytes * len(points) / (rewritten * share)
            spread = [*points, *_corners(operation.known, points[0])] if has_one_key(hull_of_points(points)) else points
            return _Split(points, files, most, piece, NEIGHBORS * rewritten).route(
                operation.node.box, spread, is_first=True
            )
    return _end(operation.node)


def _live_share(files: Iterable[BoxedFile], points: int, every: int) -> float:
    """Return the share of the rows which logs count as live that are, by a sample; 1 unless it is clearly less."""
    counted = [None if (one := file.file).rows is None else max(0, one.rows - one.deleted_rows) for file in files]
    rows = sum(one or 0 for one in counted)
    most_points = points if every == 1 else points + NOISE * (sqrt(points) + 1)
    share = most_points * every / max(1, rows)
    return 1 if None in counted or share > MOST_LIVE else share


def _becomes_less(operation: CellOperation) -> bool:
    """Return whether one output for all rows leaves fewer files, or no deleted rows."""
    return len(operation.files) > 1 or operation.files == operation.known


def _corners(files: Iterable[BoxedFile], inside: Point) -> Iterator[Point]:
    """Yield the least and the greatest row of each file by its box, or the numbers of a row where this says nothing.

    They are where a sample of one key leaves others out: so there is a cut wherever the boxes have two keys.
    """
    for file in files:
        for end in (0, 1):
            yield tuple(
                number if span == EVERYTHING else span[end] - end for span, number in zip(file.box, inside, strict=True)
            )


def _end(node: Node) -> CellOutput:
    return CellOutput(None if node.parts else node.box)


@dataclass(frozen=True, slots=True)
class _Down:
    """Movement of rows down as far as both sides of a cut keep a piece, or there are two.

    box: that holds all rows. piece: a number of points. rest: output of the rows on a side without a point, which wait.
    """

    box: Box
    piece: float
    rest: CellOutput

    def route(self, node: Node, points: Sequence[Point]) -> Route:
        """Return where rows at a node go."""
        if node.cut is None:
            return _end(node)
        left, right = _divided(points, node.cut)
        if left and right and min(len(left), len(right)) < self.piece and len(points) < 2 * self.piece:
            return _end(node)
        below, above = (
            self.route(part, side) if side else self.rest for part, side in zip(node.parts, (left, right), strict=True)
        )
        low, end = self.box[node.cut.column]
        if low < node.cut.at < end:
            return Fork(node.cut, below, above)
        return above if low >= node.cut.at else below


@dataclass(frozen=True, slots=True)
class _Split:
    """Division of the rows of one cell; `most` and `piece` are numbers of points, `near_bytes` about its neighbors'."""

    points: Sequence[Point]
    files: Sequence[BoxedFile]
    most: float
    piece: float
    near_bytes: int

    def route(self, box: Box, points: Sequence[Point], *, is_first: bool = False) -> Route:
        """Cut at medians while a part is larger than a cell, and each side keeps about a piece."""
        if not is_first and (len(points) <= self.most or len(points) < 2 * self.piece):
            return CellOutput(box)
        cut = self._cut(points)
        if cut is None:
            return CellOutput(box)
        parts = Node(box).divide(cut)
        left, right = (self.route(part.box, side) for part, side in zip(parts, _divided(points, cut), strict=True))
        return Fork(cut, left, right)

    def _cut(self, points: Sequence[Point]) -> Cut | None:
        """Return an even cut in the column in which the rows reach farthest, else the most even; None for one key."""
        cuts = []
        for column in self._columns(hull_of_points(points)):
            share, at = _median(sorted(point[column] for point in points))
            cuts.append((share, Cut(column, at)))
            if share >= EVEN_SHARE:
                break
        share, cut = max(cuts, key=lambda one: one[0])
        return cut if share else None

    def _columns(self, spans: Box) -> list[int]:
        """Return first the columns in which a box meets about the most bytes of the table, by the boxes of its files.

        About means that the neighbors of the cell make no difference: columns that ascend together are not cut in
        turns, which would make a tree as deep as it has cells. Of these columns first the one in which the box has the
        most rows of the operation, because the boxes of a table that was never clustered are all alike.
        """
        met, rows = [], []
        for column, (low, high) in enumerate(spans):
            boxes = ((*file.box[column], file.size_bytes) for file in self.files)
            met.append(sum(size_bytes for first, end, size_bytes in boxes if first < high and end > low))
            rows.append(sum(low <= point[column] < high for point in self.points))
        least = max(met) - self.near_bytes
        return sorted(range(len(spans)), key=lambda column: (met[column] < least, -rows[column]))


def _median(numbers: Sequence[int]) -> tuple[float, int]:
    """Return the most even cut of ascending numbers, and the share of its smaller side, which is 0 if all are equal."""
    middle = numbers[len(numbers) // 2]
    above = numbers[min(bisect_right(numbers, middle), len(numbers) - 1)]
    return max((_smaller_share(numbers, at), at) for at in (middle, above))


def _smaller_share(numbers: Sequence[int], at: int) -> float:
    below = bisect_left(numbers, at)
    return min(below, len(numbers) - below) / len(numbers)


def _divided(points: Iterable[Point], cut: Cut) -> tuple[list[Point], list[Point]]:
    left: list[Point] = []
    right: list[Point] = []
    for point in points:
        (left if point[cut.column] < cut.at else right).append(point)
    return left, right
