"""`actor.cells.job.CellTable` on rows in memory: runs of the product's jobs, without a format."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from actor.cells.columns import CellColumn
from actor.cells.outputs import CellOutputs
from actor.cells.plan import CellPlan
from shared.errors import RefusedFiles
from shared.layout.cells.boxes import Box, Point, hull_of_points
from shared.layout.cells.routes import CellOutput, Route, outputs_of
from shared.layout.cells.runs import CellRun
from shared.layout.cells.tags import CELL_TAG
from shared.layout.commit_metadata import CommitMetadata
from shared.partitions import WHOLE_TABLE
from shared.refusals import RefusalReason
from shared.table import DataFile, PartitionKey, Snapshot, TableMetadata, TableProtocol

ROW_BYTES = 1024


@dataclass(frozen=True, slots=True)
class PointFile:
    """A file and its rows."""

    file: DataFile
    rows: tuple[Point, ...] = field(hash=False)


@dataclass(slots=True)
class MemoryCells:
    """A table with columns of whole numbers.

    reason: why jobs have nothing to do. before: what others do before each commit. marks: those of all commits.
    refused: paths of files that no run may rewrite.
    """

    names: tuple[str, ...] = ("a", "b")
    files: dict[str, PointFile] = field(default_factory=dict)
    reason: str = ""
    before: Callable[[], None] = lambda: None
    marks: list[CommitMetadata] = field(default_factory=list)
    refused: tuple[str, ...] = ()
    made: int = 0

    def add(self, rows: Iterable[Point], partition: PartitionKey = WHOLE_TABLE, **tags: str) -> PointFile:
        """Add a file of rows to a partition."""
        self.made += 1
        given = tuple(rows)
        name = f"f{self.made:05d}"
        file = DataFile(name, len(given) * ROW_BYTES, partition, rows=len(given), tags=tags)
        self.files[name] = PointFile(file, given)
        return self.files[name]

    @property
    def rows(self) -> list[Point]:
        """The rows of all files, in their order."""
        return sorted(row for one in self.files.values() for row in one.rows)

    def snapshot(self) -> Snapshot:
        files = tuple(one.file for one in self.files.values())
        return Snapshot(len(self.marks), 0, TableMetadata("t", (), {}), TableProtocol(1, 1), files)

    def not_wanted(self) -> str:
        return self.reason

    def columns(self) -> tuple[CellColumn, ...]:
        return tuple(CellColumn((name,), (name,), "long") for name in self.names)

    def boxes(self, columns: tuple[CellColumn, ...]) -> Mapping[PointFile, Box]:
        assert columns == self.columns()
        return {one: hull_of_points(one.rows) for one in self.files.values()}

    def rewrite(
        self, plan: CellPlan[PointFile], run: CellRun, mark: Callable[[CellPlan[PointFile]], CommitMetadata]
    ) -> tuple[int, Mapping[str, int]]:
        self.before()
        if found := tuple(one.file.path for one in plan.inputs(run) if one.file.path in self.refused):
            raise RefusedFiles("damaged", reason=RefusalReason.DAMAGED, files=found)
        outputs, inputs = CellOutputs(plan, run.operations), plan.inputs(run)
        written: dict[PointFile, Box] = {}
        for files, route, first in outputs.routes(_sample):
            for number, rows in _divided(route, first, files).items():
                box = hull_of_points(rows)
                tag = outputs.tag(number, box, f"output {number}")
                written[self.add(rows, files[0].file.partition, **{CELL_TAG: tag})] = box
        self.marks.append(mark(plan.after(inputs, written)))
        for one in inputs:
            del self.files[one.file.path]
        return len(self.marks), {
            "files_replaced": len(inputs),
            "bytes_replaced": sum(one.file.size_bytes for one in inputs),
        }


def _sample(files: Sequence[PointFile], every: int) -> list[Point]:
    return [row for one in files for row in one.rows][::every]


def _divided(route: Route, first: int, files: Sequence[PointFile]) -> Mapping[int, list[Point]]:
    numbers = {id(output): number for number, output in enumerate(outputs_of(route), first)}
    found: defaultdict[int, list[Point]] = defaultdict(list)
    for row in (row for one in files for row in one.rows):
        end = route
        while not isinstance(end, CellOutput):
            end = end.left if row[end.cut.column] < end.cut.at else end.right
        found[numbers[id(end)]].append(row)
    return found
