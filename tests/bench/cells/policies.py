"""Rules of clustering that are compared on one stream: what each does after a commit, and what it writes."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from shared.layout.cells.boxes import Point, hull_of_points
from shared.layout.cells.runs import sizes_of_run
from shared.layout.sort_planner import plan_sort
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import DataFile
from tests.bench.cells.hilbert import BITS, along_curve, hilbert_index
from tests.bench.cells.reads import evenly
from tests.support.simulated_table import ROW_BYTES, Cells, RowFile, SimulatedTable, overlap


class Clustering(Protocol):
    """A rule on its own copy of the table."""

    table: SimulatedTable

    def is_due(self) -> bool: ...

    def run(self) -> int:
        """Run, and return the bytes rewritten."""


Rule = Callable[[SimulatedTable, int, int], Clustering]
"""Makes a rule from a table, the rows of T, and the rows of a commit."""


@dataclass(slots=True)
class Optimize:
    """OPTIMIZE of all files after every so many commits; laid out once it is read."""

    table: SimulatedTable
    target_rows: int
    every: int
    commits: int = 0
    unlaid: list[RowFile] = field(default_factory=list)

    def is_due(self) -> bool:
        self.commits += 1
        return self.commits % self.every == 0

    def run(self) -> int:
        self.unlaid = list(self.table.files.values())
        return sum(len(file.rows) - file.deleted for file in self.unlaid) * ROW_BYTES

    def lay_out(self) -> None:
        rows = self.table.take(file for file in self.unlaid if file.name in self.table.files)
        self.unlaid = []
        if rows:
            _write(self.table, along_curve(self.table.points, rows), self.target_rows)


@dataclass(slots=True)
class SortLevels:
    """Sort levels as `sort-by` has them, over positions on one fixed curve; small files are merged at T."""

    table: SimulatedTable
    target_rows: int
    max_depth: int
    curve: Sequence[int]

    @property
    def _policy(self) -> Policy:
        target_bytes = self.target_rows * ROW_BYTES
        return Policy(
            target_bytes=target_bytes, tolerance=Fraction(0), sort_by="k", max_depth=self.max_depth,
            max_bytes_per_job=64 * target_bytes,
        )  # fmt: skip

    def _small(self) -> list[RowFile]:
        full = self._policy.size_levels.full_bytes
        return [file for file in self.table.files.values() if file.size_bytes < full]

    def is_due(self) -> bool:
        return sum(len(file.rows) for file in self._small()) >= self.target_rows

    def run(self) -> int:
        spent = self._sort(self._small(), 0)
        while groups := plan_sort(WHOLE_TABLE, [*map(self._ranged, self.table.files.values())], self._policy).groups:
            for group in groups:
                files = [self.table.files[file.path] for file in group.files]
                spent += self._sort(files, int(group.tags["lakewright.sort-level"]))
        return spent

    def _ranged(self, file: RowFile) -> DataFile:
        positions = [self.curve[row] for row in file.rows]
        tags = {"lakewright.sort-level": str(file.level)}
        return DataFile(file.name, file.size_bytes, WHOLE_TABLE, tags=tags, key_range=(min(positions), max(positions)))

    def _sort(self, files: Iterable[RowFile], level: int) -> int:
        rows = sorted(self.table.take(files), key=lambda row: self.curve[row])
        _write(self.table, rows, self.target_rows, level)
        return len(rows) * ROW_BYTES


@dataclass(slots=True)
class Overlaps:
    """Overlap of boxes: the files over the deepest of sampled points are laid out together."""

    table: SimulatedTable
    target_rows: int
    max_depth: int
    max_files: int = 16
    samples: int = 64
    dice: random.Random = field(default_factory=lambda: random.Random(5))

    def _small(self) -> list[RowFile]:
        return [file for file in self.table.files.values() if len(file.rows) * 2 < self.target_rows]

    def is_due(self) -> bool:
        return sum(len(file.rows) for file in self._small()) >= self.target_rows

    def run(self) -> int:
        spent = self._lay_out(self._small())
        for _ in range(10):
            files = [file for file in self.table.files.values() if len(file.rows) * 2 >= self.target_rows]
            points = [self.table.points[self.dice.choice(self.dice.choice(files).rows)] for _ in range(self.samples)]
            over = max((_over(files, point) for point in points), key=len)
            if len(over) <= self.max_depth:
                break
            spent += self._lay_out(sorted(over, key=_volume, reverse=True)[: self.max_files])
        return spent

    def _lay_out(self, files: Iterable[RowFile]) -> int:
        rows = self.table.take(files)
        _write(self.table, along_curve(self.table.points, rows), self.target_rows)
        return len(rows) * ROW_BYTES


def _over(files: Iterable[RowFile], point: Point) -> list[RowFile]:
    box = hull_of_points([point])
    return [file for file in files if overlap(file.box, box)]


def _volume(file: RowFile) -> float:
    volume = 1.0
    for low, high in file.box:
        volume *= high - low
    return volume


def _write(table: SimulatedTable, rows: Sequence[int], target_rows: int, level: int = 0) -> None:
    for part in evenly(rows, target_rows):
        table.add(part, level=level)


def fixed_curve(points: Sequence[Point]) -> list[int]:
    """Return positions on one curve over all rows of a stream, from first to last."""
    columns = len(points[0])
    ranks: list[list[int]] = []
    for column in range(columns):
        order = sorted(range(len(points)), key=lambda row, column=column: points[row][column])
        rank = [0] * len(points)
        for at, row in enumerate(order):
            rank[row] = (at << BITS) // len(points)
        ranks.append(rank)
    if columns == 1:
        return [point[0] for point in points]
    return [hilbert_index(one) for one in zip(*ranks, strict=True)]


def optimize(every: int) -> Rule:
    return lambda table, target_rows, _: Optimize(table, target_rows, every)


def sort_levels(max_depth: int) -> Rule:
    return lambda table, target_rows, _: SortLevels(table, target_rows, max_depth, fixed_curve(table.points))


def overlaps(max_depth: int) -> Rule:
    return lambda table, target_rows, _: Overlaps(table, target_rows, max_depth)


def cells(table: SimulatedTable, target_rows: int, commit_rows: int) -> Cells:
    sizes = sizes_of_run(target_rows * ROW_BYTES, commit_rows * ROW_BYTES, 64 * target_rows * ROW_BYTES)
    return Cells(table, sizes, len(table.points[0]))


RULES: dict[str, Rule] = {
    "OPTIMIZE each 20": optimize(20),
    "sort levels on a curve": sort_levels(4),
    "overlap of boxes": overlaps(4),
    "cells": cells,
}

SEARCHED: dict[str, Rule] = {
    **{f"OPTIMIZE each {every}": optimize(every) for every in (5, 10, 20, 50, 100)},
    **{f"sort levels, depth {depth}": sort_levels(depth) for depth in (2, 3, 4, 6, 8)},
    **{f"overlap, depth {depth}": overlaps(depth) for depth in (2, 3, 4, 6, 8)},
    "cells": cells,
}
"""Each rule with other parameters."""
