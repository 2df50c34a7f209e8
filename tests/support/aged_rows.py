"""Tables whose own properties let rows become 90 days old, and what engines that are not ours read of them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa

from actor.ports import TableJob, TableJobOutcome
from shared.jobs.options import ExpiryOptions
from shared.jobs.payload import EXPIRE
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.delta_lab import DeltaLab
from tests.support.duckdb_extensions import scan
from tests.support.local_vacuum import Control

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

NOW = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
"""When this process began, in UTC."""


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def at_ms(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


class AgedRows:
    """A table whose rows become old; `kind` is the SQL type of ts, `rule` its own property."""

    lab: "DeltaLab | IcebergLab"
    kind: str
    rule: str

    @property
    def location(self) -> str:
        raise NotImplementedError

    def literal(self, value: Any) -> str:
        if value is None:
            return f"CAST(NULL AS {self.kind})"
        zone = "Z" if self.kind == "TIMESTAMP" else ""
        return f"{self.kind} '{value}{zone}'" if self.kind not in ("STRING", "INT") else repr(value)

    def run(self, *, dry: bool = False, control: Control | None = None, at: datetime | None = None) -> TableJobOutcome:
        """Run a job that was decided at `NOW`, however long ago that is, or at another time."""
        options = ExpiryOptions(at_ms(at or NOW), dry_run=dry).encode()
        policy = Policy(delete_rows_after=self.rule)
        job = TableJob(EXPIRE, self.location, policy, CommitOrigin("job", 7), options=options)
        return self.lab.engine.run_table_job(job, control or Control())


class AgedTable(AgedRows):
    """A Delta table of the columns id and ts; `kind` is the SQL type of ts, `more` follows the columns."""

    def __init__(
        self,
        lab: DeltaLab,
        name: str,
        kind: str = "TIMESTAMP",
        more: str = "",
        properties: Mapping[str, str] | None = None,
        rule: str = "90 days of ts",
    ) -> None:
        self.lab, self.kind, self.rule = lab, kind, rule
        self.path: Path = lab.directory / name
        self.name = f"delta.`{self.path}`"
        stated = {"lakewright.delete-rows-after": rule, **(properties or {})}
        texts = ", ".join(f"'{key}' = '{value}'" for key, value in stated.items())
        lab.sql(f"CREATE TABLE {self.name} (id BIGINT, ts {kind}) USING delta {more} TBLPROPERTIES ({texts})")

    def append(self, *rows: tuple[int, Any]) -> None:
        """Append rows as one file of each partition."""
        values = ", ".join(f"({id_}, {self.literal(value)})" for id_, value in rows)
        self.lab.sql(f"INSERT INTO {self.name} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")

    @property
    def location(self) -> str:
        return str(self.path)

    def ids(self, least_readers: int = 3) -> list[int]:
        """The ids that Spark, deltalake and DuckDB read alike; fewer where one cannot read the table at all."""
        readers: dict[str, Callable[[], list[int]]] = {
            "spark": lambda: [row[0] for row in self.lab.sql(f"SELECT id FROM {self.name}")],
            "duckdb": lambda: scan(self.path)["id"].to_pylist(),
            "deltalake": lambda: _by_deltalake(self.path),
        }
        found = {}
        for name, read in readers.items():
            try:
                found[name] = sorted(read())
            except Exception as error:  # noqa: BLE001 - whatever a reader raises for what it cannot read
                print(f"  {name} does not read {self.path.name}: {str(error)[:200]}", flush=True)
        assert len(found) >= least_readers
        assert len(set(map(tuple, found.values()))) == 1, found
        return found["spark"]

    def changes(self, version: int) -> list[tuple[str, int]]:
        """Kinds and ids of the change feed of one version, as Spark reads it."""
        reader = self.lab.spark.read.format("delta").option("readChangeFeed", "true")
        feed = reader.option("startingVersion", version).option("endingVersion", version).load(str(self.path))
        return sorted((row["_change_type"], row["id"]) for row in feed.collect())


def _by_deltalake(path: Path) -> list[int]:
    reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    return pa.table(reader.execute("SELECT id FROM t"))["id"].to_pylist()
