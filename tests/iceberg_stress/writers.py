"""Writers of the stress: Spark, pyiceberg, and Iceberg's own API for what neither of them does.

Each names its operation in the summary of its snapshot. A writer that loses a race has changed nothing, and goes on.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from actor.formats.iceberg.java_table import JavaTable
from tests.iceberg_stress.operations import GROUPS, OPERATION_KEY, appended, encoded, random_operation

SCHEMA = pa.schema([("id", pa.int64()), ("g", pa.int32()), ("v", pa.int32())])
FIELD_ID = {b"PARQUET:field_id": b"1"}
PAUSE_S = 0.1


class Ids:
    """Ids that no other writer of the table uses."""

    def __init__(self) -> None:
        self._next = 0
        self._lock = threading.Lock()

    def take(self, count: int = 50) -> int:
        with self._lock:
            self._next += count
            return self._next - count


class Writer(threading.Thread):
    """Does one thing after the other to one table until it is stopped; `done` and `lost` count them by kind."""

    def __init__(self, name: str, step: Callable[[], str], stop: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self._step = step
        self._halt = stop
        self.done: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()

    def run(self) -> None:
        while not self._halt.wait(PAUSE_S):
            try:
                self.done[self._step()] += 1
            except Exception as error:  # noqa: BLE001 - a lost race is no failure; what it did is seen in the table
                self.lost[f"{type(error).__name__}: {error}".split("\n", 1)[0][:110]] += 1


class SparkSteps:
    """SQL of Spark, copy on write or merge on read as the table's properties are."""

    def __init__(self, spark: SparkSession, conf: Mapping[str, str], table: str, ids: Ids, random: Random) -> None:
        self._session, self._table, self._ids, self._random = spark.newSession(), table, ids, random
        for name, value in {**conf, "spark.sql.sources.partitionOverwriteMode": "dynamic"}.items():
            self._session.conf.set(name, value)

    def __call__(self) -> str:
        what = random_operation(self._random, self._ids.take())
        self._session.conf.set(f"spark.sql.iceberg.snapshot-property.{OPERATION_KEY}", encoded(what))
        self._session.sql(self._sql(what))
        return str(what["kind"])

    def _sql(self, what: Mapping[str, Any]) -> str:
        table = self._table
        start = what.get("start", 0)
        ids = f"SELECT id, cast(id % {GROUPS} AS int) g, 0 v FROM range({start}, {start + what.get('count', 0)}, 1, 1)"
        match what["kind"]:
            case "append":
                return f"INSERT INTO {table} (id, g, v) {ids}"
            case "delete":
                return f"DELETE FROM {table} WHERE id % {what['of']} = {what['is']}"
            case "update":
                return f"UPDATE {table} SET v = v + 1 WHERE id % {what['of']} = {what['is']}"
            case "merge":
                return (
                    f"MERGE INTO {table} t USING ({ids}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 10 "
                    "WHEN NOT MATCHED THEN INSERT (id, g, v) VALUES (s.id, s.g, s.v)"
                )
        return f"INSERT OVERWRITE {table} (id, g, v) SELECT * FROM ({ids}) WHERE g = {what['g']}"


class PyicebergSteps:
    """Appends and deletes of pyiceberg."""

    def __init__(self, name: str, options: Mapping[str, str], ids: Ids, random: Random) -> None:
        self._catalog, self._name = load_catalog("lake", **options), name
        self._ids, self._random = ids, random

    def __call__(self) -> str:
        table = self._catalog.load_table(self._name)
        if self._random.random() < 0.7 or table.current_snapshot() is None:
            what = {"kind": "append", "start": self._ids.take(), "count": 20}
            table.append(_arrow(what), snapshot_properties={OPERATION_KEY: encoded(what)})
        else:
            at = self._random.randrange(3000)
            what = {"kind": "delete", "of": 10**9, "is": at, "in_parts": True}
            table.delete(f"id = {at}", snapshot_properties={OPERATION_KEY: encoded(what)})
        return f"pyiceberg {what['kind']}"


def _arrow(what: Mapping[str, Any]) -> pa.Table:
    rows = appended(what["start"], what["count"])
    return pa.Table.from_pylist([row._asdict() for row in rows], schema=SCHEMA)


class JavaSteps:
    """Equality deletes, rollbacks and evolution, through Iceberg's own API."""

    def __init__(self, load: Callable[[], JavaTable], jvm: Any, folder: Path, random: Random) -> None:
        self._load, self._jvm, self._folder, self._random = load, jvm, folder, random
        self._number = 0

    def __call__(self) -> str:
        time.sleep(self._random.random())
        self._number += 1
        kind = self._random.choices(["values", "rollback", "schema", "spec"], [6, 1, 2, 1])[0]
        table = self._load().raw
        match kind:
            case "values":
                return self._delete_values(table)
            case "rollback":
                return self._roll_back(table)
            case "schema":
                change = table.updateSchema()
                if table.schema().findField("extra") is None:
                    change.addColumn("extra", getattr(self._jvm.org.apache.iceberg.types, "Types$StringType").get())
                else:
                    change.deleteColumn("extra")
                change.commit()
            case "spec":
                expressions = self._jvm.org.apache.iceberg.expressions.Expressions
                if table.spec().fields().size() == 1:
                    table.updateSpec().addField("id_bucket", expressions.bucket("id", 2)).commit()
                else:
                    table.updateSpec().removeField("id_bucket").commit()
        return kind

    def _roll_back(self, table: Any) -> str:
        current = table.currentSnapshot()
        table.manageSnapshots().rollbackTo(current.parentId()).commit()
        return "rollback"

    def _delete_values(self, table: Any) -> str:
        """Delete an id wherever it is, by a file of the first spec: having no fields, it applies to all partitions."""
        iceberg = self._jvm.org.apache.iceberg
        at = self._random.randrange(3000)
        path = self._folder / f"values-{self._number}-{self._random.randrange(10**9)}.parquet"
        pq.write_table(pa.table([[at]], schema=pa.schema([pa.field("id", pa.int64(), metadata=FIELD_ID)])), path)
        ids = self._jvm.java.util.ArrayList()
        ids.add(1)
        file = (
            iceberg.FileMetadata.deleteFileBuilder(table.specs().get(0))
            .ofEqualityDeletes(_ints(self._jvm, [1]))
            .withPath(path.as_uri())
            .withFormat("PARQUET")
            .withFileSizeInBytes(path.stat().st_size)
            .withRecordCount(1)
            .build()
        )
        what = encoded({"kind": "delete", "of": 10**9, "is": at})
        table.newRowDelta().addDeletes(file).set(OPERATION_KEY, what).commit()
        return "values"


def _ints(jvm: Any, numbers: list[int]) -> Any:
    array = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Integer.TYPE, len(numbers))
    for index, number in enumerate(numbers):
        jvm.java.lang.reflect.Array.setInt(array, index, number)
    return array
