"""A Delta table with deletion vectors that Spark, deltalake and an append by hand change, that five readers read."""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from actor.ports import RewriteOutcome, RewriteRequest
from actor.proofread.proofreader import Proofreader
from shared.formats.delta_references import vector_path
from shared.layout.planner import FileGroup
from shared.table import DataFile, PartitionKey
from tests.row_exact.by_hand import DAYS, HandWriter, visible_rows
from tests.row_exact.playing import Model, Player, counted, explain, live_files, row_ids_kept
from tests.support import delta_tables as tables
from tests.support import duckdb_extensions
from tests.support.delta_lab import mark
from tests.support.forced_copies import NEVER_COPIES, CountingEngine
from tests.support.steering import Steering

Found = Counter[tuple[Any, ...]]
OF_SPARK = ("copy on write", "restore", "optimize")
"""What Spark does alone."""

SETTINGS = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
}
VECTORS = {"delta.enableDeletionVectors": "true"}


@dataclass(frozen=True, slots=True)
class Kind:
    """Properties of a table beside deletion vectors; by_hand: share of statements that no engine runs."""

    properties: Mapping[str, str] = field(default_factory=dict)
    by_day: bool = False
    by_hand: float = 0


KINDS = {
    "by hand": Kind(by_hand=1),
    "plain": Kind(by_hand=0.3),
    "days": Kind(by_day=True),
    "feed": Kind({"delta.enableChangeDataFeed": "true"}, by_hand=0.3),
    "mapped": Kind({"delta.columnMapping.mode": "name"}),
    "tracked": Kind({"delta.enableRowTracking": "true"}),
    "clocked": Kind({"delta.enableInCommitTimestamps": "true", "delta.checkpointInterval": "3"}),
    "checkpointed": Kind({"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"}, by_hand=0.3),
}


class DeltaEngines:
    """An engine for each way to write, on one Spark; `kernel` is Delta Kernel's adapter."""

    def __init__(self, spark: SparkSession, proofreader: Proofreader, kernel: Any) -> None:
        self.spark = spark
        copying = CountingEngine(spark, forced=True, proofreader=proofreader)
        by_column = CountingEngine(spark, forced=NEVER_COPIES, proofreader=proofreader)
        self.of: Mapping[str, DeltaEngine] = {"copied": copying, "by column": by_column, "encoded": copying}
        self.kernel = kernel


