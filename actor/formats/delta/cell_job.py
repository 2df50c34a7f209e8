"""Keeps a table with `CLUSTER BY` in cells: a run plans on the live files, and rewrites what is most urgent, exactly.

Other than the statement, a run rewrites as many bytes whatever the table's size. Its commit reports what is due after
it.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass, field, replace

from actor.formats.delta.actions import read_paths
from actor.formats.delta.cell_columns import cell_columns
from actor.formats.delta.cell_plan import CellPlan
from actor.formats.delta.cell_writer import CellWriter
from actor.formats.delta.clustered_table import clustering_columns, clustering_not_wanted
from actor.formats.delta.job_table import JobTable
from actor.formats.delta.written_group import WrittenGroup
from actor.ports import TableJobOutcome
from shared.errors import Conflict
from shared.jobs.options import ClusterOptions
from shared.layout.cells.operations import CellSizes
from shared.layout.cells.runs import CellRun, sizes_of_run
from shared.layout.cells.tags import CELL_TAG
from shared.layout.commit_metadata import CommitMetadata
from shared.table import Snapshot

CONFLICTS = 3
"""Times that others may take files of a run, or delete rows of them, before the job ends; each time it plans again."""


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
            if not self._options.force or self._is_spent(plan.sizes):
                return self._outcome(snapshot)
            if self.table.control.should_stop():
                return replace(self._outcome(snapshot), is_complete=False)

    def _plan(self, snapshot: Snapshot) -> CellPlan:
        table = self.table
        location, live = table.job.location, table.live
        table.boundary.check_files(location, snapshot.files)
        table.boundary.check_links(location, read_paths(live))
        columns = cell_columns(
            clustering_columns(table.scala, table.found, location),
            json.loads(table.shape.stored.metadata_json)["metaData"],
            json.loads(table.found.statsSchema().json()),
            location,
        )
        policy = table.job.policy
        sizes = sizes_of_run(policy.target_bytes, self._options.commit_bytes, policy.max_bytes_per_job)
        return CellPlan.of(columns, live, sizes, policy.max_bytes_per_job)

    def _carry_out(self, plan: CellPlan, run: CellRun) -> None:
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
                left_bytes=plan.after(written.live.inputs, written.outputs).run().due_bytes,
                settled_files=len(new),
                settled_bytes=sum(file.size_bytes for file in new),
            )

        control.reached("clustering")
        control.may_change()
        version, written = table.rewrite(
            inputs,
            lambda snapshot, tasks, proofs: CellWriter(table.scala, snapshot, tasks, proofs, plan, run.operations),
            mark,
        )
        self._commits.append(version)
        self._figures.update(written.figures)
        self._figures["operations"] += len(run.operations)
        control.measured(self._figures)
        control.reached("committed")

    @property
    def _options(self) -> ClusterOptions:
        return ClusterOptions.decode(self.table.job.options)

    def _is_spent(self, sizes: CellSizes) -> bool:
        """Return whether another run would exceed the bytes of a job."""
        return self._figures["bytes_replaced"] + sizes.run_bytes > self.table.job.policy.max_bytes_per_job

    def _outcome(self, snapshot: Snapshot, reason: str = "") -> TableJobOutcome:
        commits, figures = tuple(self._commits), dict(self._figures)
        return TableJobOutcome(snapshot.version, snapshot.metadata, commits, figures, reason="" if commits else reason)
