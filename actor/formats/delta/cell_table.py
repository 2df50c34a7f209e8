"""A Delta table with `CLUSTER BY` in cells, in the session of one job."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from actor.cells.columns import CellColumn
from actor.cells.plan import CellPlan
from actor.formats.delta.actions import LoggedFile, read_paths
from actor.formats.delta.cell_bounds import box_of, cell_columns
from actor.formats.delta.cell_writer import PROVIDER, CellWriter
from actor.formats.delta.clustered_table import clustering_columns, clustering_not_wanted
from actor.formats.delta.job_table import JobTable
from shared.layout.cells.boxes import Box
from shared.layout.cells.runs import CellRun
from shared.layout.commit_metadata import CommitMetadata
from shared.table import Snapshot

_TAKEN_OVER = (None, "liquid", PROVIDER)
"""Providers of files that are put into cells: what others cluster is theirs. Delta's own are superseded."""


@dataclass(frozen=True, slots=True)
class DeltaCells:
    """`actor.cells.job.CellTable` for one job."""

    table: JobTable

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files; raises InvalidInput where there is no table."""
        return self.table.snapshot()

    def not_wanted(self) -> str:
        """Return why the job has nothing to do; raises OtherTable or Unsupported for a table not to be touched."""
        return clustering_not_wanted(self.table.job, self.table.shape)

    def columns(self) -> tuple[CellColumn, ...]:
        """Return the clustering columns; raises RefusedFiles where the table's writers note no bounds of one."""
        table = self.table
        return cell_columns(
            clustering_columns(table.scala, table.found, table.job.location),
            json.loads(table.shape.stored.metadata_json)["metaData"],
            json.loads(table.found.statsSchema().json()),
            table.job.location,
        )

    def boxes(self, columns: tuple[CellColumn, ...]) -> Mapping[LoggedFile, Box]:
        """Return the box of each live file that no third provider has clustered; raises what the boundary does."""
        table = self.table
        table.boundary.check_files(table.job.location, [one.file for one in table.live])
        table.boundary.check_links(table.job.location, read_paths(table.live))
        taken_over = [one for one in table.live if json.loads(one.json).get("clusteringProvider") in _TAKEN_OVER]
        return {one: box_of(columns, one) for one in taken_over}

    def rewrite(
        self, plan: CellPlan[LoggedFile], run: CellRun, mark: Callable[[CellPlan[LoggedFile]], CommitMetadata]
    ) -> tuple[int, Mapping[str, int]]:
        """Carry out a run in one commit; raises Conflict where others took one of the files, and what is refused."""
        scala = self.table.scala
        version, written = self.table.rewrite(
            plan.inputs(run),
            lambda snapshot, tasks, proofs: CellWriter(scala, snapshot, tasks, proofs, plan, run.operations),
            lambda written: mark(
                plan.after(written.live.inputs, {one: box_of(plan.columns, one) for one in written.outputs})
            ),
        )
        return version, written.figures