class OnDelta:
    """The world of one Delta table in a folder."""

    deletes_by_value = False

    def __init__(self, engines: DeltaEngines, path: Path, model: Model, kind: Kind) -> None:
        self._engines, self.path, self.model, self._kind = engines, path, model, kind
        self._session = engines.spark.newSession()
        for setting, value in SETTINGS.items():
            self._session.conf.set(setting, value)
        self._noted = 0
        self._name = f"delta.`{path}`"
        self._hand, self._checks = HandWriter(path), 0
        given = ", ".join(f"'{name}'='{value}'" for name, value in {**VECTORS, **kind.properties}.items())
        by_day = "PARTITIONED BY (d)" if kind.by_day else ""
        self._sql(
            f"CREATE TABLE {{t}} (id BIGINT, v STRING, x INT, d INT) USING delta {by_day} TBLPROPERTIES ({given})"
        )
        self.model.then[0] = {}
        self.meanwhile: Mapping[str, Callable[[], object]] = {
            "delete": self.delete,
            "delete again": self.delete,
            "update": self.update,
            "merge": self.merge,
            "append": self.append,
            "delete neighbors": self.delete_neighbors,
            "copy on write": self.copy_on_write,
            "restore": self.restore,
            "optimize": self.optimize,
        }
        deltalake = {
            "delete by deltalake": self.delete_by_deltalake,
            "optimize by deltalake": self.optimize_by_deltalake,
        }
        self.others = {**self.meanwhile, **deltalake, "purge": self.purge, "property": self.set_property}
        self.others["checkpoint"] = self.checkpoint
        if kind.by_hand == 1:  # Spark takes seconds for each of these.
            self.meanwhile = {name: act for name, act in self.meanwhile.items() if name not in OF_SPARK}
            self.meanwhile = {**self.meanwhile, "delete by deltalake": self.delete_by_deltalake}
            self.others = {**self.meanwhile, **deltalake, "restore": self.restore}

    def _sql(self, text: str) -> list[Any]:
        return self._session.sql(text.format(t=self._name)).collect()

    def version(self) -> int:
        return tables.newest(self.path)

    def note(self) -> None:
        newest = self.version()
        self.model.note(range(self._noted + 1, newest + 1))
        self._noted = newest

    # What others do.

    def append(self) -> None:
        rows = {one: (self.model.new_text(), one * 7919 % 1000) for one in self.model.new_ids()}
        if self._is_by_hand():
            self._hand.commit(rows, row_group_size=self.model.draw.randint(2, 9))
        else:
            frame = self._session.createDataFrame(
                [(one, *rows[one], one % DAYS) for one in rows], "id BIGINT, v STRING, x INT, d INT"
            )
            frame.coalesce(1).write.format("delta").mode("append").save(str(self.path))
        self.model.add(rows)

    def _is_by_hand(self) -> bool:
        return self.model.draw.random() < self._kind.by_hand

    def delete(self) -> None:
        self._delete(self.model.some(4))

    def delete_neighbors(self) -> None:
        self._delete(self.model.neighbors())

    def _delete(self, ids: Sequence[int]) -> None:
        if ids and self._is_by_hand():
            self._hand.commit({}, ids)
            self.model.drop(ids)
        elif ids:
            self._sql(f"DELETE FROM {{t}} WHERE id IN ({', '.join(map(str, ids))})")
            self.model.drop(ids)

    def copy_on_write(self) -> None:
        name = "spark.databricks.delta.delete.deletionVectors.persistent"
        self._session.conf.set(name, "false")
        try:
            self._delete(self.model.some(2))
        finally:
            self._session.conf.unset(name)

    def update(self) -> None:
        if ids := self.model.some(3):
            text = self.model.new_text()
            rows = {one: (text, self.model.rows[one][1]) for one in ids}
            if self._is_by_hand():
                self._hand.commit(rows, ids)
            else:
                self._sql(f"UPDATE {{t}} SET v = '{text}' WHERE id IN ({', '.join(map(str, ids))})")
            self.model.add(rows)

    def merge(self) -> None:
        text, known, new = self.model.new_text(), self.model.some(2), self.model.new_ids()[:2]
        source = ", ".join(map(str, [*known, *new]))
        rows = {one: (text, self.model.rows[one][1] if one in self.model.rows else 1) for one in [*known, *new]}
        if self._is_by_hand():
            self._hand.commit(rows, known)
        else:
            self._sql(
                f"MERGE INTO {{t}} t USING (SELECT explode(array({source})) AS id) s ON t.id = s.id WHEN MATCHED THEN "
                f"UPDATE SET v = '{text}' WHEN NOT MATCHED THEN INSERT (id, v, x, d) "
                f"VALUES (s.id, '{text}', 1, cast(s.id % {DAYS} AS INT))"
            )
        self.model.add(rows)

    def restore(self) -> None:
        self.go_back(self.model.draw.choice(sorted(self.model.then)))

    def go_back(self, version: int) -> None:
        self._sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")
        self.model.go_back(version)

    def optimize(self) -> None:
        self._sql("OPTIMIZE {t}")

    def purge(self) -> None:
        self._sql("REORG TABLE {t} APPLY (PURGE)")

    def set_property(self) -> None:
        self._sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('note' = '{self.model.new_text()}')")

    def checkpoint(self) -> None:
        log = self._session._jvm.org.apache.spark.sql.delta.DeltaLog
        log.forTable(self._session._jsparkSession, str(self.path)).checkpoint()

    def delete_by_deltalake(self) -> None:
        ids = [] if self._misleads_deltalake() else self.model.some(2)
        if ids and self._by_deltalake(lambda table: table.delete(f"id IN ({', '.join(map(str, ids))})")):
            self.model.drop(ids)

    def _misleads_deltalake(self) -> bool:
        """Return whether a vector hides rows of a file of several row groups: deltalake's DELETE misses rows there."""
        hidden = [add["path"] for add in tables.live(self.path).values() if add.get("deletionVector")]
        return any(pq.read_metadata(self.path / unquote(path)).num_row_groups > 1 for path in hidden)

    def optimize_by_deltalake(self) -> None:
        self._by_deltalake(lambda table: table.optimize.compact())

    def _by_deltalake(self, act: Callable[[DeltaTable], object]) -> bool:
        """Let deltalake do something; returns False if it does not write such tables."""
        try:
            act(DeltaTable(str(self.path)))
        except Exception as error:
            if "Unsupported" not in str(error) and "unsupported" not in str(error):
                raise
            return False
        return True

    # What we do.

    def live(self) -> Mapping[PartitionKey, Sequence[DataFile]]:
        return live_files(self._engines.of["copied"], self.path.as_uri(), DAYS if self._kind.by_day else 0)

    def rewrite(self, groups: Sequence[FileGroup], control: Steering, way: str, below: int) -> RewriteOutcome:
        request = RewriteRequest(
            self.path.as_uri(),
            tuple(groups),
            mark(str(uuid.uuid4()), 1),
            may_copy=way != "encoded",
            carry_below=Fraction(below, 100),
        )
        with row_ids_kept(self.model, self._row_ids):
            return self._engines.of[way].rewrite(request, control)

    def _row_ids(self) -> Mapping[int, tuple[Any, ...]]:
        if "delta.enableRowTracking" not in self._kind.properties:
            return {}
        found = self._sql("SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {t}")
        assert len({row[1] for row in found}) == len(found), "a row id twice"
        return {row[0]: tuple(row[1:]) for row in found}

    # What readers see.

    def check(self) -> None:
        expected = counted(self.model.rows)
        for name, read in self._readers().items():
            found = read()
            assert found == expected, f"{name}: {explain(found, expected)}"
        ids = sorted(self.model.rows)
        for one in ids[:: max(1, len(ids) // 2)]:
            assert self._one(one) == Counter([(one, *self.model.rows[one])])
        self._checks += 1
        if self._kind.by_hand < 1 or self._checks % 4 == 0:
            self._check_by_spark(ids)
        self._check_files()

    def _check_by_spark(self, ids: Sequence[int]) -> None:
        found, expected = self._spark("{t}"), counted(self.model.rows)
        assert found == expected, f"Spark: {explain(found, expected)}"
        bounds = (len(ids), ids[0] if ids else None, ids[-1] if ids else None)
        assert [tuple(row) for row in self._sql("SELECT count(*), min(id), max(id) FROM {t}")] == [bounds]

    def _readers(self) -> Mapping[str, Callable[[], Found]]:
        found: dict[str, Callable[[], Found]] = {
            "Delta Kernel": self._by_kernel,
            "deltalake": lambda: self._by_query("SELECT id, v, x FROM t"),
        }
        if "delta.columnMapping.mode" not in self._kind.properties:
            found |= {"DuckDB": self._by_duckdb, "by hand": lambda: Counter(visible_rows(self.path))}
        return found

    def _spark(self, where: str) -> Found:
        return Counter(tuple(row) for row in self._sql(f"SELECT id, v, x FROM {where}"))

    def _by_query(self, text: str, version: int | None = None) -> Found:
        table = DeltaTable(str(self.path), version=version)
        found = pa.table(QueryBuilder().register("t", table).execute(text).read_all())
        return Counter(tuple(row.values()) for row in found.to_pylist())

    def _one(self, number: int) -> Found:
        """Find a row by a filter; not by deltalake, which applies vectors to other rows where it skips row groups."""
        if "delta.columnMapping.mode" in self._kind.properties:
            return self._spark(f"{{t}} WHERE id = {number}")
        return self._by_duckdb(f"id = {number}")

    def _by_duckdb(self, where: str = "true") -> Found:
        return Counter((row["id"], row["v"], row["x"]) for row in duckdb_extensions.scan(self.path, where).to_pylist())

    def _by_kernel(self) -> Found:
        found = json.loads(self._engines.kernel.read(str(self.path), None, None, None, None))
        at = [list(found["types"]).index(name) for name in ("id", "v", "x")]
        return Counter((row[at[0]], row[at[1]].removeprefix("s"), row[at[2]]) for row in found["rows"])

    def _check_files(self) -> None:
        """No file of ours is left that no version names."""
        versions = range(self.version() + 1)
        adds = [add for one in versions for add in tables.added(self.path, one)]
        vectors = {vector_path(add["deletionVector"]) for add in adds if add.get("deletionVector")}
        named = {unquote(add["path"]) for add in adds} | {one for one in vectors if one}
        on_disk = {
            str(file.relative_to(self.path)) for file in self.path.rglob("*") if file.suffix in (".parquet", ".bin")
        }
        left = {name for name in on_disk if Path(name).parts[0] not in ("_delta_log", "_change_data")} - named
        assert not left, f"files that no version names: {left}"

    def finish(self) -> None:
        for version, rows in sorted(self.model.then.items()):
            found, expected = self._by_query("SELECT id, v, x FROM t", version), counted(rows)
            assert found == expected, f"version {version} by deltalake: {explain(found, expected)}"
        if self._kind.by_hand < 1:
            self._finish_by_spark()

    def _finish_by_spark(self) -> None:
        version = self.model.draw.choice(sorted(self.model.then))
        found, expected = self._spark(f"{{t}} VERSION AS OF {version}"), counted(self.model.then[version])
        assert found == expected, f"version {version}: {explain(found, expected)}"
        self._check_stream()
        if "delta.enableChangeDataFeed" in self._kind.properties:
            self._check_changes()
        self._sql("VACUUM {t} RETAIN 0 HOURS")
        self.note()
        self.check()

    def _check_stream(self) -> None:
        """A stream that skips changes sees what commits added which removed nothing."""
        expected: Found = Counter()
        for version in range(1, self.version() + 1):
            actions = tables.actions(self.path, version)
            if not any(body["remove"]["dataChange"] for body in actions if "remove" in body):
                expected += counted(self.model.then[version]) - counted(self.model.then[version - 1])
        found: list[Any] = []
        reader = self._session.readStream.format("delta").option("skipChangeCommits", "true")
        query = (
            reader.option("startingVersion", "0")
            .load(str(self.path))
            .select("id", "v", "x")
            .writeStream.foreachBatch(lambda batch, _: found.extend(tuple(row) for row in batch.collect()))
            .option("checkpointLocation", str(self.path.with_name(f"{self.path.name}-stream")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert Counter(found) == expected, f"stream: {explain(Counter(found), expected)}"

    def _check_changes(self) -> None:
        """The change feed leads from each version to the next, and is empty for ours."""
        reader = self._session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
        changes: dict[int, Found] = {}
        for row in reader.load(str(self.path)).collect():
            sign = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}[row["_change_type"]]
            of_version = changes.setdefault(row["_commit_version"], Counter())
            of_version[row["id"], row["v"], row["x"]] += sign
        for version in range(1, self.version() + 1):
            after = counted(self.model.then[version - 1])
            after.update(changes.get(version, Counter()))
            found, expected = +after, counted(self.model.then[version])
            assert found == expected, f"changes of {version}: {explain(found, expected)}"


HIDDEN = ("late", "carried", "masked")
"""Rows that others delete meanwhile; that were hidden before; and all rows of an input that others replace."""

BELOW_PERCENT = 90
"""Share of hidden rows below which an output is committed with them."""


def play_afterwards(player: Player, how: str, way: str) -> None:
    """Hide rows in one of the ways of `HIDDEN`, in outputs that are written in this way; then let others go on."""
    world = player.world

    def acts(act: Callable[[], object]) -> Callable[[], object]:
        return lambda: (act(), world.note())

    world.note()
    for _ in range(4):
        acts(world.others["append"])()
    control = Steering()
    if how == "carried":
        acts(world.others["delete"])()
    elif how == "late":
        late = acts(world.others["update"])
        control = Steering(at={"files_written": acts(world.others["delete"])}, before_commit=[late])
    else:
        control = Steering(at={"files_written": acts(world.others["delete by deltalake"])})
    player.afterwards(control, way, BELOW_PERCENT)
