"""A table in cells on real Delta: written by Spark, kept by jobs as an actor runs them, and what its files say."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from actor.cells.columns import CellColumn
from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.cell_bounds import box_of, cell_columns
from actor.formats.delta.clustered_table import clustering_columns
from actor.formats.delta.log import TableLog
from actor.ports import TableJob, TableJobOutcome
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.cells.boxes import Box, holds
from shared.layout.cells.tags import CELL_TAG, decode_cell
from shared.policy.policy import KIB, ClusterMode, Policy
from shared.table import CommitOrigin
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import commit_info, live, newest
from tests.support.local_vacuum import Control

POLICY = Policy(cluster=ClusterMode.CELLS, target_bytes=64 * KIB).with_traits(is_clustered=True)


class CellsTable:
    """A table clustered by some columns, or by none yet; `kinds` are the types of all of its columns."""

    def __init__(self, lab: DeltaLab, kinds: Mapping[str, str], by: Sequence[str], properties: str = "") -> None:
        self.lab = lab
        self.path = lab.directory / "cells"
        self.name = f"delta.`{self.path}`"
        columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        given = f"TBLPROPERTIES ({properties})" if properties else ""
        clustered = f"CLUSTER BY ({', '.join(by)})" if by else ""
        lab.sql(f"CREATE TABLE {self.name} ({columns}) USING delta {clustered} {given}")

    def insert(self, rows: int, values: str, files: int = 1) -> None:
        """Append rows in so many files by one commit; `values` are SQL of the row's number `id`."""
        made = self.lab.spark.range(0, rows, 1, files).selectExpr(*values.split(";"))
        made.write.format("delta").mode("append").save(str(self.path))

    def run(self, *, force: bool = False, control: Control | None = None, policy: Policy = POLICY) -> TableJobOutcome:
        """Run a job as an actor does."""
        options = ClusterOptions(force=force).encode()
        job = TableJob(CLUSTER, self.path.as_uri(), policy, CommitOrigin("job", 7), options=options)
        return self.lab.engine.run_table_job(job, control or Control())

    def live(self) -> list[Mapping[str, Any]]:
        return list(live(self.path).values())

    def ours(self) -> set[str]:
        """The paths of our files."""
        return {add["path"] for add in self.live() if add.get("clusteringProvider") == "lakewright"}

    def columns(self) -> tuple[CellColumn, ...]:
        """The clustering columns, as an actor reads them."""
        engine, location = self.lab.engine, self.path.as_uri()
        with engine._sessions.lease(tag="test") as owned, engine._sessions.bound(owned) as session:
            log = TableLog(engine._scala, session, location)
            found = log.snapshot()
            metadata = json.loads(log.shape(found).metadata_json)["metaData"]
            statistics = json.loads(found.statsSchema().json())
            return cell_columns(clustering_columns(engine._scala, found, location), metadata, statistics, location)

    def cells(self) -> list[tuple[Box | None, Box]]:
        """The cell that each of our files names, and its own box."""
        columns = self.columns()
        paths = [column.path for column in columns]
        ours = [add for add in self.live() if CELL_TAG in (add.get("tags") or {})]
        return [
            (decode_cell(add["tags"][CELL_TAG], paths), box_of(columns, LoggedFile(decode_add(add, ()), encode(add))))
            for add in ours
        ]

    def require_lawful(self) -> int:
        """Check that each of our files lies in its cell; return the number of cells."""
        found = self.cells()
        assert all(holds(cell, box) for cell, box in found if cell is not None)
        return len({cell for cell, _ in found if cell is not None})

    def report(self) -> Mapping[str, Any]:
        """Return the report of the run that made the newest commit."""
        return json.loads(commit_info(self.path, newest(self.path))["userMetadata"])["lakewright"]

    def digest(self) -> Any:
        return self.lab.digest(str(self.path))
