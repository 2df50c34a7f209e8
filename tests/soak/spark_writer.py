"""A foreign writer with Spark, and the reader with Spark: one JVM for both, because two would not have a core each.

Its commits are exclusive between processes by the log store that an actor uses, too: Delta's own for local files
checks and then renames, and loses the commits of others (see `actor.jvm.spark`). Everything else is Delta's.

Requests to read lie in `requests` as JSON, and are answered between two operations; after `stop` until `end` appears.
"""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.jvm.java import JavaSearch, collector_options, find_java
from actor.jvm.spark import SparkSettings, build_session, stop_session
from tests.soak.deltalake_writer import arrow
from tests.soak.log import newest_version, restorable_versions
from tests.soak.operations import Action, Operation, View, Where
from tests.soak.tables import TABLES, Partition, TableSpec, spec_of
from tests.soak.values import Kind, Row, Value, literal_for_spark
from tests.soak.writer import WriterOptions, parse_options, write

ROOT = Path(__file__).resolve().parents[2]
IDLE_S = 0.1
SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
}
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


_ANY_VERSION = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Readers are pinned to a version, which others overtake; the table's retention is only minutes."""


class SparkEngine:
    """Works on what the session sees when an operation runs, which may be newer than what `view` saw."""

    def __init__(self, spark: SparkSession, options: WriterOptions) -> None:
        self._spark = spark
        self._folder = options.tables
        self._everywhere = options.spark_writes_everywhere

    def tables(self) -> Sequence[TableSpec]:
        """Return the tables with a partition that Spark may write."""
        return [spec for spec in TABLES if self.partitions(spec)]

    def partitions(self, spec: TableSpec) -> Sequence[Partition]:
        """Return the partitions that Spark may write; see `tables` for the reason."""
        return spec.partitions if self._everywhere else spec.spark

    def create(self, spec: TableSpec) -> None:
        """Create a table that deltalake cannot create."""
        columns = ", ".join(f"`{name}` {_type(kind)}" for name, kind in spec.columns.items())
        by = ", ".join(f"`{name}`" for name in spec.by)
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in spec.configuration.items())
        self._sql(f"CREATE TABLE {self._name(spec)} ({columns}) USING delta PARTITIONED BY ({by}) "
                  f"TBLPROPERTIES ({properties})")  # fmt: skip

    def view(self, spec: TableSpec, action: Action) -> View:
        """Return the newest state, and the ids for actions that name some."""
        path = self._folder / spec.place
        version = newest_version(path)
        frame = self._spark.read.format("delta").load(str(path))
        ids: dict[Partition, list[int]] = {}
        if action in (Action.DELETE, Action.UPDATE, Action.MERGE):
            for number, *key in frame.selectExpr(
                "id", *(_canonical(name, kind) for name, kind in spec.by.items())
            ).collect():
                ids.setdefault(tuple(None if value == "" else value for value in key), []).append(number)
        restorable = restorable_versions(path, version, time.time()) if action is Action.RESTORE else []
        return View(version, frame.columns, ids, restorable)

    def run(self, spec: TableSpec, operation: Operation) -> int:
        """Carry an operation out; see `Engine`."""
        path = self._folder / spec.place
        self._spark.conf.set(USER_METADATA, operation.nonce)
        where, table = predicate(spec, operation.where), self._name(spec)
        match operation.action:
            case Action.APPEND:
                self._frame(spec, operation).write.format("delta").mode("append").save(str(path))
            case Action.OVERWRITE:
                writer = self._frame(spec, operation).write.format("delta").mode("overwrite")
                writer.option("replaceWhere", where).save(str(path))
            case Action.DELETE:
                self._sql(f"DELETE FROM {table} WHERE {where}")
            case Action.UPDATE:
                assigned = (f"`{name}` = {literal(spec, name, value)}" for name, value in operation.assign.items())
                self._sql(f"UPDATE {table} SET {', '.join(assigned)} WHERE {where}")
            case Action.MERGE:
                self._merge(spec, operation)
            case Action.ADD_COLUMN:
                self._sql(f"ALTER TABLE {table} ADD COLUMNS ({operation.column} STRING)")
            case Action.RESTORE:
                self._sql(f"RESTORE TABLE {table} TO VERSION AS OF {operation.target}")
            case Action.OPTIMIZE:
                self._sql(f"OPTIMIZE {table}" + (f" WHERE {where}" if where else ""))
            case Action.VACUUM:
                self._sql(f"VACUUM {table}")
        return newest_version(path)

    def rows(self, spec: TableSpec, version: int, since: int | None) -> list[Row]:
        """Return the rows at a version; `since`: only those whose `at` is at least this."""
        reader = self._spark.read.format("delta").option("versionAsOf", version)
        frame = reader.load(str(self._folder / spec.place))
        if since is not None:
            frame = frame.where(f"at >= {literal_for_spark(Kind.TIMESTAMP, since)}")
        columns = frame.columns
        found = frame.selectExpr(*(_canonical(name, spec.kind(name)) for name in columns)).collect()
        return [
            {name: None if value == "" and name in spec.by else value for name, value in zip(columns, row, strict=True)}
            for row in found
        ]

    def vacuum_all(self, spec: TableSpec) -> None:
        """Remove every file that is not live: no other may be at work."""
        self._spark.conf.set("spark.databricks.delta.vacuum.logging.enabled", "false")  # No commit: nothing to replay.
        self._sql(f"VACUUM {self._name(spec)} RETAIN 0 HOURS")

    def forget(self) -> None:
        """Forget cached snapshots, so that the next read begins with the log's checkpoint."""
        self._spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def _merge(self, spec: TableSpec, operation: Operation) -> None:
        named = operation.where.partition or {}
        same = [f"t.`{name}` = {literal(spec, name, value)}" for name, value in named.items()]
        updating = ", ".join(map(str, operation.where.ids or ()))
        self._frame(spec, operation).createOrReplaceTempView("merged")
        self._sql(
            f"MERGE INTO {self._name(spec)} t USING merged s ON {' AND '.join(['t.id = s.id', *same])} "
            f"WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND s.id NOT IN ({updating}) THEN INSERT *"
        )

    def _frame(self, spec: TableSpec, operation: Operation) -> Any:
        return self._spark.createDataFrame(arrow(spec, operation.rows, operation.spelling)).coalesce(1)

    def _sql(self, statement: str) -> Any:
        return self._spark.sql(statement).collect()

    def _name(self, spec: TableSpec) -> str:
        return f"delta.`{self._folder / spec.place}`"


