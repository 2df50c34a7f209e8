"""An Iceberg table in cells, in the session of one job: each operation is a group, and all are one snapshot.

The cell of an output is in its name. Before the commit, each output has to lie in the cell that it names, by its own
metrics.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache

from actor.cells.columns import CellColumn
from actor.cells.outputs import CellOutputs
from actor.cells.plan import CellPlan
from actor.formats.iceberg.cell_bounds import Bounds, box_of, cell_columns, named_columns, require_bounds
from actor.formats.iceberg.commit import IcebergTarget
from actor.formats.iceberg.inputs import InputGroup, LiveInput
from actor.formats.iceberg.java_cells import JavaCells
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.row_group_copy import Division, ReadGroup
from actor.formats.iceberg.staged import IcebergFile, StagedGroup
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.iceberg.write import StagedWriter
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl
from actor.rewrite.checks import require_free_space
from actor.rewrite.commit import Committer
from actor.rewrite.job_permission import JobPermission
from actor.rewrite.model import Attempt
from actor.rewrite.run import FILES_WRITTEN
from shared.errors import Conflict, Corrupt, RefusedFiles, Unsupported
from shared.formats.iceberg.cell_names import name_prefix, tag_of, written_name
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.positions import newest_position
from shared.layout.cells.boxes import Box, Point
from shared.layout.cells.routes import Route, outputs_of
from shared.layout.cells.runs import CellRun
from shared.layout.cells.tags import CELL_TAG, encode_cell
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.paths.boundary import Boundary
from shared.policy.policy import ClusterMode
from shared.refusals import RefusalReason
from shared.table import Snapshot

_FORMAT = "write.format.default"
_WAITS, _WRITTEN = encode_cell(None, ()), "00000-0-name.parquet"
"""A tag, and a name as a writer chooses it: both have to be found again in the path of a file."""


class CellTarget(IcebergTarget):
    """Commits all groups of a run or none: what is due after it follows from all of them."""

    def begin(self, offered: tuple[StagedGroup, ...]) -> Attempt[StagedGroup]:
        """Read the newest metadata; no group is left if others changed an input of any."""
        found = super().begin(offered)
        return found if len(found.groups) == len(offered) else Attempt((), set_aside=found.set_aside)


@dataclass(slots=True)
class IcebergCells:
    """`actor.cells.job.CellTable` for one job.

    check: raises for a table that must not be touched. opened: a writer and a target of commits for metadata.
    reserved_disk_bytes stay free on a local disk.
    """

    table: JavaTable
    manifests: JavaCells
    job: TableJob
    control: TableJobControl
    boundary: Boundary
    check: Callable[[TableHead], None]
    opened: Callable[[TableHead], tuple[StagedWriter, CellTarget]]
    reserved_disk_bytes: int
    head: TableHead = field(init=False)
    """The metadata and columns of the last snapshot, and its live files with the bounds of the clustering columns."""
    known: TableColumns = field(init=False)
    live: Mapping[LiveInput, Bounds] = field(init=False)

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files; raises what the check does."""
        head = self.head = self.table.refresh()
        self.check(head)
        self.known = self.table.columns(head.metadata.configuration)
        named = named_columns(self.known, self.job.policy.cluster_by)
        ids = [field_id for field_id, _ in named.values()]
        self.live = {} if head.current is None else self.manifests.live(head, head.current, ids)
        files = tuple(one.file for one in self.live)
        return Snapshot(newest_position(head).version, head.updated_ms, head.metadata, head.protocol, files)

    def not_wanted(self) -> str:
        """Return why the job has nothing to do."""
        return reason_not_wanted(self.job, self.head.metadata)

    def columns(self) -> tuple[CellColumn, ...]:
        """Return the clustering columns; raises Unsupported and RefusedFiles where they cannot be."""
        policy, location = self.job.policy, self.job.location
        if policy.cluster_by is None or policy.cluster is not ClusterMode.CELLS:
            raise Unsupported(
                f"{location} is not kept in cells: set lakewright.cluster to cells, and lakewright.cluster-by to the "
                "columns",
                field="cluster-by",
            )
        if self.head.metadata.configuration.get(_FORMAT, "").lower() == "avro":
            raise RefusedFiles(
                f"{location} is not kept in cells: its files would be of Avro, whose bounds Iceberg does not keep, so "
                f"none would ever have its place; set {_FORMAT} to parquet or orc",
                reason=RefusalReason.BOUNDS,
                field=_FORMAT,
            )
        found = cell_columns(self.known, policy.cluster_by, self.manifests.modes, location)
        path = self.manifests.location(f"{name_prefix(_WAITS)}{_WRITTEN}")
        if (tag_of(path), written_name(path)) != (_WAITS, _WRITTEN):
            raise self._unnamed(path)
        return found

    def inputs(self, *_: object, **__: object) -> Mapping[str, LiveInput]:
        """Return all files of the last snapshot by path, for its commit, which would list them again."""
        return {one.path: one for one in self.live}

    def boxes(self, columns: tuple[CellColumn, ...]) -> Mapping[LiveInput, Box]:
        """Return the box of each live file; raises what the boundary does."""
        self.boundary.check_files(self.head.location, [one.file for one in self.live])
        self.boundary.check_links(self.head.location, (one.path for one in self.live))
        return {one: box_of(columns, bounds, one.rows) for one, bounds in self.live.items()}

    def rewrite(
        self, plan: CellPlan[LiveInput], run: CellRun, mark: Callable[[CellPlan[LiveInput]], CommitMetadata]
    ) -> tuple[int, Mapping[str, int]]:
        """Carry out a run in one commit; raises Conflict where others took one of the files, and what is refused."""
        inputs = plan.inputs(run)
        self.boundary.check_links(self.head.location, (path for one in inputs for path in _group([one]).delete_files))
        size_bytes = sum(one.size_bytes for one in inputs)
        require_free_space(self.head.location, size_bytes, reserved_bytes=self.reserved_disk_bytes)
        writer, target = self.opened(self.head)
        target.at_read = self
        committer = Committer(target, JobPermission(self.control))
        written: list[StagedGroup] = []
        try:
            boxes = self._write(writer, plan, run, written)
            self.boundary.check_files(self.head.location, [one.file for one in boxes])
            target.user_metadata = mark(plan.after(inputs, boxes)).encode()
            self.control.reached(FILES_WRITTEN)
        except BaseException:
            committer.discard(written)
            raise
        landed = committer.commit(written)
        if landed.version is None:
            raise Conflict(
                f"others changed files of {self.job.location} while they were rewritten; they are chosen again",
                kind="Stale",
            )
        return landed.version, _figures(inputs, written)

    def _write(
        self, writer: StagedWriter, plan: CellPlan[LiveInput], run: CellRun, written: list[StagedGroup]
    ) -> dict[LiveInput, Box]:
        """Write the groups, each of which is added to `written`; return the outputs with their boxes."""
        outputs, made = CellOutputs(plan, run.operations), list[tuple[IcebergFile, StagedGroup, int]]()

        @cache
        def read(*files: LiveInput) -> ReadGroup:
            return writer.read(_group(files), plan.columns)

        def points(files: Sequence[LiveInput], every: int) -> list[Point]:
            with _named(files):
                return writer.sample(read(*files), plan.columns, every)

        for files, route, first in outputs.routes(points):
            with _named(files):
                group = writer.write_divided(read(*files), _division(plan.columns, outputs, route, first))
                written.append(group)
                made += [(one, group, first) for one in group.outputs]
        return self._placed(made, plan.columns, outputs)

    def _placed(
        self,
        made: Sequence[tuple[IcebergFile, StagedGroup, int]],
        columns: tuple[CellColumn, ...],
        outputs: CellOutputs[LiveInput],
    ) -> dict[LiveInput, Box]:
        """Return the files that were made, each with its group and the number of that one's first output, with boxes.

        Raises Corrupt unless each lies in the cell that its name says.
        """
        found: dict[LiveInput, Box] = {}
        bounds = self.manifests.bounds([one.raw for one, *_ in made], [int(column.path[0]) for column in columns])
        for (one, group, first), of_output in zip(made, bounds, strict=True):
            path, rows = one.file.path, one.file.rows or 0
            box = box_of(columns, of_output, rows)
            with _named(group.live.inputs):
                require_bounds(columns, of_output, rows, self.job.location)
                tag = outputs.tag(first + self._number(path), box, path)
            if tag_of(path) != tag:
                raise Corrupt(f"the name of {path} is not of the cell {tag}; nothing was committed")
            file = replace(one.file, tags={CELL_TAG: tag})
            found[LiveInput(path, file.size_bytes, rows, group.live.inputs[0].spec, (), file)] = box
        return found

    def _number(self, path: str) -> int:
        """Return the number of the output that a file is, with which its own name begins."""
        number = written_name(path).partition("-")[0]
        if not number.isdigit():
            raise self._unnamed(path)
        return int(number)

    def _unnamed(self, path: str) -> RefusedFiles:
        return RefusedFiles(
            f"{self.job.location} is not kept in cells: its location provider does not keep the names of files, as for "
            f"{path}, and a cell is in the name; unset write.location-provider.impl",
            reason=RefusalReason.UNSUPPORTED,
            field="write.location-provider.impl",
        )


