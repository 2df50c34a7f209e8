"""Groups to proofread, of files that pyarrow writes, read in this process: what is tested is the reading."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from actor.proofread.model import Field, FoundBy, ProofFile, Rewritten
from actor.proofread.process import answer
from actor.proofread.task import Answer, Task, Work


def stored(path: Path, table: pa.Table, **options: Any) -> ProofFile:
    """Write a file."""
    pq.write_table(table, path, **options)
    return ProofFile(str(path), path.stat().st_size, table.num_rows)


def one_column(kind: str, type_: pa.DataType, values: Sequence[Any], *, id_: int = 1) -> tuple[Field, pa.Table]:
    """Return a column `c` with values."""
    field = pa.field("c", type_, metadata={"PARQUET:field_id": str(id_)})
    return Field("c", kind, id_), pa.table([pa.array(values, type_)], schema=pa.schema([field]))


def group_of(
    columns: Iterable[Field],
    inputs: Iterable[ProofFile],
    outputs: Iterable[ProofFile],
    found_by: FoundBy = FoundBy.NAME,
    *,
    copied: bool = False,
    table: str = "/t",
) -> Rewritten:
    """Return a group."""
    return Rewritten(table, "", tuple(columns), found_by, tuple(inputs), tuple(outputs), copied=copied)


def read(connection: duckdb.DuckDBPyConnection, group: Rewritten, work: Work = Work.ROWS) -> Answer:
    """Return what a reader answers."""
    return answer(connection, Task(work, group, 256))