def literal(spec: TableSpec, column: str, value: Value) -> str:
    """Return a value of a column as SQL."""
    return literal_for_spark(spec.kind(column), value)


def predicate(spec: TableSpec, where: Where) -> str:
    """Return a predicate as SQL."""
    return where.text([f"`{name}` = {literal(spec, name, value)}" for name, value in (where.partition or {}).items()])


def _type(kind: Kind) -> str:
    return "BIGINT" if kind is Kind.LONG else kind.upper()


def _canonical(name: str, kind: Kind) -> str:
    match kind:
        case Kind.TIMESTAMP:
            return f"unix_micros(`{name}`)"
        case Kind.DATE:
            return f"unix_date(`{name}`)"
    return f"`{name}`"


def answer(engine: SparkEngine, requests: Path) -> None:
    """Answer what lies in the folder of requests, each by a file of its name that ends in `.answer`."""
    for request in sorted(requests.glob("*.json")):
        asked = json.loads(request.read_text())
        request.unlink()
        spec = spec_of(asked["table"])
        try:
            if asked["vacuum"]:
                engine.vacuum_all(spec)
            if asked["fresh"]:
                engine.forget()
            stated: dict[str, Any] = {"rows": engine.rows(spec, asked["version"], asked["since"])}
        except Exception as problem:  # noqa: BLE001 - whoever asked judges it
            stated = {"error": f"{type(problem).__name__}: {problem}"[:2000]}
        half = request.with_suffix(".half")
        half.write_text(json.dumps(stated))
        half.rename(request.with_suffix(".answer"))


def main() -> None:
    options = parse_options()
    work, requests = options.folder / options.name, options.folder / "requests"
    search = JavaSearch(
        work_dir=work,
        choice=os.environ.get("LAKEWRIGHT_JAVA", "auto"),
        java_home=os.environ.get("JAVA_HOME", ""),
        path=os.environ.get("PATH", ""),
    )
    ivy = Path(os.environ.get("LAKEWRIGHT_IVY_DIR", ROOT / ".cache" / "ivy"))
    chosen = collector_options(os.environ)
    extra = SETTINGS | dict(one.split("=", 1) for one in options.spark_conf)
    settings = SparkSettings(work, ivy, master="local[1]", driver_memory="768m", collector=chosen, extra=extra)
    spark = build_session(settings, java_home=find_java(search).path)
    spark.conf.set(_ANY_VERSION, "false")
    engine = SparkEngine(spark, options)
    for spec in TABLES:
        if not spec.deltalake and options.writes_to(spec):
            engine.create(spec)
    (options.folder / f"{options.name}.ready").touch()
    write(engine, options, between=lambda: answer(engine, requests))
    (options.folder / f"{options.name}.stopped").touch()
    while not (options.folder / "end").exists():
        answer(engine, requests)
        time.sleep(IDLE_S)
    stop_session(spark)


if __name__ == "__main__":
    main()
