"""Tables with a key of two columns, their rows as plain Python, what is done to both, and which rows a removal leaves.

The model of a table maps the unique value of each row to the row; it is the only source of what the table must hold.
Each change of the model takes rows of one partition from rows of that partition alone.
"""

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from shared.policy.policy import KeyScope, Policy
from tests.interop.engines.literals import SPARK
from tests.interop.engines.spark import table_name

Row = Mapping[str, Any]
Model = dict[str, Row]

VALUE = "v"
TYPES = {
    "k": (pa.string(), "STRING"),
    "n": (pa.decimal128(9, 2), "DECIMAL(9,2)"),
    "at": (pa.timestamp("us", "UTC"), "TIMESTAMP"),
    "no": (pa.int32(), "INT"),
    VALUE: (pa.string(), "STRING"),
    "gone": (pa.bool_(), "BOOLEAN"),
    "p": (pa.string(), "STRING"),
}
KEYS, SEQUENCE, MARKER, PARTITION = ("k", "n"), ("at", "no"), "gone", "p"
PARTITIONS = ("a", "b+c", "d%e", None)
"""Values that all engines spell alike in paths; of others deltalake cannot remove the files of Spark."""

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ODD_NAMES = {"k": "my key", "n": "n, 2", "at": "at;=", "no": "no.(1)", VALUE: "v `1`", "gone": "gone {x}", "p": "p\tq"}
"""Names that only column mapping allows."""


@dataclass(frozen=True, slots=True)
class KeyedCase:
    """A table: who makes it, its features, whether it is partitioned, and the names of its columns."""

    name: str
    creator: str
    properties: Mapping[str, str] = field(default_factory=dict)
    is_partitioned: bool = True
    names: Mapping[str, str] = field(default_factory=lambda: {name: name for name in TYPES})
    is_partition_in_key: bool = False

    @property
    def is_written_by_deltalake(self) -> bool:
        """Whether deltalake writes the table, too: it knows no column mapping."""
        return "delta.columnMapping.mode" not in self.properties

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the key."""
        return (*KEYS, PARTITION) if self.is_partition_in_key else KEYS

    @property
    def policy(self) -> Policy:
        """The policy by which older rows are removed."""
        return Policy(
            primary_key=self._named(self.keys),
            sequence_by=self._named(SEQUENCE),
            delete_marker=self._named((MARKER,)),
            key_scope=KeyScope.TABLE if self.is_partition_in_key or not self.is_partitioned else KeyScope.PARTITION,
        )

    def _named(self, columns: Iterable[str]) -> str:
        return ", ".join(SPARK.name(self.names[column]) for column in columns)

    def arrow(self, rows: Iterable[Row]) -> pa.Table:
        """Return rows as a table of Arrow under the table's own names."""
        given = list(rows)
        return pa.table(
            {self.names[name]: pa.array([row[name] for row in given], kind) for name, (kind, _) in TYPES.items()}
        )

    def partition(self, row: Row) -> str | None:
        """Return what distinguishes the partitions of the table."""
        return row[PARTITION] if self.is_partitioned else None


