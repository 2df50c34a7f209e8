"""A table in cells on real Delta: written by Spark, kept by jobs as an actor runs them, and what its files say."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.cell_columns import CellColumn, box_of
from actor.ports import TableJob, TableJobOutcome
from shared.jobs.cluster_options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.cells.boxes import Box, holds
from shared.layout.cells.tags import CELL_TAG, decode_cell
from shared.policy.policy import KIB, ClusterMode, Policy
from shared.table import CommitOrigin
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import live
from tests.support.local_vacuum import Control

POLICY = Policy(cluster=ClusterMode.CELLS, target_bytes=16 * KIB).with_traits(is_clustered=True)


class CellsTable:
    """A table clustered by some columns; `kinds` are the types of all of its columns."""

    def __init__(self, lab: DeltaLab, kinds: Mapping[str, str], by: Sequence[str], properties: str = "") -> None:
        self.lab = lab
        self.path = lab.directory / "cells"
        self.name = f"delta.`{self.path}`"
        columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        given = f"TBLPROPERTIES ({properties})" if properties else ""
        lab.sql(f"CREATE TABLE {self.name} ({columns}) USING delta CLUSTER BY ({', '.join(by)}) {given}")

    def insert(self, rows: int, values: str, files: int = 1) -> None:
        """Append rows in so many files by one commit; `values` are SQL of the row's number `id`."""
        made = self.lab.spark.range(0, rows, 1, files).selectExpr(*values.split("; "))
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

    def cells(self, columns: Sequence[CellColumn]) -> list[tuple[Box | None, Box]]:
        """The cell that each of our files names, and its own box."""
        paths = [column.path for column in columns]
        ours = [add for add in self.live() if CELL_TAG in (add.get("tags") or {})]
        return [
            (decode_cell(add["tags"][CELL_TAG], paths), box_of(columns, LoggedFile(decode_add(add, ()), encode(add))))
            for add in ours
        ]

    def require_lawful(self, columns: Sequence[CellColumn]) -> int:
        """Check that each of our files lies in its cell; return the number of cells."""
        found = self.cells(columns)
        assert all(holds(cell, box) for cell, box in found if cell is not None)
        return len({cell for cell, _ in found if cell is not None})

    def digest(self) -> Any:
        return self.lab.digest(str(self.path))

    def statistics(self) -> list[Mapping[str, Any]]:
        return [json.loads(add["stats"]) for add in self.live()]
