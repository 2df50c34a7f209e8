"""The readers, each with the same questions: a point, a range, two columns of all rows, and all columns of all rows.

The log is read before the clock starts and kept, as sessions keep it: what is measured is reading the data, with all
footers, which no reader keeps here.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from tests.bench.read.rows import COLUMNS, ROWS_PER_TICK
from tests.bench.rewrite.sides import CpuMeter
from tests.support.duckdb_extensions import load_extension

Answer = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A question to a table: `select` in SQL, `where` in SQL or empty, and the same for pyarrow.

    columns: read, those of the condition included. answer: computed from them.
    """

    name: str
    select: str
    where: str
    columns: tuple[str, ...]
    condition: pc.Expression | None
    answer: Callable[[pa.Table], Answer]

    def sql(self, table: str) -> str:
        """Return the question as a statement."""
        return f"SELECT {self.select} FROM {table}" + (f" WHERE {self.where}" if self.where else "")


def queries(rows: int) -> Sequence[Query]:
    """Return the questions to a table of so many rows; the range is a fiftieth of them."""
    point = rows // 3
    low, high = rows // 2 * ROWS_PER_TICK, (rows // 2 + rows // 50) * ROWS_PER_TICK
    sums = ("id", "account", "amount")
    greatest = tuple(name for name in COLUMNS if name not in sums)
    return (
        Query(
            "point",
            "max(name), max(amount)",
            f"id = {point}",
            ("id", "name", "amount"),
            pc.field("id") == point,
            lambda found: (pc.max(found["name"]).as_py(), pc.max(found["amount"]).as_py()),
        ),
        Query(
            "range",
            "count(*), sum(amount)",
            f"arrived >= {low} AND arrived < {high}",
            ("arrived", "amount"),
            (pc.field("arrived") >= low) & (pc.field("arrived") < high),
            lambda found: (found.num_rows, pc.sum(found["amount"]).as_py()),
        ),
        Query(
            "two columns",
            "count(kind), max(kind), sum(amount)",
            "",
            ("kind", "amount"),
            None,
            lambda found: (found.num_rows, pc.max(found["kind"]).as_py(), pc.sum(found["amount"]).as_py()),
        ),
        Query(
            "full",
            ", ".join([*(f"sum({name})" for name in sums), *(f"max({name})" for name in greatest)]),
            "",
            COLUMNS,
            None,
            lambda found: (
                *(pc.sum(found[name]).as_py() for name in sums),
                *(pc.max(found[name]).as_py() for name in greatest),
            ),
        ),
    )


class Reader(Protocol):
    """One engine that reads Delta tables."""

    name: str

    def open(self, table: Path) -> None:
        """Read the log, and keep what is live."""

    def answer(self, table: Path, query: Query) -> Answer:
        """Read an open table."""

    def cpu_s(self) -> float:
        """Return the CPU seconds that the reader has used."""


class InProcess:
    """A reader without a process of its own."""

    def cpu_s(self) -> float:
        return time.process_time()


class SparkReader:
    """Spark with Delta's own reader, whose session keeps snapshots."""

    name = "Spark"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._meter = CpuMeter(spark)

    def open(self, table: Path) -> None:
        self._spark.read.format("delta").load(str(table)).limit(1).collect()

    def answer(self, table: Path, query: Query) -> Answer:
        return tuple(self._spark.sql(query.sql(f"delta.`{table}`")).collect()[0])

    def cpu_s(self) -> float:
        return self._meter.now_s()


class DuckDbReader(InProcess):
    """DuckDB with its Delta extension, which is pinned to the version that it opened; a thread for each core."""

    name = "DuckDB"

    def __init__(self) -> None:
        self._connection = duckdb.connect(
            config={"autoinstall_known_extensions": False, "threads": os.cpu_count() or 1}
        )
        load_extension(self._connection, "delta")
        for setting in ("enable_external_file_cache", "parquet_metadata_cache"):
            self._connection.execute(f"SET {setting} = false")
        self._names: dict[Path, str] = {}

    def open(self, table: Path) -> None:
        name = f"t{len(self._names)}"
        self._connection.execute(f"ATTACH '{table.as_uri()}' AS {name} (TYPE delta, PIN_SNAPSHOT)")
        self._names[table] = name

    def answer(self, table: Path, query: Query) -> Answer:
        (row,) = self._connection.execute(query.sql(self._names[table])).fetchall()
        return tuple(row)


class PyArrowReader(InProcess):
    """deltalake's snapshot, with pyarrow reading the files; a data set of its own for each query reads all footers."""

    name = "pyarrow"

    def __init__(self) -> None:
        self._tables: dict[Path, DeltaTable] = {}

    def open(self, table: Path) -> None:
        self._tables[table] = DeltaTable(str(table))

    def answer(self, table: Path, query: Query) -> Answer:
        data: Any = self._tables[table].to_pyarrow_dataset()
        return query.answer(data.to_table(columns=list(query.columns), filter=query.condition))


class DataFusionReader(InProcess):
    """deltalake's own engine, DataFusion."""

    name = "DataFusion"

    def __init__(self) -> None:
        self._tables: dict[Path, DeltaTable] = {}

    def open(self, table: Path) -> None:
        self._tables[table] = DeltaTable(str(table))

    def answer(self, table: Path, query: Query) -> Answer:
        builder = QueryBuilder().register("t", self._tables[table])
        found = pa.table(builder.execute(query.sql("t")).read_all())
        return tuple(column[0].as_py() for column in found.columns)


def known_readers(spark: SparkSession | None) -> Sequence[Reader]:
    """Return all readers; without Spark if it was not started."""
    others = (DuckDbReader(), PyArrowReader(), DataFusionReader())
    return others if spark is None else (SparkReader(spark), *others)
