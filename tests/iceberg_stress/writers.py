"""Writers of the stress: Spark, pyiceberg, and Iceberg's own API for what neither of them does.

Each names its operation, with a number that no other one has, in the summary of its snapshot, and notes it as confirmed
once it is answered. A writer that loses a race, or gets no answer, goes on.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from actor.formats.iceberg.java_table import JavaTable
from tests.iceberg_stress.operations import (
    GROUPS,
    MOST_ROWS,
    OPERATION_KEY,
    SQL_WEIGHTS,
    chosen,
    encoded,
    is_in_parts,
    new_rows,
    random_operation,
)

SCHEMA = pa.schema([("id", pa.int64()), ("g", pa.int32()), ("v", pa.int32())])
FIELD_ID = {b"PARQUET:field_id": b"1"}
UNHURRIED_S = 10.0
"""Pause of a writer that does some kinds only: they leave the machine to the actors."""

NOTHING = "nothing"
"""What a writer has done that may do none of its kinds."""

DELETED_IDS = 1500
"""Ids below which single ones are deleted: a run reserves about as many."""


class Ledger:
    """What the writers of a table meant to do: numbers of operations, their ids, and which were confirmed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations = 0
        self._next_id = 0
        self.confirmed: list[str] = []

    def ids(self) -> int:
        """Return the first of ids that no other operation uses."""
        with self._lock:
            self._next_id += MOST_ROWS
            return self._next_id - MOST_ROWS

    def begin(self, what: Mapping[str, Any]) -> str:
        """Return the text of a new operation."""
        with self._lock:
            self._operations += 1
            return encoded({**what, "number": self._operations})

    def confirm(self, text: str) -> None:
        """Note that the operation was answered as made."""
        with self._lock:
            self.confirmed.append(text)


class Permitted:
    """Which kinds of operations writers do: all, until `only` names some; then they do not hurry, either."""

    def __init__(self) -> None:
        self._kinds: frozenset[str] | None = None

    def only(self, kinds: Iterable[str]) -> None:
        """Permit these from now on."""
        self._kinds = frozenset(kinds)

    def of(self, weights: Mapping[str, int]) -> dict[str, int]:
        """Return those of these kinds that are permitted, with their weights; empty if none is."""
        return {kind: weight for kind, weight in weights.items() if self._kinds is None or kind in self._kinds}

    def pause_s(self, usual_s: float) -> float:
        """Return how long a writer pauses."""
        return usual_s if self._kinds is None else max(usual_s, UNHURRIED_S)


