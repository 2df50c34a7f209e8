"""The tree of cuts, found again from the bounds of the cells on the files, and the node in which a file lies.

Each cell is a box that was cut out of the whole, so there is always a cut along its bounds that no cell straddles: the
most even one is taken, and again on both sides. The tree is a function of the set of cells. Of cells that contain each
other the larger was split since, so a cell that straddles every cut is none any more; of cells that overlap otherwise,
which only a wrong tag can claim, some are none. Where cells are missing, cuts are missing, and nothing else: rows never
depend on the tree.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from shared.layout.cells.boxes import EVERYTHING, Box


class Cut(NamedTuple):
    """Where a box is divided: rows with a number below `at` in the column go to the left, all others to the right."""

    column: int
    at: int


@dataclass(slots=True, eq=False)
class Node:
    """A box of the tree; one without a cut is a cell."""

    box: Box
    cut: Cut | None = None
    parts: tuple["Node", ...] = ()

    def divide(self, cut: Cut) -> tuple["Node", "Node"]:
        """Cut the box in two; `at` lies inside of it."""
        left, right = list(self.box), list(self.box)
        left[cut.column] = (self.box[cut.column][0], cut.at)
        right[cut.column] = (cut.at, self.box[cut.column][1])
        both = Node(tuple(left)), Node(tuple(right))
        self.cut, self.parts = cut, both
        return both

    def place(self, box: Box) -> "Node":
        """Return the deepest node that holds a box."""
        node = self
        while (cut := node.cut) is not None:
            low, high = box[cut.column]
            if low < cut.at < high:
                break
            node = node.parts[low >= cut.at]
        return node

    def nodes(self) -> Iterator["Node"]:
        """Yield the node and all below it."""
        todo = [self]
        while todo:
            node = todo.pop()
            yield node
            todo += node.parts


def tree_of(cells: Collection[Box], columns: int) -> Node:
    """Return the tree with the bounds of these cells as cuts; each cell has a span for each of the columns."""
    root = Node((EVERYTHING,) * columns)
    todo: list[tuple[Node, Collection[Box]]] = [(root, set(cells))]
    while todo:
        node, inside = todo.pop()
        cut = _best_cut(node.box, inside)
        if cut is not None:
            left, right = node.divide(cut)
            todo.append((left, [cell for cell in inside if cell[cut.column][1] <= cut.at]))
            todo.append((right, [cell for cell in inside if cell[cut.column][0] >= cut.at]))
    return root


def _best_cut(box: Box, cells: Collection[Box]) -> Cut | None:
    """Return the cut of a box that the fewest cells straddle, of these the most even one; None if there is none."""
    best: tuple[int, int, Cut] | None = None
    for column, (low, high) in enumerate(box):
        lows, highs = (sorted(cell[column][end] for cell in cells) for end in (0, 1))
        for at in dict.fromkeys(chain(lows, highs)):
            if low < at < high:
                left, right = bisect_right(highs, at), len(lows) - bisect_left(lows, at)
                found = (len(lows) - left - right, abs(left - right), Cut(column, at))
                if left + right and (best is None or found < best):
                    best = found
    return None if best is None else best[2]
