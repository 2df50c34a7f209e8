"""Polars: its own Parquet reader over the live files that deltalake lists, and its writer, which is deltalake's."""

from pathlib import Path

import polars as pl
import pyarrow as pa

from tests.interop.engines.protocol import NotOfferedError, Predicate
from tests.interop.operations import Append, Operation, Overwrite
from tests.interop.table_case import KEY, Case
from tests.interop.values import Rows, rows_of

_COMPARE = {"=": "__eq__", "<": "__lt__", ">": "__gt__", ">=": "__ge__"}


class PolarsReader:
    """Polars' scan_delta."""

    name = "polars"

    def rows(self, location: Path, case: Case) -> Rows:
        return rows_of(self._scan(location).collect().to_arrow())

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        wanted = pl.from_arrow(pa.array([predicate.value], case.column(predicate.column).arrow))
        condition = getattr(pl.col(predicate.column), _COMPARE[predicate.op])(pl.lit(wanted).first())
        found = self._scan(location).filter(condition).select(KEY).collect()
        return tuple(sorted(found.get_column(KEY).to_list()))

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        raise NotOfferedError("it does not tell how many files a query reads")

    def _scan(self, location: Path) -> pl.LazyFrame:
        return pl.scan_delta(str(location))


class PolarsWriter:
    """Polars' write_delta."""

    name = "polars"
    offers = frozenset({Append.name, Overwrite.name})

    def create(self, case: Case, location: Path) -> None:
        raise NotOfferedError("its tables are deltalake's")

    def append(self, case: Case, location: Path, keys: tuple[int, ...]) -> None:
        pl.from_arrow(case.arrow(keys)).write_delta(str(location), mode="append")

    def perform(self, operation: Operation, case: Case, location: Path) -> None:
        match operation:
            case Append():
                self.append(case, location, tuple(operation.keys(case)))
            case Overwrite() if not case.partition_by:
                pl.from_arrow(case.arrow((operation.key(case),))).write_delta(str(location), mode="overwrite")
            case _:
                raise NotOfferedError("it appends and overwrites whole tables")
