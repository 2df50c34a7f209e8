"""delta-rs by its Python package deltalake: a writer, and two readers (Arrow's dataset and its own query engine).

The same adapter runs with the locked version in this process, and with another version in a process of its own.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder, WriterProperties, write_deltalake

from tests.interop.engines.literals import DATAFUSION
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
from tests.interop.table_case import KEY, NOTE, Case
from tests.interop.values import Rows, rows_of

_COMPARE: dict[str, str] = {"=": "__eq__", "<": "__lt__", ">": "__gt__", ">=": "__ge__"}


class DatasetReader:
    """deltalake's list of live files, read by Arrow."""

    name = "deltalake (Arrow dataset)"

    def rows(self, location: Path, case: Case) -> Rows:
        return rows_of(DeltaTable(str(location)).to_pyarrow_table())

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        kind = case.column(predicate.column).arrow
        wanted = pa.scalar(predicate.value, kind)
        condition = getattr(ds.field(predicate.column), _COMPARE[predicate.op])(wanted)
        table = DeltaTable(str(location)).to_pyarrow_dataset().to_table(filter=condition, columns=[KEY])
        return tuple(sorted(table.column(KEY).to_pylist()))

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        kind = case.column(predicate.column).arrow
        wanted = pa.scalar(predicate.value, kind)
        condition = getattr(ds.field(predicate.column), _COMPARE[predicate.op])(wanted)
        return len(list(DeltaTable(str(location)).to_pyarrow_dataset().get_fragments(filter=condition)))


class QueryReader:
    """deltalake's own query engine, DataFusion."""

    name = "deltalake (DataFusion)"

    def rows(self, location: Path, case: Case) -> Rows:
        return rows_of(self._query(location, "SELECT * FROM t"))

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        found = self._query(location, f"SELECT {KEY} FROM t WHERE {DATAFUSION.comparison(case, predicate)}")
        return tuple(sorted(found.column(KEY).to_pylist()))

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        raise NotOfferedError("it does not tell how many files a query reads")

    def _query(self, location: Path, query: str) -> pa.Table:
        found = QueryBuilder().register("t", DeltaTable(str(location))).execute(query)
        return pa.table(found.read_all())


class DeltaRsWriter:
    """deltalake as a writer; it can hold a table as it was read, and change it later from that state."""

    offers = EVERYTHING

    def __init__(self, name: str = "deltalake", compression: str = "SNAPPY") -> None:
        self.name = name
        self._properties = WriterProperties(compression=compression)
        self._held: DeltaTable | None = None

    def create(self, case: Case, location: Path) -> None:
        write_deltalake(
            str(location),
            case.arrow(()),
            partition_by=list(case.partition_by) or None,
            configuration=case.properties or None,
        )

    def append(self, case: Case, location: Path, keys: tuple[int, ...]) -> None:
        write_deltalake(str(location), case.arrow(keys), mode="append", writer_properties=self._properties)

    def hold(self, case: Case, location: Path) -> None:
        """Read the table now; the next operation works on what was read."""
        self._held = DeltaTable(str(location))

    def perform(self, operation: Operation, case: Case, location: Path) -> None:  # noqa: C901 - one arm each
        table, self._held = self._held or DeltaTable(str(location)), None
        match operation:
            case Append():
                write_deltalake(table, case.arrow(operation.keys(case)), mode="append")
            case Delete():
                table.delete(_among(operation.keys(case)))
            case Update():
                table.update(predicate=_among(operation.keys(case)), updates={NOTE: f"concat({NOTE}, '{MARK}')"})
            case Merge():
                _merge(table, operation, case)
            case Overwrite():
                _overwrite(table, operation, case)
            case AddColumn():
                table.alter.add_columns(_field(operation.column))
            case Restore():
                table.restore(operation.version)
            case Vacuum():
                table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
            case Optimize():
                table.optimize.compact()
            case Checkpoint():
                table.create_checkpoint()
            case _:
                raise NotOfferedError(f"{operation.name} is not an operation of deltalake")


def _among(keys: tuple[int, ...]) -> str:
    return f"{KEY} IN ({', '.join(map(str, keys))})"


def _field(name: str) -> Any:
    from deltalake.schema import Field, PrimitiveType

    return Field(name, PrimitiveType("string"), nullable=True)


def _merge(table: DeltaTable, operation: Merge, case: Case) -> None:
    keys = (*operation.matched(case), *operation.inserted(case))
    source = case.arrow(keys, **{NOTE: lambda key: f"note {key}{MARK}"})
    names = [column.name for column in case.all_columns if column.written]
    merger = table.merge(source, f"t.{KEY} = s.{KEY}", source_alias="s", target_alias="t")
    merger.when_matched_update({NOTE: f"s.{NOTE}"}).when_not_matched_insert(
        {f'"{name}"': f's."{name}"' for name in names}
    ).execute()


def _overwrite(table: DeltaTable, operation: Overwrite, case: Case) -> None:
    rows = case.arrow((operation.key(case),))
    if case.partition_by:
        predicate = DATAFUSION.equality(case, operation.values(case))
        write_deltalake(table, rows, mode="overwrite", predicate=predicate)
    else:
        write_deltalake(table, rows, mode="overwrite")
