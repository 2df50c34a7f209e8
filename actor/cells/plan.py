"""Plans of runs on the cells of a table, by the boxes and tags of its live files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from actor.cells.columns import CellColumn
from actor.rewrite.model import PlacedFile
from shared.layout.cells.boxes import Box, holds
from shared.layout.cells.operations import BoxedFile, CellOperation, CellSizes
from shared.layout.cells.runs import CellRun, plan_run
from shared.layout.cells.tags import CELL_TAG, ColumnPath, decode_cell
from shared.layout.cells.tree import Node, tree_of
from shared.table import DataFile, PartitionKey

F = TypeVar("F", bound=PlacedFile)


@dataclass(frozen=True, slots=True)
class CellPlan(Generic[F]):
    """The files that have a place, with their boxes, and the sizes of a run; each partition has a tree of its own."""

    columns: tuple[CellColumn, ...]
    files: Mapping[F, BoxedFile]
    sizes: CellSizes

    @staticmethod
    def of(columns: tuple[CellColumn, ...], boxes: Mapping[F, Box], sizes: CellSizes, most_bytes: int) -> "CellPlan[F]":
        """Return the plan on these files; a run holds the largest of them, where that is at most `most_bytes`."""
        files = _boxed(columns, boxes)
        largest = max((file.size_bytes for file in files.values()), default=0)
        return CellPlan(columns, files, replace(sizes, run_bytes=min(most_bytes, max(sizes.run_bytes, largest))))

    def run(self) -> CellRun:
        """Return the most urgent operations, and what is due in all."""
        found: dict[PartitionKey, list[BoxedFile]] = {}
        for file in self.files.values():
            found.setdefault(file.file.partition, []).append(file)
        return plan_run([(self._tree(files), files) for files in found.values()], self.sizes)

    def _tree(self, files: Iterable[BoxedFile]) -> Node:
        return tree_of({file.cell for file in files if file.cell is not None}, len(self.columns))

    def inputs(self, run: CellRun) -> list[F]:
        """Return the files that a run rewrites."""
        taken = {one.file.key for operation in run.operations for one in operation.files}
        return [one for one in self.files if one.file.key in taken]

    def beside(self, operation: CellOperation) -> tuple[BoxedFile, ...]:
        """Return the files of an operation's partition."""
        partition = operation.files[0].file.partition
        return tuple(one for one in self.files.values() if one.file.partition == partition)

    def after(self, inputs: Iterable[F], outputs: Mapping[F, Box]) -> "CellPlan[F]":
        """Return the plan of what is due once outputs, with their boxes, have replaced inputs."""
        gone = set(inputs)
        kept = {one: boxed for one, boxed in self.files.items() if one not in gone}
        return replace(self, files={**kept, **_boxed(self.columns, outputs)})


def _boxed(columns: Sequence[CellColumn], boxes: Mapping[F, Box]) -> dict[F, BoxedFile]:
    paths = [column.path for column in columns]
    return {one: BoxedFile(one.file, box, _cell_of(one.file, box, paths)) for one, box in boxes.items()}


def _cell_of(file: DataFile, box: Box, paths: Sequence[ColumnPath]) -> Box | None:
    """Return the cell that a file names, which is none unless the file lies in it."""
    cell = decode_cell(file.tags.get(CELL_TAG, ""), paths)
    return None if cell is None or not holds(cell, box) else cell
