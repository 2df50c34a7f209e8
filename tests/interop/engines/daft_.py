"""Daft: its own Parquet reader and writer, with the log read and written by the deltalake beside it."""

from pathlib import Path

import daft
import pyarrow as pa

from tests.interop.engines.protocol import NotOfferedError, Predicate
from tests.interop.operations import Append, Operation, Overwrite
from tests.interop.table_case import KEY, Case
from tests.interop.values import Rows, rows_of

_COMPARE = {"=": "__eq__", "<": "__lt__", ">": "__gt__", ">=": "__ge__"}


class DaftReader:
    """daft.read_deltalake."""

    name = "daft"

    def rows(self, location: Path, case: Case) -> Rows:
        return rows_of(daft.read_deltalake(str(location)).to_arrow())

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        kind = case.column(predicate.column).arrow
        wanted = daft.lit(pa.scalar(predicate.value, kind).as_py())
        condition = getattr(daft.col(predicate.column), _COMPARE[predicate.op])(wanted)
        found = daft.read_deltalake(str(location)).where(condition).select(KEY).to_arrow()
        return tuple(sorted(found.column(KEY).to_pylist()))

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        raise NotOfferedError("the laboratory does not ask it")


class DaftWriter:
    """DataFrame.write_deltalake."""

    name = "daft"
    offers = frozenset({Append.name, Overwrite.name})

    def create(self, case: Case, location: Path) -> None:
        raise NotOfferedError("its tables are deltalake's")

    def append(self, case: Case, location: Path, keys: tuple[int, ...]) -> None:
        frame = daft.from_arrow(case.arrow(keys))
        frame.write_deltalake(str(location), mode="append", partition_cols=list(case.partition_by) or None)

    def perform(self, operation: Operation, case: Case, location: Path) -> None:
        match operation:
            case Append():
                self.append(case, location, tuple(operation.keys(case)))
            case Overwrite() if not case.partition_by:
                daft.from_arrow(case.arrow((operation.key(case),))).write_deltalake(str(location), mode="overwrite")
            case _:
                raise NotOfferedError("it appends and overwrites whole tables")
