"""The plug-in polars-deltalake: delta-kernel-rs reads the log, and Polars the files."""

from pathlib import Path

import polars as pl
import polars_deltalake
import pyarrow as pa

from tests.interop.engines.protocol import NotOfferedError, Predicate
from tests.interop.table_case import KEY, Case
from tests.interop.values import Rows, rows_of

_COMPARE = {"=": "__eq__", "<": "__lt__", ">": "__gt__", ">=": "__ge__"}


class PolarsKernelReader:
    """polars_deltalake.scan_delta."""

    name = "polars (delta-kernel-rs)"

    def rows(self, location: Path, case: Case) -> Rows:
        return rows_of(polars_deltalake.scan_delta(str(location)).collect().to_arrow())

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        wanted = pl.from_arrow(pa.array([predicate.value], case.column(predicate.column).arrow))
        condition = getattr(pl.col(predicate.column), _COMPARE[predicate.op])(pl.lit(wanted).first())
        found = polars_deltalake.scan_delta(str(location)).filter(condition).select(KEY).collect()
        return tuple(sorted(found.get_column(KEY).to_list()))

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        raise NotOfferedError("the laboratory does not ask it")