CASES = {
    case.name: case
    for case in (
        KeyedCase("plain", "deltalake", is_partitioned=False),
        KeyedCase("partitioned", "deltalake"),
        KeyedCase("partition in the key", "deltalake", is_partition_in_key=True),
        KeyedCase("vectors", "spark", {"delta.enableDeletionVectors": "true"}),
        KeyedCase("change feed", "deltalake", {"delta.enableChangeDataFeed": "true"}),
        KeyedCase(
            "odd names",
            "spark",
            {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
            names=ODD_NAMES,
        ),
        KeyedCase("row tracking", "spark", {"delta.enableRowTracking": "true"}, is_partitioned=False),
    )
}


class Dice:
    """Rows of a change feed: keys that differ little, some of them null, and sequences that grow; some are null."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self._late = 0

    def rows(self, count: int, *, ties: bool = False) -> Model:
        """Return new rows in any partition; with ties, some have the sequence of the row before."""
        found = {}
        for _ in range(count):
            self._number += 1
            self._late += not (ties and self._random.random() < 0.3)
            key = self._random.choice(("a", "A", "a ", "\u00e1", "a\u0301", "", None))
            value = f"v{self._number}"
            found[value] = {
                "k": key,
                "n": self._random.choice((Decimal("1.10"), Decimal("-0.01"), Decimal("1.10"), None)),
                "at": None if self._random.random() < 0.05 else BEGIN + timedelta(microseconds=self._late // 3),
                "no": self._late % 3,
                VALUE: value,
                "gone": self._random.choice((None, False, False, True)),
                "p": self._random.choice(PARTITIONS),
            }
        return found

    def some(self, model: Model, share: float = 0.3) -> tuple[str, ...]:
        """Choose values of rows."""
        return tuple(value for value in sorted(model) if self._random.random() < share)


@dataclass(frozen=True, slots=True)
class Change:
    """A change: `apply` to the model, `perform` by the engine of this name on the table at a place."""

    engine: str
    name: str
    apply: Callable[[Model], Model]
    perform: Callable[[Path, DeltaTable | None], None]


class Engines:
    """What deltalake and Spark do to a table of a case."""

    def __init__(self, case: KeyedCase, spark: SparkSession) -> None:
        self._case = case
        self._spark = spark

    def create(self, place: Path) -> None:
        case = self._case
        partition = [case.names[PARTITION]] if case.is_partitioned else []
        if case.creator == "deltalake":
            empty, properties = case.arrow(()), dict(case.properties) or None
            write_deltalake(str(place), empty, partition_by=partition or None, configuration=properties)
            return
        columns = ", ".join(f"{SPARK.name(case.names[name])} {sql}" for name, (_, sql) in TYPES.items())
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in case.properties.items())
        by = f"PARTITIONED BY ({', '.join(map(SPARK.name, partition))})" if partition else ""
        self._sql(f"CREATE TABLE {table_name(place)} ({columns}) USING delta {by} TBLPROPERTIES ({properties})")

    def append(self, engine: str, rows: Model) -> Change:
        """Add rows."""

        def perform(place: Path, held: DeltaTable | None) -> None:
            if engine == "deltalake":
                write_deltalake(held or str(place), self._case.arrow(rows.values()), mode="append")
            else:
                self._frame(rows).write.format("delta").mode("append").save(str(place))

        return Change(engine, "append", lambda model: model | rows, perform)

    def delete(self, engine: str, values: tuple[str, ...]) -> Change:
        """Delete rows by their values."""

        def perform(place: Path, held: DeltaTable | None) -> None:
            if engine == "deltalake":
                (held or DeltaTable(str(place))).delete(f'"{self._case.names[VALUE]}" IN ({_texts(values)})')
            else:
                self._sql(f"DELETE FROM {table_name(place)} WHERE {self._name(VALUE)} IN ({_texts(values)})")

        def apply(model: Model) -> Model:
            return {value: row for value, row in model.items() if value not in values}

        return Change(engine, "delete", apply, perform)

    def merge(self, engine: str, changed: tuple[str, ...], rows: Model) -> Change:
        """Change a part of the sequence of some rows, each to another number, and add rows."""
        numbers = {value: 10 + int(value[1:]) for value in changed}

        def perform(place: Path, held: DeltaTable | None) -> None:
            # Of a row that is there only its value and what is set matter.
            blank = dict.fromkeys(TYPES)
            given = {value: {**blank, VALUE: value, "no": number} for value, number in numbers.items()} | rows
            if engine == "deltalake":
                value, no = self._case.names[VALUE], self._case.names["no"]
                merger = (held or DeltaTable(str(place))).merge(
                    self._case.arrow(given.values()), f't."{value}" = s."{value}"', source_alias="s", target_alias="t"
                )
                merger.when_matched_update({f'"{no}"': f's."{no}"'}).when_not_matched_insert_all(
                    predicate=f's."{value}" NOT IN ({_texts(changed)})' if changed else None
                ).execute()
                return
            self._frame(given).createOrReplaceTempView("keyed_source")
            value, no = self._name(VALUE), self._name("no")
            unless = f"AND s.{value} NOT IN ({_texts(changed)})" if changed else ""
            self._sql(
                f"MERGE INTO {table_name(place)} t USING keyed_source s ON t.{value} = s.{value} "
                f"WHEN MATCHED THEN UPDATE SET t.{no} = s.{no} WHEN NOT MATCHED {unless} THEN INSERT *"
            )

        def apply(model: Model) -> Model:
            there = {value: {**model[value], "no": number} for value, number in numbers.items() if value in model}
            return model | there | rows

        return Change(engine, "merge", apply, perform)

    def compact(self, engine: str) -> Change:
        """Compact all partitions."""

        def perform(place: Path, held: DeltaTable | None) -> None:
            if engine == "deltalake":
                (held or DeltaTable(str(place))).optimize.compact()
            else:
                self._sql(f"OPTIMIZE {table_name(place)}")

        return Change(engine, "compact", dict, perform)

    def choose(self, engine: str, dice: Dice, model: Model, choice: int) -> Change:
        """Return one of the changes."""
        match choice % 4:
            case 0:
                return self.append(engine, dice.rows(12))
            case 1:
                return self.delete(engine, dice.some(model, 0.15))
            case 2:
                return self.merge(engine, dice.some(model, 0.1), dice.rows(6))
            case _:
                return self.compact(engine)

    def _frame(self, rows: Model) -> Any:
        return self._spark.createDataFrame(self._case.arrow(rows.values())).coalesce(1)

    def _name(self, column: str) -> str:
        return SPARK.name(self._case.names[column])

    def _sql(self, statement: str) -> None:
        self._spark.sql(statement).collect()


def _texts(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values) or "''"


def newest(case: KeyedCase, model: Model, kept: Iterable[str] = ()) -> Model:
    """Return the rows that a removal leaves; of rows of one key and sequence the one that was kept, else the last."""
    preferred = set(kept)
    groups: dict[tuple[Any, ...], list[str]] = {}
    left = {}
    for value, row in model.items():
        if any(row[name] is None for name in (*case.keys, *SEQUENCE)):
            left[value] = row
        else:
            groups.setdefault((case.partition(row), *(row[name] for name in case.keys)), []).append(value)
    for values in groups.values():
        best = max(tuple(model[value][name] for name in SEQUENCE) for value in values)
        first = [value for value in values if tuple(model[value][name] for name in SEQUENCE) == best]
        if not any(model[value][MARKER] for value in first):
            chosen = next((value for value in first if value in preferred), first[-1])
            left[chosen] = model[chosen]
    return left


def partitions_in_order(case: KeyedCase, model: Model) -> list[str | None]:
    """Return the partitions in the order in which a run takes them."""
    found = {case.partition(row) for row in model.values()}
    return sorted(found, key=lambda value: json.dumps({"p": value}, ensure_ascii=False))
