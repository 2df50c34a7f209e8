"""Plans of runs on the cells of a table, by the boxes and tags of its live files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from actor.cells.columns import CellColumn
from actor.rewrite.model import PlacedFile
from shared.layout.cells.boxes import Box
from shared.layout.cells.operations import BoxedFile, CellSizes
from shared.layout.cells.runs import CellRun, plan_run
from shared.layout.cells.tags import CELL_TAG, decode_cell
from shared.layout.cells.tree import tree_of

F = TypeVar("F", bound=PlacedFile)


@dataclass(frozen=True, slots=True)
class CellPlan(Generic[F]):
    """The files that have a place, with their boxes, and the sizes of a run."""

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
        cells = {file.cell for file in self.files.values() if file.cell is not None}
        return plan_run(tree_of(cells, len(self.columns)), tuple(self.files.values()), self.sizes)

    def inputs(self, run: CellRun) -> list[F]:
        """Return the files that a run rewrites."""
        taken = {one.file.key for operation in run.operations for one in operation.files}
        return [one for one in self.files if one.file.key in taken]

    def after(self, inputs: Iterable[F], outputs: Mapping[F, Box]) -> "CellPlan[F]":
        """Return the plan of what is due once outputs, with their boxes, have replaced inputs."""
        gone = set(inputs)
        kept = {one: boxed for one, boxed in self.files.items() if one not in gone}
        return replace(self, files={**kept, **_boxed(self.columns, outputs)})


def _boxed(columns: Sequence[CellColumn], boxes: Mapping[F, Box]) -> dict[F, BoxedFile]:
    paths = [column.path for column in columns]
    return {
        one: BoxedFile(one.file, box, decode_cell(one.file.tags.get(CELL_TAG, ""), paths)) for one, box in boxes.items()
    }
