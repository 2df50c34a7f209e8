"""Spark with Delta: the reader and writer that other engines are compared with, in the JVM that all of them share."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import from_arrow_schema

from tests.interop.engines.literals import SPARK
from tests.interop.engines.protocol import NotOfferedError, Predicate
from tests.interop.operations import (
    EVERYTHING,
    MARK,
    AddColumn,
    Append,
    Checkpoint,
    Delete,
    Merge,
    Operation,
    Optimize,
    Overwrite,
    Restore,
    Update,
    Vacuum,
)
from tests.interop.table_case import KEY, NOTE, Case, Column
from tests.interop.values import Rows, rows_of

_SOURCE = "interop_source"


class SparkReader:
    """Spark's reader of Delta."""

    name = "Spark"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def rows(self, location: Path, case: Case) -> Rows:
        return rows_of(self._frame(location).toArrow())

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        found = self._frame(location).where(SPARK.comparison(case, predicate)).select(KEY).toArrow()
        return tuple(sorted(found.column(KEY).to_pylist()))

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        return len(self._frame(location).where(SPARK.comparison(case, predicate)).inputFiles())

    def _frame(self, location: Path) -> DataFrame:
        return self._spark.read.format("delta").load(str(location))


class SparkWriter:
    """Spark as a writer, by SQL where SQL has a word for it."""

    name = "Spark"
    offers = EVERYTHING

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def create(self, case: Case, location: Path) -> None:
        columns = ", ".join(_ddl(case, column) for column in case.all_columns if _ddl(case, column))
        partitions = ", ".join(map(SPARK.name, case.partition_by))
        properties = ", ".join(f"{SPARK.text(key)} = {SPARK.text(value)}" for key, value in case.properties.items())
        self._sql(
            f"CREATE TABLE {table_name(location)} ({columns}) USING delta"
            + (f" PARTITIONED BY ({partitions})" if partitions else "")
            + (f" TBLPROPERTIES ({properties})" if properties else "")
        )

    def append(self, case: Case, location: Path, keys: tuple[int, ...]) -> None:
        rows, table = self._rows(case, keys), self._spark.read.format("delta").load(str(location))
        # Types as they are now: a statement may widen them later.
        typed = [col(SPARK.name(name)).cast(table.schema[name].dataType) for name in rows.columns]
        rows.select(*typed).write.format("delta").mode("append").save(str(location))

    def state(self, statement: str, location: Path) -> None:
        """Run a statement of a Case."""
        self._sql(statement.replace("{table}", table_name(location)))

    def clone(self, source: Path, location: Path) -> None:
        """Clone a table without its files."""
        self._sql(f"CREATE TABLE {table_name(location)} SHALLOW CLONE {table_name(source)}")

    def perform(self, operation: Operation, case: Case, location: Path) -> None:  # noqa: C901 - one arm each
        table = table_name(location)
        match operation:
            case Append():
                self.append(case, location, tuple(operation.keys(case)))
            case Delete():
                self._sql(f"DELETE FROM {table} WHERE {_among(operation.keys(case))}")
            case Update():
                where = _among(operation.keys(case))
                self._sql(f"UPDATE {table} SET {NOTE} = concat({NOTE}, '{MARK}') WHERE {where}")
            case Merge():
                self._merge(operation, case, table)
            case Overwrite():
                self._overwrite(operation, case, location)
            case AddColumn():
                self._sql(f"ALTER TABLE {table} ADD COLUMNS ({operation.column} STRING)")
            case Restore():
                self._sql(f"RESTORE TABLE {table} TO VERSION AS OF {operation.version}")
            case Vacuum():
                self._sql(f"VACUUM {table} RETAIN 0 HOURS")
            case Optimize():
                self._sql(f"OPTIMIZE {table}")
            case Checkpoint():
                self._checkpoint(location)
            case _:
                raise NotOfferedError(f"{operation.name} is not an operation of Spark")

    def _merge(self, operation: Merge, case: Case, table: str) -> None:
        keys = (*operation.matched(case), *operation.inserted(case))
        self._rows(case, keys, marked=True).createOrReplaceTempView(_SOURCE)
        names = [SPARK.name(column.name) for column in case.all_columns if column.written]
        self._sql(
            f"MERGE INTO {table} t USING {_SOURCE} s ON t.{KEY} = s.{KEY} "
            f"WHEN MATCHED THEN UPDATE SET t.{NOTE} = s.{NOTE} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
        )

    def _overwrite(self, operation: Overwrite, case: Case, location: Path) -> None:
        writer = self._rows(case, (operation.key(case),)).write.format("delta").mode("overwrite")
        if case.partition_by:
            writer = writer.option("replaceWhere", SPARK.equality(case, operation.values(case)))
        writer.save(str(location))

    def _checkpoint(self, location: Path) -> None:
        jvm = self._spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._spark._jsparkSession, str(location)).checkpoint()

    def _rows(self, case: Case, keys: tuple[int, ...], *, marked: bool = False) -> DataFrame:
        changes = {NOTE: lambda key: f"note {key}{MARK}"} if marked else {}
        rows = case.arrow(keys, **changes)
        schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
        return self._spark.createDataFrame(rows, schema).coalesce(1)

    def _sql(self, statement: str) -> None:
        self._spark.sql(statement).collect()


def table_name(location: Path) -> str:
    """Return how a table at a place is written in SQL."""
    return f"delta.{SPARK.name(str(location))}"


def _ddl(case: Case, column: Column) -> str:
    kind = case.columns_at_start.get(column.name, column.sql)
    return f"{SPARK.name(column.name)} {kind} {column.clause}".strip() if kind else ""


def _among(keys: tuple[int, ...]) -> str:
    return f"{KEY} IN ({', '.join(map(str, keys))})"