@contextmanager
def _named(files: Sequence[LiveInput]) -> Iterator[None]:
    """Have a refusal that names no files name these, so that the others of the run can go on without them."""
    try:
        yield
    except RefusedFiles as refused:
        refused.files = refused.files or tuple(one.path for one in files)
        raise


def _division(columns: tuple[CellColumn, ...], outputs: CellOutputs[LiveInput], route: Route, first: int) -> Division:
    ends = range(first, first + len(outputs_of(route)))
    prefixes = tuple(name_prefix(outputs.cell_tag(number)) for number in ends)
    return Division(columns, route, outputs.choice(route, 0), prefixes)


def _group(files: Sequence[LiveInput]) -> InputGroup:
    """Return files of one partition as a group."""
    return InputGroup(
        FileGroup(files[0].file.partition, tuple(one.file for one in files), RewriteMode.MINOR), tuple(files)
    )


def _figures(inputs: Sequence[LiveInput], written: Sequence[StagedGroup]) -> dict[str, int]:
    outputs = [one.file for group in written for one in group.outputs]
    figures: dict[str, int] = {
        "files_replaced": len(inputs),
        "bytes_replaced": sum(one.size_bytes for one in inputs),
        "files_written": len(outputs),
        "bytes_written": sum(one.size_bytes for one in outputs),
    }
    for group in written:
        for name, count in ({} if group.proof is None else group.proof.figures).items():
            figures[name] = figures.get(name, 0) + count
    return figures
