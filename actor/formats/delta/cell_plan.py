"""Plans of runs on the cells of a Delta table, by the boxes and tags of its live files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.cell_columns import CellColumn, box_of
from shared.layout.cells.operations import BoxedFile, CellSizes
from shared.layout.cells.runs import CellRun, plan_run
from shared.layout.cells.tags import CELL_TAG, decode_cell
from shared.layout.cells.tree import tree_of

PROVIDER = "lakewright"
"""Who clustered a file, in its `clusteringProvider`: other implementations leave such files alone."""

_TAKEN_OVER = (None, "liquid", PROVIDER)
"""Providers of files that are put into cells: what others cluster is theirs. Delta's own are superseded."""


@dataclass(frozen=True, slots=True)
class CellPlan:
    """The files that have a place, with their boxes, and the sizes of a run."""

    columns: tuple[CellColumn, ...]
    files: Mapping[LoggedFile, BoxedFile]
    sizes: CellSizes

    @staticmethod
    def of(
        columns: tuple[CellColumn, ...], live: Iterable[LoggedFile], sizes: CellSizes, most_bytes: int
    ) -> "CellPlan":
        """Return the plan on all live files; a run holds the largest of them, where that is at most `most_bytes`."""
        files = _boxed([one for one in live if json.loads(one.json).get("clusteringProvider") in _TAKEN_OVER], columns)
        largest = max((file.size_bytes for file in files.values()), default=0)
        return CellPlan(columns, files, replace(sizes, run_bytes=min(most_bytes, max(sizes.run_bytes, largest))))

    def run(self) -> CellRun:
        """Return the most urgent operations, and what is due in all."""
        cells = {file.cell for file in self.files.values() if file.cell is not None}
        return plan_run(tree_of(cells, len(self.columns)), tuple(self.files.values()), self.sizes)

    def after(self, inputs: Iterable[LoggedFile], outputs: Sequence[LoggedFile]) -> "CellPlan":
        """Return the plan of what is due once outputs have replaced inputs."""
        gone = set(inputs)
        kept = {logged: boxed for logged, boxed in self.files.items() if logged not in gone}
        return replace(self, files={**kept, **_boxed(outputs, self.columns)})


def _boxed(files: Iterable[LoggedFile], columns: Sequence[CellColumn]) -> dict[LoggedFile, BoxedFile]:
    paths = [column.path for column in columns]
    return {
        logged: BoxedFile(logged.file, box_of(columns, logged), decode_cell(logged.file.tags.get(CELL_TAG, ""), paths))
        for logged in files
    }
