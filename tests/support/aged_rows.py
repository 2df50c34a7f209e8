"""Tables whose own properties let rows become 90 days old, and what engines that are not ours read of them."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa

from actor.ports import TableJob, TableJobOutcome
from shared.jobs.options import ExpiryOptions
from shared.jobs.payload import EXPIRE
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.aged_table import commit_file, data_files, versions
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


def changed(done: TableJobOutcome) -> dict[str, int]:
    """What a run did, or would do, without what it cost."""
    return {name: n for name, n in done.figures.items() if n and name.endswith(("_removed", "_replaced"))}


class AgedRows(ABC):
    """A table of the columns id and ts, whose rows become old.

    `kind` is the SQL type of ts, `by` what the table is partitioned by, `rule` its own property, `session` its Spark.
    """

    format: str
    may_be_refused = False  # By other readers.
    own: Mapping[str, str] = {}

    def __init__(
        self,
        lab: "DeltaLab | IcebergLab",
        name: str = "t",
        kind: str = "TIMESTAMP",
        by: str = "",
        *,
        properties: Mapping[str, str] | None = None,
        rule: str = "90 days of ts",
    ) -> None:
        self.lab, self.kind, self.rule, self.name = lab, kind, rule, self.full_name(lab, name)
        self.session = lab.spark if isinstance(lab, DeltaLab) else lab.session
        self.properties = {"lakewright.delete-rows-after": rule, **self.own, **(properties or {})}
        texts = ", ".join(f"'{key}' = '{value}'" for key, value in self.properties.items())
        partitioned = f"PARTITIONED BY ({by})" if by else ""
        columns = f"(id BIGINT, ts {kind}) USING {self.format}"
        lab.sql(f"CREATE TABLE {self.name} {columns} {partitioned} TBLPROPERTIES ({texts})")

    @abstractmethod
    def full_name(self, lab: Any, name: str) -> str: ...

    @property
    @abstractmethod
    def location(self) -> str: ...

    @property
    @abstractmethod
    def readers(self) -> Mapping[str, Callable[[], list[int]]]: ...

    def literal(self, value: Any) -> str:
        if value is None:
            return f"CAST(NULL AS {self.kind})"
        zone = "Z" if self.kind == "TIMESTAMP" else ""
        return f"{self.kind} '{value}{zone}'" if self.kind not in ("STRING", "INT") else repr(value)

    def append(self, *rows: tuple[int, Any]) -> None:
        """Append rows as one file of each partition."""
        values = ", ".join(f"({id_}, {self.literal(value)})" for id_, value in rows)
        self.session.sql(f"INSERT INTO {self.name} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")

    def sql(self, text: str) -> list[Any]:
        """The rows of a statement that has `{}` for the table."""
        return self.session.sql(text.format(self.name)).collect()

    def set_rule(self, rule: str) -> None:
        """Set the owner's rule, and the one that jobs were decided by."""
        self.rule = rule
        self.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ('lakewright.delete-rows-after' = '{rule}')")

    def ids(self) -> list[int]:
        """The ids that Spark and the other readers read alike, as far as they read such a table at all."""
        found = {}
        for name, read in self.readers.items():
            try:
                found[name] = sorted(read())
            except Exception as error:
                if not self.may_be_refused:
                    raise
                print(f"  {name} does not read {self.name}: {str(error)[:200]}", flush=True)
        assert len(set(map(tuple, found.values()))) == 1, found
        return found["spark"]

    def at(self, ref: str) -> list[int]:
        """The ids of a reference, as Spark reads them."""
        return sorted(row[0] for row in self.sql(f"SELECT id FROM {{}} VERSION AS OF {ref}"))

    def run(self, *, dry: bool = False, control: Control | None = None, at: datetime | None = None) -> TableJobOutcome:
        """Run a job that was decided at `NOW`, however long ago that is, or at another time."""
        options = ExpiryOptions(at_ms(at or NOW), dry_run=dry).encode()
        policy = Policy(delete_rows_after=self.rule)
        job = TableJob(EXPIRE, self.location, policy, CommitOrigin("job", 7), options=options)
        return self.lab.engine.run_table_job(job, control or Control())


class AgedDelta(AgedRows):
    """A Delta table."""

    format = "delta"
    lab: DeltaLab

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.may_be_refused = "by" in more or bool(more.get("properties"))

    def full_name(self, lab: DeltaLab, name: str) -> str:
        self.path: Path = lab.directory / name
        return f"delta.`{self.path}`"

    @property
    def location(self) -> str:
        return str(self.path)

    @property
    def readers(self) -> Mapping[str, Callable[[], list[int]]]:
        return {
            "spark": lambda: [row[0] for row in self.sql("SELECT id FROM {}")],
            "duckdb": lambda: scan(self.path)["id"].to_pylist(),
            "deltalake": lambda: _by_deltalake(self.path),
        }

    def row_ids(self) -> dict[int, int]:
        """The format's own ids of rows, by the rows' id; none where it gives none."""
        tracks_rows = "delta.enableRowTracking" in self.properties
        return dict(map(tuple, self.sql("SELECT id, _metadata.row_id FROM {}"))) if tracks_rows else {}

    def refs(self) -> list[str]:
        """References, as SQL has them, that keep the newest version; some are made for it."""
        return [str(versions(self.path)[-1])]

    def unknown_files(self) -> Collection[str]:
        """Data files that are there, and that no version refers to."""
        adds = (one["add"] for version in versions(self.path) for one in self._actions(version) if "add" in one)
        return {one for one in data_files(self.path) if one.endswith(".parquet")} - {
            unquote(one["path"]) for one in adds
        }

    def make_first_look_old(self) -> str:
        """Give the file of the first append the statistics of old rows; return its path."""
        actions, place = self._actions(1), commit_file(self.path, 1)
        (add,) = (action["add"] for action in actions if "add" in action)
        stats = json.loads(add["stats"])
        stats["maxValues"]["ts"] = stats["minValues"]["ts"] = "2001-01-01T00:00:00.000Z"
        add["stats"] = json.dumps(stats)
        place.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
        for name in (f".{place.name}.crc", f"{place.stem}.crc"):
            (place.parent / name).unlink(missing_ok=True)
        return str(add["path"])

    def _actions(self, version: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in commit_file(self.path, version).read_text(encoding="utf-8").splitlines()]

    def changes(self, version: int) -> list[tuple[str, int]]:
        """Kinds and ids of the change feed of one version, as Spark reads it."""
        reader = self.session.read.format("delta").option("readChangeFeed", "true")
        feed = reader.option("startingVersion", version).option("endingVersion", version).load(str(self.path))
        return sorted((row["_change_type"], row["id"]) for row in feed.collect())


def _by_deltalake(path: Path) -> list[int]:
    reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    return pa.table(reader.execute("SELECT id FROM t"))["id"].to_pylist()
