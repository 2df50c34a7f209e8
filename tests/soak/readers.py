"""Readers of a table at a pinned version, each of which must find the rows that the model expects.

Spark reads in the process of its writer: see `spark_writer`. A filter on `at` makes a reader use statistics.
"""

from collections.abc import Callable, Mapping

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

from tests.soak.deletion_vectors import deleted_rows
from tests.soak.log import TableLog
from tests.soak.tables import TableSpec
from tests.soak.values import ARROW, Kind, Row, from_arrow, from_log, literal_for_datafusion

Reader = Callable[[TableSpec, TableLog, int | None], list[Row]]
"""Reads the table at the version that its log was read to; the number: only rows whose `at` is at least this."""


def by_pyarrow(spec: TableSpec, log: TableLog, since: int | None) -> list[Row]:
    """Deltalake's own snapshot, with pyarrow reading the files."""
    table = DeltaTable(log.folder.as_uri(), version=log.version)
    wanted = None if since is None else pc.field("at") >= pa.scalar(since, pa.int64()).cast(ARROW[Kind.TIMESTAMP])
    return _rows(spec, table.to_pyarrow_dataset().to_table(filter=wanted))


def by_datafusion(spec: TableSpec, log: TableLog, since: int | None) -> list[Row]:
    """Deltalake with DataFusion, which knows column mapping and deletion vectors, too."""
    table = DeltaTable(log.folder.as_uri(), version=log.version)
    where = "" if since is None else f" where at >= {literal_for_datafusion(Kind.TIMESTAMP, since)}"
    return _rows(spec, pa.table(QueryBuilder().register("t", table).execute(f"select * from t{where}").read_all()))


def by_duckdb(spec: TableSpec, log: TableLog, since: int | None) -> list[Row]:
    """DuckDB over the live files of our plain replay: nothing of Delta's, and no statistics of its log."""
    if not log.live:
        return []
    by_path = {str(log.folder / live.path): live for live in log.live.values()}
    assert len(by_path) == len(log.live), "one file is live twice"
    source = duckdb.connect().from_parquet(
        list(by_path), filename=True, file_row_number=True, union_by_name=True, hive_partitioning=False
    )
    there = {name: physical for name, physical in log.columns.items() if physical in source.columns}
    columns = ", ".join(_for_duckdb(spec.kind(name), physical) for name, physical in there.items())
    wanted = source if since is None else source.filter(f'epoch_us("{log.columns["at"]}") >= {since}')
    found = wanted.project(f"filename, file_row_number, {columns}").fetchall()
    hidden = {path: deleted_rows(log.folder, live.add.get("deletionVector")) for path, live in by_path.items()}
    rows: list[Row] = []
    for path, position, *values in found:
        if position in hidden[path]:
            continue
        partition: Mapping[str, str | None] = by_path[path].add["partitionValues"]
        typed = {name: from_log(kind, partition[log.columns[name]]) for name, kind in spec.by.items()}
        rows.append(dict(zip(there, values, strict=True)) | typed)
    return rows


def _for_duckdb(kind: Kind, physical: str) -> str:
    return f'epoch_us("{physical}")' if kind is Kind.TIMESTAMP else f'"{physical}"'


def _rows(spec: TableSpec, table: pa.Table) -> list[Row]:
    columns = {name: from_arrow(spec.kind(name), table.column(name)) for name in table.column_names}
    for name in spec.by:
        columns[name] = [None if value == "" else value for value in columns[name]]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def readers_of(spec: TableSpec) -> dict[str, Reader]:
    """Return the readers that can read this table at all: pyarrow's dataset knows neither mapping nor vectors."""
    both: dict[str, Reader] = {"deltalake (DataFusion)": by_datafusion, "DuckDB": by_duckdb}
    return {"deltalake (pyarrow)": by_pyarrow, **both} if spec.deltalake else both
