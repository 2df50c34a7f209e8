"""An Iceberg table in cells: written by Spark, kept by jobs as an actor runs them, and what its files say."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyiceberg.table import StaticTable
from pyspark.sql import functions as f

from actor.cells.columns import CellColumn
from actor.formats.iceberg.cell_bounds import box_of, cell_columns, named_columns
from actor.formats.iceberg.inputs import LiveInput
from actor.formats.iceberg.java_cells import JavaCells
from actor.ports import TableJob, TableJobOutcome
from shared.formats.iceberg.names import COMMIT_KEY
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.cells.boxes import Box, holds
from shared.layout.cells.tags import CELL_TAG, decode_cell
from shared.policy.policy import KIB, ClusterMode, Policy
from shared.table import CommitOrigin
from tests.iceberg_stress.readers import _DuckDb
from tests.support.iceberg_lab import IcebergLab
from tests.support.local_vacuum import Control

POLICY = Policy(cluster=ClusterMode.CELLS, target_bytes=64 * KIB).with_traits(is_clustered=True)


class IcebergCellsTable:
    """A table in cells of some columns; `kinds` are the types of all columns, `parted` how it is partitioned."""

    def __init__(
        self,
        lab: IcebergLab,
        kinds: Mapping[str, str],
        by: Sequence[str],
        *,
        version: int = 2,
        parted: str = "",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.lab = lab
        self.name = "ice.db.cells"
        self.has_row_ids = version > 2
        self.cluster_by(*by)
        columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        partitioned = f"PARTITIONED BY ({parted})" if parted else ""
        given = {"format-version": str(version), "write.distribution-mode": "none"}
        given |= {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}
        text = ", ".join(f"'{key}'='{value}'" for key, value in (given | dict(properties or {})).items())
        lab.sql(f"CREATE TABLE {self.name} ({columns}) USING iceberg {partitioned} TBLPROPERTIES ({text})")

    def cluster_by(self, *columns: str) -> None:
        """Have later jobs cluster by these columns."""
        self.policy = replace(POLICY, cluster_by=", ".join(columns))

    def insert(self, rows: int, values: str, files: int = 1) -> None:
        """Append rows in so many files by one commit; `values` are SQL of the row's number `id`."""
        made = self.lab.session.range(0, rows, 1, files).selectExpr(*values.split(";"))
        made.writeTo(self.name).option("fanout-enabled", "true").append()

    def run(self, *, force: bool = False, control: Control | None = None, **changed: Any) -> TableJobOutcome:
        """Run a job as an actor does, by a policy that is changed so."""
        options = ClusterOptions(force=force).encode()
        policy = replace(self.policy, **changed)
        job = TableJob(CLUSTER, self.lab.location(self.name), policy, CommitOrigin("job", 7), options=options)
        return self.lab.engine.run_table_job(job, control or Control())

    def columns(self) -> tuple[CellColumn, ...]:
        """The clustering columns, as an actor reads them."""
        table = self._loaded
        columns = table.columns(table.head().metadata.configuration)
        manifests = JavaCells(self.lab.engine._scala, table)
        return cell_columns(columns, self.policy.cluster_by or "", manifests.modes, table.location)

    @property
    def _loaded(self) -> Any:
        return self.lab.engine._tables.load(self.lab.location(self.name))

    def boxes(self) -> dict[LiveInput, Box]:
        """The live files with their boxes, as an actor reads them."""
        table, columns = self._loaded, self.columns()
        head = table.head()
        ids = [one for one, _ in named_columns(table.columns({}), self.policy.cluster_by).values()]
        found = JavaCells(self.lab.engine._scala, table).live(head, head.current, ids)
        return {one: box_of(columns, bounds, one.rows) for one, bounds in found.items()}

    def paths(self) -> set[str]:
        """The paths of all live files."""
        return {one.path for one in self.boxes()}

    def ours(self) -> set[str]:
        """The paths of our files."""
        return {one.path for one in self.boxes() if CELL_TAG in one.file.tags}

    def cells(self) -> list[tuple[Box | None, Box, str]]:
        """The cell that each of our files names, its own box, and its partition, in one order."""
        paths = [column.path for column in self.columns()]
        found = (
            (decode_cell(one.file.tags[CELL_TAG], paths), box, one.file.partition)
            for one, box in self.boxes().items()
            if CELL_TAG in one.file.tags
        )
        return sorted(found, key=repr)

    def require_lawful(self) -> int:
        """Check that each of our files lies in its cell; return the number of cells."""
        found = self.cells()
        assert all(holds(cell, box) for cell, box, _ in found if cell is not None)
        return len({(cell, partition) for cell, _, partition in found if cell is not None})

    def report(self) -> Mapping[str, Any]:
        """Return the report of the run that made the newest snapshot."""
        head = self._loaded.head()
        found: Mapping[str, Any] = json.loads(head.snapshots[head.current].summary[COMMIT_KEY])["lakewright"]
        return found

    def digest(self) -> tuple[Any, ...]:
        """The number of rows and the sum of their hashes."""
        frame = self.lab.session.table(self.name)
        hashed = f.xxhash64(*sorted(frame.columns)).cast("decimal(38,0)")
        return tuple(frame.select(f.count("*"), f.sum(hashed)).collect()[0])

    def row_ids(self) -> list[tuple[Any, ...]]:
        """The ids of rows, and when each was written, where the table has them."""
        text = f"SELECT a, b, _row_id, _last_updated_sequence_number FROM {self.name}"
        return sorted(map(tuple, self.lab.sql(text).collect())) if self.has_row_ids else []

    def rows_by_partition(self) -> dict[str, int]:
        """The number of rows of each partition, by files and what their deletes name exactly."""
        found: dict[str, int] = {}
        for one in self.boxes():
            found[one.file.partition] = found.get(one.file.partition, 0) + one.rows - one.file.deleted_rows
        return found

    def unknown_files(self) -> set[str]:
        """Files that no snapshot refers to."""
        return self.lab.files_on_disk(self.name) - self.lab.known_files(self.name)

    def by_others(self) -> dict[str, list[str]]:
        """The rows as other readers see them, in one order."""
        newest = str(self.lab.java(self.name).operations().current().metadataFileLocation())
        read = {
            "duckdb": _DuckDb()._connection.sql(f"SELECT * FROM iceberg_scan('{newest}')").to_arrow_table(),
            "pyiceberg": StaticTable.from_metadata(newest).scan().to_arrow(),
        }
        return {name: sorted(map(repr, rows.to_pylist())) for name, rows in read.items()}
