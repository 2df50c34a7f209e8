"""A table in memory for rules of clustering: rows are points of 1,024 bytes, files are sets of rows with boxes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shared.layout.cells.boxes import Box, Point, hull_of_points
from shared.layout.cells.operations import BoxedFile, CellOperation, CellSizes
from shared.layout.cells.routes import CellOutput, Route, find_route
from shared.layout.cells.runs import CellRun, is_run_due, plan_run
from shared.layout.cells.tree import Node, tree_of
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile

ROW_BYTES = 1024


@dataclass(slots=True, eq=False)
class RowFile:
    """A file and the numbers of its rows, deleted ones included; `level` is for rules that have levels."""

    name: str
    rows: list[int]
    box: Box
    cell: Box | None = None
    level: int = 0
    deleted: int = 0
    known: BoxedFile | None = None

    @property
    def size_bytes(self) -> int:
        return len(self.rows) * ROW_BYTES

    @property
    def boxed(self) -> BoxedFile:
        """The file as the planner sees it."""
        if self.known is None or self.known.file.deleted_rows != self.deleted:
            file = DataFile(self.name, self.size_bytes, WHOLE_TABLE, rows=len(self.rows), deleted_rows=self.deleted)
            self.known = BoxedFile(file, self.box, self.cell)
        return self.known


@dataclass(slots=True)
class SimulatedTable:
    """Live files over the rows of a whole stream."""

    points: list[Point]
    files: dict[str, RowFile] = field(default_factory=dict)
    is_live: bytearray = field(default_factory=bytearray)
    file_of: list[RowFile | None] = field(default_factory=list)
    new: list[RowFile] = field(default_factory=list)
    """What others wrote since the last run."""
    names: int = 0

    def __post_init__(self) -> None:
        self.is_live = bytearray(len(self.points))
        self.file_of = [None] * len(self.points)

    def append(self, rows: Sequence[int]) -> None:
        """Commit new rows as one file."""
        for row in rows:
            self.is_live[row] = 1
        self.new.append(self.add(rows))

    def add(self, rows: Sequence[int], *, cell: Box | None = None, level: int = 0) -> RowFile:
        """Add a file of live rows."""
        self.names += 1
        file = RowFile(f"f{self.names:07d}", list(rows), hull_of_points(self.points[row] for row in rows), cell, level)
        self.files[file.name] = file
        for row in rows:
            self.file_of[row] = file
        return file

    def delete(self, rows: Iterable[int], *, is_counted: bool = True) -> None:
        """Delete live rows by deletion vectors, or by values, which no log counts."""
        for row in rows:
            assert self.is_live[row]
            self.is_live[row] = 0
            self.file_of[row].deleted += is_counted

    def take(self, files: Iterable[RowFile]) -> list[int]:
        """Remove files, and return their live rows."""
        rows: list[int] = []
        for file in files:
            del self.files[file.name]
            rows += [row for row in file.rows if self.is_live[row]]
        return rows

    def live_rows(self) -> list[int]:
        """Return the live rows of all files."""
        return [row for file in self.files.values() for row in file.rows if self.is_live[row]]

    def rows_of(self, files: Iterable[BoxedFile]) -> list[int]:
        """Return the live rows of some files."""
        return [row for one in files for row in self.files[one.file.path].rows if self.is_live[row]]


@dataclass(slots=True)
class Cells:
    """Cells on a simulated table, planned by the product's code."""

    table: SimulatedTable
    sizes: CellSizes
    columns: int
    left_bytes: int = 0
    """The bytes that the last run reported as due."""
    every: int = 1
    """Of how many rows of an operation one is known."""
    trees: dict[frozenset[Box], Node] = field(default_factory=dict)
    """The last tree: most runs change no cell."""

    def is_due(self) -> bool:
        new = self.table.new
        return is_run_due(len(new), sum(file.size_bytes for file in new), self.left_bytes, self.sizes)

    def tree(self) -> Node:
        cells = frozenset(file.cell for file in self.table.files.values() if file.cell is not None)
        if cells not in self.trees:
            self.trees = {cells: tree_of(cells, self.columns)}
        return self.trees[cells]

    def boxed(self) -> list[BoxedFile]:
        return [file.boxed for file in self.table.files.values()]

    def plan(self) -> CellRun:
        return plan_run([(self.tree(), self.boxed())], self.sizes)

    def run(self) -> int:
        """Run once, and return the bytes that were rewritten."""
        run, files = self.plan(), self.boxed()
        for operation in run.operations:
            self.carry_out(operation, files)
        self.table.new.clear()
        self.left_bytes = self.plan().due_bytes
        return sum(operation.size_bytes for operation in run.operations)

    def carry_out(self, operation: CellOperation, files: Sequence[BoxedFile]) -> None:
        known = [row for at, row in enumerate(self.table.rows_of(operation.known)) if not _mixed(at) % self.every]
        rows = self.table.take(self.table.files[one.file.path] for one in operation.files)
        if rows:
            points = [self.table.points[row] for row in known]
            self.write(find_route(operation, points, files, self.sizes, every=self.every), rows)

    def write(self, route: Route, rows: list[int]) -> None:
        if not rows:
            return
        if isinstance(route, CellOutput):
            self.table.add(rows, cell=route.cell)
            return
        column, at = route.cut
        left, right = [], []
        for row in rows:
            (left if self.table.points[row][column] < at else right).append(row)
        self.write(route.left, left)
        self.write(route.right, right)


def _mixed(number: int) -> int:
    """Return a number by which rows are sampled, whatever their order; 0 for the first."""
    return (number * 0x9E3779B97F4A7C15 % 2**64) >> 40


def overlap(one: Box, other: Box) -> bool:
    """Return whether two boxes have a point in common."""
    return all(low < end and first < high for (low, high), (first, end) in zip(one, other, strict=True))
