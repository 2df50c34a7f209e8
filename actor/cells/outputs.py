"""The outputs of one run on cells: which rows go to which of them, and the cell that each has to lie in."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic

from actor.cells.columns import Stored
from actor.cells.plan import CellPlan, F
from shared.errors import Corrupt
from shared.layout.cells.boxes import Box, Point, holds
from shared.layout.cells.operations import BoxedFile, CellOperation, CellWork
from shared.layout.cells.routes import CellOutput, Fork, Route, find_route, outputs_of
from shared.layout.cells.tags import encode_cell
from shared.table import DataFile

SAMPLE_ROWS = 10_000
"""Rows of an operation that are read, about, to find out where all of them go."""

BYTES_OF_A_ROW = 8
"""Size of a row, at least, in files whose rows the log does not count."""


class CellOutputs(Generic[F]):
    """Outputs of one run, numbered in the order of its operations."""

    def __init__(self, plan: CellPlan[F], operations: Sequence[CellOperation]) -> None:
        self._plan = plan
        self._operations = operations
        self._files = {boxed.file.key: one for one, boxed in plan.files.items()}
        self._numbered: list[CellOutput] = []

    def __len__(self) -> int:
        return len(self._numbered)

    def routes(self, points_of: Callable[[Sequence[F], int], list[Point]]) -> Iterator[tuple[list[F], Route, int]]:
        """Number the outputs; yield the files of each operation, the route of their rows, and its first number.

        points_of: reads about every so many-th row of files as a point, which must not follow their order.
        """
        self._numbered = []
        for operation in self._operations:
            is_moved = operation.work in (CellWork.DOWN, CellWork.SPLIT)
            every = sampled_rows(one.file for one in operation.known)
            points = points_of(self._files_of(operation.known), every) if is_moved else []
            route = find_route(operation, points, self._plan.beside(operation), self._plan.sizes, every=every)
            first = len(self._numbered)
            self._numbered += outputs_of(route)
            yield self._files_of(operation.files), route, first

    def _files_of(self, files: Iterable[BoxedFile]) -> list[F]:
        return [self._files[one.file.key] for one in files]

    def choice(self, route: Route, first: int) -> str:
        """Return the number of a row's output as SQL; the route's first output has the number `first`."""
        return self._choice(route, _numbers(route, first))

    def _choice(self, route: Route, numbers: Mapping[int, int]) -> str:
        if isinstance(route, CellOutput):
            return str(numbers[id(route)])
        below = self._plan.columns[route.cut.column].below(route.cut.at)
        return f"IF({below}, {self._choice(route.left, numbers)}, {self._choice(route.right, numbers)})"

    def tag(self, number: int | None, box: Box, name: str) -> str:
        """Return the tag of the output of this number; raises Corrupt, with its name, unless it lies in its cell."""
        if number is None or number >= len(self._numbered):
            raise Corrupt(f"{name} is the output of no operation; nothing was committed")
        cell = self._numbered[number].cell
        if cell is not None and not holds(cell, box):
            raise Corrupt(f"{name} lies outside of its cell, {box} in {cell}; nothing was committed")
        return self.cell_tag(number)

    def cell_tag(self, number: int) -> str:
        """Return the tag that names the cell of the output of this number."""
        return encode_cell(self._numbered[number].cell, [column.path for column in self._plan.columns])


def cuts_of(route: Route, stored: Sequence[Stored]) -> list[Any]:
    """Return the cuts of a route as a task takes them; columns are stored like this.

    Each is its column, its value, and the ways of rows below it and of others: a cut, or -1 less an output, of which
    the first of the route is 0.
    """
    cuts: list[Any] = []
    numbers = _numbers(route, 0)

    def add(part: Route) -> int:
        if not isinstance(part, Fork):
            return -1 - numbers[id(part)]
        bound = stored[part.cut.column].bound(part.cut.at)
        if bound is None:
            return add(part.left)
        at = len(cuts)
        cuts.append(None)
        cuts[at] = [part.cut.column, bound, *[add(side) for side in (part.left, part.right)]]
        return at

    add(route)
    return cuts


def _numbers(route: Route, first: int) -> Mapping[int, int]:
    return {id(output): number for number, output in enumerate(outputs_of(route), first)}


def is_sampled(row: str, every: int) -> str:
    """Return as SQL whether a row is in a sample, by its number: hashed, because keys may take turns in files."""
    return f"pmod(xxhash64({row}), {every}) = 0"


def sampled_rows(files: Iterable[DataFile]) -> int:
    """Return of how many rows of files one is read."""
    rows = (one.size_bytes // BYTES_OF_A_ROW if one.rows is None else one.rows for one in files)
    return max(1, sum(rows) // SAMPLE_ROWS)
