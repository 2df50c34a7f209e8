"""Keeps a table in cells: a run plans on the live files, and rewrites what is most urgent, exactly, in one commit.

Other than the format's own statement, a run rewrites as many bytes whatever the table's size. Its commit reports what
is due after it. What a format does is behind `CellTable`: it says where its files lie, and rewrites some of them.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol

from actor.cells.columns import CellColumn
from actor.cells.plan import CellPlan, F
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from shared.errors import Conflict, RefusedFiles
from shared.jobs.options import ClusterOptions
from shared.layout.cells.boxes import Box
from shared.layout.cells.operations import CellSizes
from shared.layout.cells.runs import CellRun, sizes_of_run
from shared.layout.cells.tags import CELL_TAG
from shared.layout.commit_metadata import CommitMetadata
from shared.table import FileKey, Snapshot

CONFLICTS = 3
"""Times that others may take files of a run, or delete rows of them, before the job ends; each time it plans again."""

NOTHING_DUE = "nothing is due in the cells of the table"


class CellTable(Protocol[F]):
    """A table in cells, in the session of one job."""

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files, which the other methods are about."""

    def not_wanted(self) -> str:
        """Return why the job has nothing to do; raises OtherTable or Unsupported for a table not to be touched."""

    def columns(self) -> tuple[CellColumn, ...]:
        """Return the clustering columns; raises RefusedFiles where files get no bounds of one of them."""

    def boxes(self, columns: tuple[CellColumn, ...]) -> Mapping[F, Box]:
        """Return the box of each live file that may be put into cells."""

    def rewrite(
        self, plan: CellPlan[F], run: CellRun, mark: Callable[[CellPlan[F]], CommitMetadata]
    ) -> tuple[int, Mapping[str, int]]:
        """Carry out a run in one commit, under a mark that follows from the plan which it leaves.

        Returns its version and figures. Raises Conflict where others took one of the files, RefusedFiles where an
        output has no bounds.
        """


@dataclass(slots=True)
class CellJob(Generic[F]):
    """One job on one table; `clock_ms` is the time that commits carry."""

    table: CellTable[F]
    job: TableJob
    control: TableJobControl
    clock_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    _commits: list[int] = field(default_factory=list)
    _refused: dict[FileKey, RefusedFiles] = field(default_factory=dict)
    _figures: Counter[str] = field(default_factory=Counter)

    def run(self) -> TableJobOutcome:
        """Make one run; where a person requested it, as many as a job may rewrite bytes, until nothing is due.

        An operation that is refused is left out. Raises Unsupported and OtherTable for a table that must not be
        touched, RefusedFiles for one that cannot be kept in cells or where nothing else is due, Conflict where others
        take the files again and again.
        """
        conflicts = 0
        while True:
            snapshot = self.table.snapshot()
            reason = self.table.not_wanted()
            plan = None if reason else self._plan()
            run = None if plan is None else plan.run()
            if plan is None or run is None or not run.operations:
                if self._refused and not self._commits and not reason:
                    raise next(iter(self._refused.values()))
                return self._outcome(snapshot, reason or NOTHING_DUE)
            try:
                self._carry_out(snapshot, plan, run)
            except Conflict:
                conflicts += 1
                if conflicts == CONFLICTS:
                    raise
                continue
            except RefusedFiles as refused:
                self._leave_out(run, refused)
                continue
            if not self._options.force or self._is_spent(plan.sizes):
                return self._outcome(snapshot)
            if self.control.should_stop():
                return replace(self._outcome(snapshot), is_complete=False)

    def _plan(self) -> CellPlan[F]:
        policy, columns = self.job.policy, self.table.columns()
        sizes = sizes_of_run(policy.target_bytes, self._options.commit_bytes, policy.max_bytes_per_job)
        boxes = {one: box for one, box in self.table.boxes(columns).items() if one.file.key not in self._refused}
        return CellPlan.of(columns, boxes, sizes, policy.max_bytes_per_job)

    def _leave_out(self, run: CellRun, refused: RefusedFiles) -> None:
        """Note the files of the operations that have refused ones; raises the refusal where it names none of them."""
        groups = [[one.file for one in operation.files] for operation in run.operations]
        named = [group for group in groups if any(file.path in refused.files for file in group)]
        if not named:
            raise refused
        self._refused |= {file.key: refused for group in named for file in group}

    def _carry_out(self, snapshot: Snapshot, plan: CellPlan[F], run: CellRun) -> None:
        taken = {one.file.key for one in plan.inputs(run)}
        settled = [one for one in snapshot.files if CELL_TAG not in one.tags and one.key not in taken]
        started_ms = self.clock_ms()

        def mark(left: CellPlan[F]) -> CommitMetadata:
            return CommitMetadata(
                self.job.origin,
                round=len(self._commits) + 1,
                mode=self.job.kind,
                started_ms=started_ms,
                traceparent=self.job.trace or None,
                left_bytes=left.run().due_bytes,
                settled_files=len(settled),
                settled_bytes=sum(file.size_bytes for file in settled),
            )

        self.control.reached("clustering")
        self.control.may_change()
        version, figures = self.table.rewrite(plan, run, mark)
        self._commits.append(version)
        self._figures.update(figures)
        self._figures["operations"] += len(run.operations)
        self.control.measured(self._figures)
        self.control.reached("committed")

    @property
    def _options(self) -> ClusterOptions:
        return ClusterOptions.decode(self.job.options)

    def _is_spent(self, sizes: CellSizes) -> bool:
        """Return whether another run would exceed the bytes of a job."""
        return self._figures["bytes_replaced"] + sizes.run_bytes > self.job.policy.max_bytes_per_job

    def _outcome(self, snapshot: Snapshot, reason: str = "") -> TableJobOutcome:
        commits, figures = tuple(self._commits), dict(self._figures)
        return TableJobOutcome(snapshot.version, snapshot.metadata, commits, figures, reason="" if commits else reason)
