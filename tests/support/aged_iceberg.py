"""Iceberg tables whose own properties let rows become 90 days old, and what engines that are not ours read of them."""

from collections.abc import Callable, Mapping
from typing import Any

from pyiceberg.table import StaticTable

from tests.iceberg_stress.readers import _DuckDb
from tests.support.aged_rows import AgedRows
from tests.support.iceberg_lab import IcebergLab


class AgedIceberg(AgedRows):
    """An Iceberg table of the columns id and ts; `kind` is the SQL type of ts, `by` what it is partitioned by."""

    def __init__(
        self,
        ice: IcebergLab,
        name: str,
        kind: str = "TIMESTAMP",
        by: str = "",
        *,
        properties: Mapping[str, str] | None = None,
        rule: str = "90 days of ts",
    ) -> None:
        self.lab, self.kind, self.rule = ice, kind, rule
        self.name = f"ice.db.{name}"
        stated = {
            "format-version": "2",
            "write.distribution-mode": "none",
            "lakewright.delete-rows-after": rule,
            **(properties or {}),
        }
        texts = ", ".join(f"'{key}' = '{value}'" for key, value in stated.items())
        partitioned = f"PARTITIONED BY ({by})" if by else ""
        ice.sql(f"CREATE TABLE {self.name} (id BIGINT, ts {kind}) USING iceberg {partitioned} TBLPROPERTIES ({texts})")

    def append(self, *rows: tuple[int, Any]) -> None:
        """Append rows as one file of each partition."""
        values = ", ".join(f"({id_}, {self.literal(value)})" for id_, value in rows)
        frame = self.lab.sql(f"SELECT * FROM VALUES {values} AS t(id, ts)").coalesce(1)
        frame.writeTo(self.name).option("fanout-enabled", "true").append()

    @property
    def location(self) -> str:
        return self.lab.location(self.name)

    def ids(self, *, without: str = "") -> list[int]:
        """The ids that Spark, pyiceberg and DuckDB read alike, but for one that cannot read such a table."""
        newest = str(self.lab.java(self.name).operations().current().metadataFileLocation())
        readers: dict[str, Callable[[], list[int]]] = {
            "spark": lambda: [row[0] for row in self.lab.sql(f"SELECT id FROM {self.name}").collect()],
            "pyiceberg": lambda: StaticTable.from_metadata(newest).scan().to_arrow()["id"].to_pylist(),
            "duckdb": lambda: [
                row[0] for row in _DuckDb()._connection.sql(f"SELECT id FROM iceberg_scan('{newest}')").fetchall()
            ],
        }
        found = {name: sorted(read()) for name, read in readers.items() if name != without}
        assert len(set(map(tuple, found.values()))) == 1, found
        return found["spark"]

    def at(self, ref: str) -> list[int]:
        """The ids of a branch, a tag or a snapshot, as Spark reads them."""
        found = self.lab.sql(f"SELECT id FROM {self.name} VERSION AS OF {ref}").collect()
        return sorted(row[0] for row in found)

    def snapshots(self) -> list[tuple[str, Mapping[str, str]]]:
        """Operation and summary of each snapshot, the newest first."""
        head = self.lab.engine._tables.load(self.lab.location(self.name)).head()
        return [(one.operation, one.summary) for one in head.chain()]