class Writer(threading.Thread):
    """Does one thing after the other until it is stopped; `done` and `lost` count them by kind."""

    def __init__(
        self,
        name: str,
        step: Callable[[Permitted], str],
        permitted: Permitted,
        stop: threading.Event,
        *,
        pause_s: float,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._pause_s = pause_s
        self._step = step
        self._permitted = permitted
        self._halt = stop
        self.done: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()

    def run(self) -> None:
        while not self._halt.wait(self._permitted.pause_s(self._pause_s)):
            try:
                self.done[self._step(self._permitted)] += 1
            except Exception as error:  # noqa: BLE001 - a lost race is no failure; what it did is seen in the table
                self.lost[f"{type(error).__name__}: {error}".split("\n", 1)[0][:140]] += 1


class SparkSteps:
    """SQL of Spark, copy on write or merge on read as the tables' properties are."""

    def __init__(
        self, spark: SparkSession, conf: Mapping[str, str], ledgers: Mapping[str, Ledger], random: Random
    ) -> None:
        self._session, self._ledgers, self._random = spark.newSession(), ledgers, random
        for name, value in conf.items():
            self._session.conf.set(name, value)

    def __call__(self, permitted: Permitted) -> str:
        (name,) = self._random.choices(list(self._ledgers), [1, 1, 3, 3])  # Of the last two it is the only one.
        ledger, table = self._ledgers[name], f"lake.db.{name}"
        what = random_operation(self._random, ledger.ids(), permitted.of(SQL_WEIGHTS))
        text = ledger.begin(what)
        self._session.conf.set(f"spark.sql.iceberg.snapshot-property.{OPERATION_KEY}", text)
        if what["kind"] == "overwrite":
            rows = self._session.createDataFrame(new_rows(what), "id BIGINT, g INT, v INT").coalesce(1)
            self._with_all_columns(rows, table).writeTo(table).overwrite(col("g") == what["g"])
        else:
            self._session.sql(self._sql(what, table))
        ledger.confirm(text)
        return f"{name} {what['kind']}"

    def _with_all_columns(self, rows: Any, table: str) -> Any:
        missing = [name for name in self._session.table(table).columns if name not in SCHEMA.names]
        return rows.selectExpr("*", *(f"CAST(NULL AS STRING) {name}" for name in missing))

    def _sql(self, what: Mapping[str, Any], table: str) -> str:
        start = what.get("start", 0)
        ids = f"SELECT id, cast(id % {GROUPS} AS int) g, 0 v FROM range({start}, {start + what.get('count', 0)}, 1, 1)"
        match what["kind"]:
            case "append":
                return f"INSERT INTO {table} (id, g, v) {ids}"
            case "delete":
                return f"DELETE FROM {table} WHERE id % {what['of']} = {what['is']}"
            case "update":
                return f"UPDATE {table} SET v = v + 1 WHERE id % {what['of']} = {what['is']}"
        return (
            f"MERGE INTO {table} t USING ({ids}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 10 "
            "WHEN NOT MATCHED THEN INSERT (id, g, v) VALUES (s.id, s.g, s.v)"
        )


class PyicebergSteps:
    """Appends, deletes and overwrites of pyiceberg, which copies on write."""

    def __init__(self, options: Mapping[str, str], ledgers: Mapping[str, Ledger], random: Random) -> None:
        self._catalog, self._ledgers, self._random = load_catalog("lake", **options), ledgers, random

    def __call__(self, permitted: Permitted) -> str:
        name = self._random.choice(list(self._ledgers))
        ledger, table = self._ledgers[name], self._catalog.load_table(f"db.{name}")
        kind = chosen(self._random, permitted.of({"append": 8, "delete": 2, "overwrite": 1}))
        what: dict[str, Any] = {"kind": kind, "in_parts": kind != "append"}
        if kind == "delete":
            what |= {"of": 10**9, "is": self._random.randrange(DELETED_IDS)}
        else:
            what |= {"start": ledger.ids(), "count": 20, "g": self._random.randrange(GROUPS)}
        text = ledger.begin(what)
        properties = {OPERATION_KEY: text}
        match kind:
            case "append":
                table.append(_arrow(what), snapshot_properties=properties)
            case "delete":
                table.delete(f"id = {what['is']}", snapshot_properties=properties)
            case "overwrite":
                table.overwrite(_arrow(what), f"g = {what['g']}", snapshot_properties=properties)
        ledger.confirm(text)
        return f"{name} {kind}"


def _arrow(what: Mapping[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([row._asdict() for row in new_rows(what)], schema=SCHEMA)


class JavaSteps:
    """Equality deletes, rollbacks and evolution, through Iceberg's own API."""

    def __init__(
        self,
        load: Callable[[str], JavaTable],
        jvm: Any,
        folder: Path,
        ledgers: Mapping[str, Ledger],
        *,
        deletes_values_in: str,
        random: Random,
    ) -> None:
        self._load, self._jvm, self._folder, self._ledgers, self._random = load, jvm, folder, ledgers, random
        self._values_in = deletes_values_in
        self._number = 0

    def __call__(self, permitted: Permitted) -> str:
        weights = permitted.of({"values": 3, "rollback": 2, "schema": 1, "spec": 1})
        if not weights:
            return NOTHING
        self._number += 1
        kind = chosen(self._random, weights)
        name = self._values_in if kind == "values" else self._random.choice(list(self._ledgers))
        table = self._load(name).raw
        match kind:
            case "values":
                self._delete_values(table, self._ledgers[name])
            case "rollback":
                return f"{name} {self._roll_back(table)}"
            case "schema":
                change = table.updateSchema()
                if table.schema().findField("extra") is None:
                    change.addColumn("extra", getattr(self._jvm.org.apache.iceberg.types, "Types$StringType").get())
                else:
                    change.deleteColumn("extra")
                change.commit()
            case "spec":
                expressions = self._jvm.org.apache.iceberg.expressions.Expressions
                if any(str(field.name()) == "id_bucket" for field in table.spec().fields()):
                    table.updateSpec().removeField("id_bucket").commit()
                else:
                    table.updateSpec().addField("id_bucket", expressions.bucket("id", 2)).commit()
        return f"{name} {kind}"

    def _roll_back(self, table: Any) -> str:
        """Return main to the parent of its snapshot, unless this is one of several of one commit."""
        current = table.currentSnapshot()
        text = None if current is None else current.summary().get(OPERATION_KEY)
        if current is None or current.parentId() is None or (text is not None and is_in_parts(text)):
            return "nothing to roll back"
        table.manageSnapshots().rollbackTo(current.parentId()).commit()
        return "rollback"

    def _delete_values(self, table: Any, ledger: Ledger) -> None:
        """Delete an id wherever it is, by a file of the first spec: having no fields, it applies to all partitions."""
        iceberg = self._jvm.org.apache.iceberg
        value = self._random.randrange(DELETED_IDS)
        text = ledger.begin({"kind": "delete", "of": 10**9, "is": value})
        path = self._folder / f"values-{self._number}.parquet"
        pq.write_table(pa.table([[value]], schema=pa.schema([pa.field("id", pa.int64(), metadata=FIELD_ID)])), path)
        file = (
            iceberg.FileMetadata.deleteFileBuilder(table.specs().get(0))
            .ofEqualityDeletes(_ints(self._jvm, [1]))
            .withPath(path.as_uri())
            .withFormat("PARQUET")
            .withFileSizeInBytes(path.stat().st_size)
            .withRecordCount(1)
            .build()
        )
        table.newRowDelta().addDeletes(file).set(OPERATION_KEY, text).commit()
        ledger.confirm(text)


def _ints(jvm: Any, numbers: list[int]) -> Any:
    array = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Integer.TYPE, len(numbers))
    for index, number in enumerate(numbers):
        jvm.java.lang.reflect.Array.setInt(array, index, number)
    return array
