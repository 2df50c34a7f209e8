"""Iceberg tables whose own properties let rows become 90 days old."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pyiceberg.table import StaticTable

from tests.iceberg_stress.readers import _DuckDb
from tests.support.aged_rows import AgedRows
from tests.support.iceberg_lab import IcebergLab


class AgedIceberg(AgedRows):
    """An Iceberg table."""

    format = "iceberg"
    own: Mapping[str, str] = {"format-version": "2", "write.distribution-mode": "none"}
    lab: IcebergLab

    without: Collection[str] = ()
    """Readers that read other rows than the table has, beside DuckDB of version 3."""

    def full_name(self, lab: IcebergLab, name: str) -> str:
        del lab
        return f"ice.db.{name}"

    @property
    def location(self) -> str:
        return self.lab.location(self.name)

    @property
    def java(self) -> Any:
        return self.lab.java(self.name)

    def append(self, *rows: tuple[int, Any]) -> None:
        values = ", ".join(f"({id_}, {self.literal(value)})" for id_, value in rows)
        frame = self.session.sql(f"SELECT * FROM VALUES {values} AS t(id, ts)").coalesce(1)
        frame.writeTo(self.name).option("fanout-enabled", "true").append()

    @property
    def readers(self) -> Mapping[str, Callable[[], list[int]]]:
        newest = str(self.java.operations().current().metadataFileLocation())
        has_vectors = self.properties["format-version"] == "3"
        without = {*self.without, *(["duckdb"] if has_vectors else ())}  # It applies those of one file to another.
        readers: dict[str, Callable[[], list[int]]] = {
            "spark": lambda: [row[0] for row in self.sql("SELECT id FROM {}")],
            "pyiceberg": lambda: StaticTable.from_metadata(newest).scan().to_arrow()["id"].to_pylist(),
            "duckdb": lambda: [
                row[0] for row in _DuckDb()._connection.sql(f"SELECT id FROM iceberg_scan('{newest}')").fetchall()
            ],
        }
        return {name: read for name, read in readers.items() if name not in without}

    def row_ids(self) -> dict[int, int]:
        has_ids = self.properties["format-version"] == "3"
        return dict(map(tuple, self.sql("SELECT id, _row_id FROM {}"))) if has_ids else {}

    def refs(self) -> list[str]:
        """A tag, a branch, and the snapshot."""
        snapshot = self.java.currentSnapshot().snapshotId()
        self.java.manageSnapshots().createTag("kept", snapshot).createBranch("side", snapshot).commit()
        return ["'kept'", "'side'", str(snapshot)]

    def unknown_files(self) -> Collection[str]:
        return self.lab.files_on_disk(self.name) - self.lab.known_files(self.name)

    def make_first_look_old(self) -> str:
        java, resolve = self.java, self.lab.engine._scala.resolve
        tasks = self.lab.engine._scala.iceberg_ages.planned(java, java.currentSnapshot().snapshotId(), 2, 2**62)
        files = sorted((task.file() for task in tasks), key=lambda one: str(one.upperBounds()))
        by_age = {bytes(one.upperBounds().get(2).array()): one for one in files}
        old, new = (by_age[one] for one in sorted(by_age, key=lambda one: int.from_bytes(one, "little")))
        metrics = resolve("org.apache.iceberg.Metrics")(
            new.recordCount(), None, None, old.nullValueCounts(), None, old.lowerBounds(), old.upperBounds()
        )
        builder = resolve("org.apache.iceberg.DataFiles").builder(java.spec()).copy(new).withMetrics(metrics)
        java.newOverwrite().deleteFile(new).commit()
        java.newAppend().appendFile(builder.build()).commit()
        return str(new.location())

    def snapshots(self) -> list[tuple[str, Mapping[str, str]]]:
        """Operation and summary of each snapshot, the newest first."""
        head = self.lab.engine._tables.load(self.location).head()
        return [(one.operation, one.summary) for one in head.chain()]
