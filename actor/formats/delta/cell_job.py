"""Keeps a table with `CLUSTER BY` in cells: a run plans on the live files, and rewrites what is most urgent, exactly.

Other than the statement, a run rewrites as many bytes whatever the table's size. What is left is told in the commit.
"""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from actor.formats.delta.actions import LoggedFile, read_paths
from actor.formats.delta.cell_columns import CellColumn, box_of, cell_columns
from actor.formats.delta.cell_writer import PROVIDER, CellWriter
from actor.formats.delta.clustered_table import clustering_columns, clustering_not_wanted
from actor.formats.delta.job_table import JobTable
from actor.formats.delta.written_group import WrittenGroup
from actor.ports import TableJobOutcome
from shared.errors import Conflict
from shared.jobs.cluster_options import ClusterOptions
from shared.layout.cells.operations import BoxedFile, CellSizes
from shared.layout.cells.runs import CellRun, plan_run, sizes_of_run
from shared.layout.cells.tags import CELL_TAG, decode_cell
from shared.layout.cells.tree import tree_of
from shared.layout.commit_metadata import CommitMetadata
from shared.table import Snapshot

CONFLICTS = 3
"""Times that others may take files of a run, or delete rows of them, before the job ends; each time it plans again."""

_TAKEN_OVER = (None, "liquid", PROVIDER)
"""Providers of files that are put into cells: whoever else clusters files here, they are theirs."""

Boxed = Mapping[LoggedFile, BoxedFile]


@dataclass(frozen=True, slots=True)
class _Plan:
    """A run on the files that have a place."""

    columns: tuple[CellColumn, ...]
    files: Boxed
    sizes: CellSizes

    def run(self) -> CellRun:
        cells = {file.cell for file in self.files.values() if file.cell is not None}
        return plan_run(tree_of(cells, len(self.columns)), tuple(self.files.values()), self.sizes)

    def after(self, written: WrittenGroup) -> "_Plan":
        """Return the plan of what is due once a group is committed."""
        gone = set(written.live.inputs)
        kept = {logged: boxed for logged, boxed in self.files.items() if logged not in gone}
        return replace(self, files={**kept, **_boxed(written.outputs, self.columns)})


@dataclass(slots=True)
class CellJob:
    """One job on one table."""

    table: JobTable
    _commits: list[int] = field(default_factory=list)
    _figures: Counter[str] = field(default_factory=Counter)

    def run(self) -> TableJobOutcome:
        """Make one run; where a person requested it, as many as a job may rewrite bytes, until nothing is due.

        Raises Unsupported and OtherTable for a table that must not be touched, RefusedFiles for one that cannot be kept
        in cells, Conflict where others take the files again and again.
        """
        conflicts = 0
        while True:
            snapshot = self.table.snapshot()
            reason = clustering_not_wanted(self.table.job, self.table.shape)
            plan = None if reason else self._plan(snapshot)
            run = None if plan is None else plan.run()
            if plan is None or run is None or not run.operations:
                return self._outcome(snapshot, reason or "nothing is due in the cells of the table")
            try:
                self._carry_out(plan, run)
            except Conflict:
                conflicts += 1
                if conflicts == CONFLICTS:
                    raise
                continue
            if self._is_last(plan.sizes):
                return self._outcome(snapshot)

    def _plan(self, snapshot: Snapshot) -> _Plan:
        table = self.table
        location, live = table.job.location, table.live
        table.boundary.check_files(location, snapshot.files)
        table.boundary.check_links(location, read_paths(live))
        columns = cell_columns(
            clustering_columns(table.scala, table.found, location),
            json.loads(table.shape.stored.metadata_json)["metaData"],
            _minima(json.loads(table.found.statsSchema().json())),
            location,
        )
        files = _boxed([one for one in live if json.loads(one.json).get("clusteringProvider") in _TAKEN_OVER], columns)
        return _Plan(columns, files, self._sizes(files))

    def _sizes(self, files: Boxed) -> CellSizes:
        """Return the sizes of a run; it holds the largest file at least, as far as a job may rewrite that much."""
        policy, options = self.table.job.policy, ClusterOptions.decode(self.table.job.options)
        most = policy.max_bytes_per_job
        sizes = sizes_of_run(policy.target_bytes, options.commit_bytes, most)
        largest = max((file.size_bytes for file in files.values()), default=0)
        return replace(sizes, run_bytes=min(most, max(sizes.run_bytes, largest)))

    def _carry_out(self, plan: _Plan, run: CellRun) -> None:
        table, control = self.table, self.table.control
        taken = {one.file.key for operation in run.operations for one in operation.files}
        inputs = [logged for logged in plan.files if logged.key in taken]
        new = [one.file for one in table.live if CELL_TAG not in one.file.tags and one.key not in taken]
        started_ms = int(time.time() * 1000)

        def mark(written: WrittenGroup) -> CommitMetadata:
            return CommitMetadata(
                table.job.origin,
                round=len(self._commits) + 1,
                mode=table.job.kind,
                started_ms=started_ms,
                traceparent=table.job.trace or None,
                left_bytes=plan.after(written).run().due_bytes,
                settled_files=len(new),
                settled_bytes=sum(file.size_bytes for file in new),
            )

        control.reached("clustering")
        control.may_change()
        version, written = table.rewrite(
            inputs,
            lambda snapshot, tasks, proofs: CellWriter(
                table.scala, snapshot, tasks, proofs, plan.columns, run.operations, plan.files, plan.sizes
            ),
            mark,
        )
        self._commits.append(version)
        self._figures.update(written.figures)
        self._figures["operations"] += len(run.operations)
        control.measured(self._figures)
        control.reached("committed")

    def _is_last(self, sizes: CellSizes) -> bool:
        job = self.table.job
        is_spent = self._figures["bytes_replaced"] + sizes.run_bytes > job.policy.max_bytes_per_job
        return is_spent or not ClusterOptions.decode(job.options).force or self.table.control.should_stop()

    def _outcome(self, snapshot: Snapshot, reason: str = "") -> TableJobOutcome:
        commits, figures = tuple(self._commits), dict(self._figures)
        return TableJobOutcome(snapshot.version, snapshot.metadata, commits, figures, reason="" if commits else reason)


def _boxed(files: Sequence[LoggedFile], columns: Sequence[CellColumn]) -> Boxed:
    paths = [column.path for column in columns]
    return {
        logged: BoxedFile(logged.file, box_of(columns, logged), decode_cell(logged.file.tags.get(CELL_TAG, ""), paths))
        for logged in files
    }


def _minima(statistics: Mapping[str, object]) -> Mapping[str, object]:
    """Return the schema of the minima among that of the statistics that writers note."""
    fields = statistics["fields"]
    assert isinstance(fields, list)
    return next((field["type"] for field in fields if field["name"] == "minValues"), {})
