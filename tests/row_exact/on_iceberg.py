"""An Iceberg table that Spark, a stream of upserts and Iceberg's commands change, and that three readers read."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.ports import RewriteOutcome, RewriteRequest, TableJob
from actor.proofread.proofreader import Proofreader
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup
from shared.layout.upkeep import CONVERT_DELETES, MERGE_DELETES
from shared.policy.policy import Policy, Proofread
from shared.table import CommitOrigin, DataFile, PartitionKey
from tests.iceberg_stress.readers import EQUALITY_UNKNOWN, _DuckDb
from tests.row_exact.playing import Model, Rows, counted, explain, live_files, row_ids_kept
from tests.support.forced_copies import FORCED_LIMITS, NEVER_COPIES
from tests.support.iceberg_foreign import ForeignWriter
from tests.support.iceberg_foreign import field as with_id
from tests.support.iceberg_lab import IcebergLab
from tests.support.local_vacuum import Control
from tests.support.steering import Steering

Found = Counter[tuple[Any, ...]]
DAYS = 2
IDS = {"id": 1, "v": 2, "x": 3, "d": 4}
SCHEMA = pa.schema(
    [with_id(n, k, IDS) for n, k in zip(IDS, (pa.int64(), pa.string(), pa.int32(), pa.int32()), strict=True)]
)
MERGED_ON_READ = {f"write.{mode}.mode": "merge-on-read" for mode in ("delete", "update", "merge")}


@dataclass(frozen=True, slots=True)
class Kind:
    """Version of the format, whether delete files name rows of one file or of a partition, and what else is done.

    converts: merges of delete files turn deletes by value into positions before.
    """

    version: int = 2
    granularity: str = "file"
    by_day: bool = False
    upserts: bool = False
    upgrades: bool = False
    converts: bool = False


KINDS = {
    "v2": Kind(),
    "v2, shared": Kind(granularity="partition"),
    "v2, days": Kind(granularity="partition", by_day=True),
    "v2, upserts": Kind(upserts=True, granularity="partition"),
    "v2, converted": Kind(upserts=True, granularity="partition", converts=True),
    "v3": Kind(3),
    "v3, days": Kind(3, by_day=True),
    "v2 to v3": Kind(granularity="partition", upgrades=True),
}


class IcebergEngines:
    """A laboratory for each way to write, on one Spark."""

    def __init__(self, spark: SparkSession, proofreader: Proofreader, folder: Path) -> None:
        limits = {"copied": FORCED_LIMITS, "by column": NEVER_COPIES, "encoded": FORCED_LIMITS}
        self.of = {
            way: IcebergEngine(spark, IcebergEngineSettings(reads_folders=True, copy_limits=limit), proofreader)
            for way, limit in limits.items()
        }
        self.lab = IcebergLab(spark, self.of["copied"], folder)
        self.ducks = _DuckDb()._connection


class OnIceberg:
    """The world of one Iceberg table."""

    def __init__(self, engines: IcebergEngines, name: str, model: Model, kind: Kind) -> None:
        self._engines, self._lab, self.model, self._kind = engines, engines.lab, model, kind
        self._name = f"ice.db.{name}"
        properties = {
            "format-version": str(kind.version),
            "write.distribution-mode": "none",
            "write.delete.granularity": kind.granularity,
            **MERGED_ON_READ,
        }
        given = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        by_day = "PARTITIONED BY (d)" if kind.by_day else ""
        self._sql(
            f"CREATE TABLE {{t}} (id BIGINT, v STRING, x INT, d INT) USING iceberg {by_day} TBLPROPERTIES ({given})"
        )
        self.java = self._lab.java(self._name)
        self._foreign = ForeignWriter(self._lab, self._name)
        self._foreign_name = name
        self._noted: set[int] = set()
        self._is_upgraded = False
        self.meanwhile: Mapping[str, Callable[[], object]] = {
            "delete": self.delete,
            "delete again": self.delete,
            "update": self.update,
            "merge": self.merge,
            "append": self.append,
            "delete neighbors": self.delete_neighbors,
            "copy on write": self.copy_on_write,
            "roll back": self.roll_back,
            "rewrite_position_delete_files": self.rewrite_positions,
            "merge-deletes": self.merge_deletes,
            **({"upsert": self.upsert} if kind.upserts else {}),
            **({"upgrade": self.upgrade} if kind.upgrades else {}),
        }
        self.others = {**self.meanwhile, "rewrite_data_files": self.rewrite_data}
        self.deletes_by_value = kind.upserts

    def _sql(self, text: str) -> list[Any]:
        found: list[Any] = self._lab.sql(text.format(t=self._name)).collect()
        return found

    def _call(self, procedure: str, arguments: str) -> None:
        self._sql(f"CALL ice.system.{procedure}(table => '{self._name.removeprefix('ice.')}', {arguments})")

    def _snapshot(self) -> Any:
        self.java.refresh()
        return self.java.currentSnapshot()

    def note(self) -> None:
        """Note the rows of the newest snapshot; of those before that are not known, ours replaced and changed none."""
        current = self._snapshot()
        if current is not None and current.snapshotId() not in self.model.then:
            self.model.note([current.snapshotId()])

    def append(self) -> None:
        ids = self.model.new_ids()
        rows = {one: (self.model.new_text(), one * 7919 % 1000) for one in ids}
        if not self._kind.by_day and self.model.draw.random() < 0.5:
            self._foreign.add(self._table(rows), row_group_size=self.model.draw.randint(2, 9))
        else:
            frame = self._lab.session.createDataFrame(
                [(one, *rows[one], one % DAYS) for one in ids], "id BIGINT, v STRING, x INT, d INT"
            )
            frame.coalesce(1).sortWithinPartitions("d").writeTo(self._name).append()
        self.model.add(rows)

    def _table(self, rows: Rows) -> pa.Table:
        ids = sorted(rows)
        columns = [ids, [rows[one][0] for one in ids], [rows[one][1] for one in ids], [one % DAYS for one in ids]]
        return pa.table(columns, schema=SCHEMA)

    def upsert(self) -> None:
        """As a stream: older rows go by value, what it wrote twice by position; the first row is written again."""
        known, new = self.model.some(2), self.model.new_ids()[:2]
        text = self.model.new_text()
        rows = {one: (text, one * 7919 % 1000) for one in [*known, *new]}
        twice = pa.concat_tables([self._table(rows).slice(0, 1), self._table(rows)])
        keys = pa.table([[*known, *new]], schema=pa.schema([SCHEMA.field("id")]))
        self._foreign.upsert(twice, keys)
        self.model.add(rows)

    def delete(self) -> None:
        self._delete(self.model.some(4))

    def delete_neighbors(self) -> None:
        self._delete(self.model.neighbors())

    def _delete(self, ids: Sequence[int]) -> None:
        if ids:
            self._sql(f"DELETE FROM {{t}} WHERE id IN ({', '.join(map(str, ids))})")
            self.model.drop(ids)

    def copy_on_write(self) -> None:
        properties = "ALTER TABLE {{t}} SET TBLPROPERTIES ('write.delete.mode'='{mode}')"
        self._sql(properties.format(mode="copy-on-write"))
        self._delete(self.model.some(2))
        self._sql(properties.format(mode="merge-on-read"))

    def update(self) -> None:
        if ids := self.model.some(3):
            text = self.model.new_text()
            self._sql(f"UPDATE {{t}} SET v = '{text}' WHERE id IN ({', '.join(map(str, ids))})")
            self.model.add({one: (text, self.model.rows[one][1]) for one in ids})

    def merge(self) -> None:
        text, known, new = self.model.new_text(), self.model.some(2), self.model.new_ids()[:2]
        source = ", ".join(map(str, [*known, *new]))
        self._sql(
            f"MERGE INTO {{t}} t USING (SELECT explode(array({source})) AS id) s ON t.id = s.id WHEN MATCHED THEN "
            f"UPDATE SET v = '{text}' WHEN NOT MATCHED THEN INSERT (id, v, x, d) "
            f"VALUES (s.id, '{text}', 1, cast(s.id % {DAYS} AS INT))"
        )
        self.model.add(
            {one: (text, self.model.rows[one][1] if one in self.model.rows else 1) for one in [*known, *new]}
        )

    def roll_back(self) -> None:
        current = self._snapshot()
        chain: list[int] = []
        while current is not None:
            chain.append(current.snapshotId())
            current = None if current.parentId() is None else self.java.snapshot(current.parentId())
        known = [one for one in chain if one in self.model.then]
        if known:
            version = self.model.draw.choice(known[:4])
            self._call("rollback_to_snapshot", f"snapshot_id => {version}L")
            self.model.go_back(version)

    def go_back(self, version: int) -> None:
        self._call("set_current_snapshot", f"snapshot_id => {version}L")  # Also to one that is no ancestor.
        self.model.go_back(version)

    def version(self) -> int:
        return int(self._snapshot().snapshotId())

    def rewrite_positions(self) -> None:
        self._call("rewrite_position_delete_files", "options => map('rewrite-all', 'true')")

    def merge_deletes(self) -> None:
        """As a job of ours does, beside or between the rewrites."""
        kind = CONVERT_DELETES if self._kind.converts else MERGE_DELETES
        policy, origin = Policy(proofread=Proofread.STRICT), CommitOrigin("merge", 1)
        job = TableJob(kind.kind, self._lab.location(self._name), policy, origin)
        with row_ids_kept(self.model, self._lineage):
            self._engines.of["copied"].run_table_job(job, Control())

    def rewrite_data(self) -> None:
        draw = self.model.draw
        options = draw.choice(["'rewrite-all', 'true'", "'delete-file-threshold', '1'", "'min-input-files', '2'"])
        self._call("rewrite_data_files", f"options => map({options})")

    def upgrade(self) -> None:
        self._sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version'='3')")
        self._is_upgraded = True

    def live(self) -> Mapping[PartitionKey, Sequence[DataFile]]:
        return live_files(self._engines.of["copied"], self._lab.location(self._name), DAYS if self._kind.by_day else 0)

    def rewrite(self, groups: Sequence[FileGroup], control: Steering, way: str, below: int) -> RewriteOutcome:
        mark = CommitMetadata(CommitOrigin("job", 1), partition="{}", round=1, mode="minor", started_ms=1).encode()
        request = RewriteRequest(self._lab.location(self._name), tuple(groups), mark, may_copy=way != "encoded")
        with row_ids_kept(self.model, self._lineage):
            return self._engines.of[way].rewrite(request, control)

    def _lineage(self) -> Mapping[int, tuple[Any, ...]]:
        """Return id and version of each row of a table that has them."""
        if self._kind.version < 3:
            return {}
        found = self._sql("SELECT id, _row_id, _last_updated_sequence_number FROM {t}")
        assert len({row[1] for row in found}) == len(found), "a row id twice"
        return {row[0]: tuple(row[1:]) for row in found}

    def check(self) -> None:
        expected = counted(self.model.rows)
        newest = self.metadata()
        for name, read in self._readers(newest).items():
            found = read()
            assert found is None or found == expected, f"{name}: {explain(found, expected)}"
        ids = sorted(self.model.rows)
        bounds = (len(ids), ids[0] if ids else None, ids[-1] if ids else None)
        assert [tuple(row) for row in self._sql("SELECT count(*), min(id), max(id) FROM {t}")] == [bounds]
        on_disk, known = self._lab.files_on_disk(self._name), self._lab.known_files(self._name)
        left = {name for name in on_disk - known if not name.startswith("foreign-")}
        assert not left, f"files that no snapshot names: {left}"

    def metadata(self) -> str:
        self.java.refresh()
        return str(self.java.operations().current().metadataFileLocation())

    def _readers(self, newest: str) -> Mapping[str, Callable[[], Found | None]]:
        found: dict[str, Callable[[], Found | None]] = {
            "Spark": lambda: self._spark("{t}"),
            "pyiceberg": lambda: _by_pyiceberg(newest),
        }
        if self._kind.version < 3 and not self._is_upgraded:  # DuckDB applies the vector of one file to another.
            found["DuckDB"] = lambda: self._by_duckdb(newest)
        return found

    def _spark(self, where: str) -> Found:
        return Counter(tuple(row) for row in self._sql(f"SELECT id, v, x FROM {where}"))

    def _by_duckdb(self, newest: str) -> Found:
        path = unquote(urlsplit(newest).path)
        return Counter(self._engines.ducks.execute(f"SELECT id, v, x FROM iceberg_scan('{path}')").fetchall())

    def finish(self) -> None:
        newest = self.metadata()
        for snapshot, rows in self.model.then.items():
            found, expected = self._spark(f"{{t}} VERSION AS OF {snapshot}"), counted(rows)
            assert found == expected, f"snapshot {snapshot}: {explain(found, expected)}"
            others = _by_pyiceberg(newest, snapshot)
            assert others is None or others == expected, f"pyiceberg at {snapshot}: {explain(others, expected)}"
        for act in (self.rewrite_positions, self.rewrite_data):
            act()
            self.note()
            self.check()
        after = datetime.fromtimestamp(self._snapshot().timestampMillis() / 1000 + 1, UTC)
        self._call("expire_snapshots", f"older_than => TIMESTAMP '{after:%Y-%m-%d %H:%M:%S}', retain_last => 1")
        self.check()


def _by_pyiceberg(newest: str, snapshot: int | None = None) -> Found | None:
    """Return what pyiceberg reads, None where rows are deleted by value."""
    try:
        scan = StaticTable.from_metadata(newest).scan(snapshot_id=snapshot, selected_fields=("id", "v", "x"))
        found = scan.to_arrow()
    except ValueError as error:
        if EQUALITY_UNKNOWN in str(error):
            return None
        raise
    return Counter(zip(*(found[name].to_pylist() for name in ("id", "v", "x")), strict=True))
