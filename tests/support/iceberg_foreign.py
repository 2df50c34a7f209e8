"""Files of other writers in tables of an `IcebergLab`: written by pyarrow, and added as they are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import EqualTo
from pyiceberg.table import StaticTable

from tests.iceberg_stress.readers import _DuckDb
from tests.support.iceberg_lab import IcebergLab

POSITION_FIELDS = {"file_path": 2147483546, "pos": 2147483545}
"""Ids of the columns of a file of positions, as Iceberg's specification reserves them."""


class ForeignWriter:
    """Adds files to one table."""

    def __init__(self, ice: IcebergLab, table: str) -> None:
        self._ice = ice
        self._resolve = ice.engine._scala.resolve
        self._written = 0
        self.java = ice.java(table)

    def add(
        self, rows: pa.Table, *, partition: str = "", size_more: int = 0, snapshot: bool = True, **options: Any
    ) -> Path:
        """Add rows as a data file, `size_more` bytes larger than it is."""
        path = self._write(rows, options)
        self.add_file(path, rows.num_rows, partition=partition, size_more=size_more)
        return path

    def add_file(self, path: Path, rows: int, *, partition: str = "", size_more: int = 0) -> None:
        """Add a Parquet file that was written otherwise."""
        self.java.refresh()
        builder = self._resolve("org.apache.iceberg.DataFiles").builder(self.java.spec())
        builder = self._described(builder, path, rows, size_more)
        builder = builder.withPartitionPath(partition) if partition else builder
        self.java.newAppend().appendFile(builder.build()).commit()

    def delete_values(self, rows: pa.Table, ids: Sequence[int], **options: Any) -> Path:
        """Delete rows by the values of the columns with these ids."""
        path = self._write(rows, options)
        self._delete(self._of_values(path, rows.num_rows, ids))
        return path

    def delete_places(self, places: Sequence[tuple[str, int]], *, with_ids: bool = True) -> Path:
        """Delete rows by path and position."""
        path = self._write_places(places, with_ids=with_ids)
        self._delete(self._of_places(path, len(places)))
        return path

    def upsert(self, rows: pa.Table, keys: pa.Table) -> None:
        """Add rows in one commit as a stream does, which deletes older rows with these keys, those of the first field.

        It has written the first row again, and deletes it by position.
        """
        path = self._write(rows, {})
        places = self._write_places([(path.as_uri(), 0)], with_ids=True)
        by_value = self._of_values(self._write(keys, {}), keys.num_rows, [1])
        by_place = self._of_places(places, 1)
        data = self._resolve("org.apache.iceberg.DataFiles").builder(self.java.spec())
        change = self.java.newRowDelta().addRows(self._described(data, path, rows.num_rows, 0).build())
        change.addDeletes(by_value).addDeletes(by_place).commit()

    def _write_places(self, places: Sequence[tuple[str, int]], *, with_ids: bool) -> Path:
        ids = POSITION_FIELDS if with_ids else {}
        schema = pa.schema([field("file_path", pa.string(), ids), field("pos", pa.int64(), ids)])
        return self._write(pa.Table.from_pylist([{"file_path": path, "pos": at} for path, at in places], schema), {})

    def _of_places(self, path: Path, rows: int) -> Any:
        return self._described(self._deletes().ofPositionDeletes(), path, rows, 0).build()

    def _of_values(self, path: Path, rows: int, ids: Sequence[int]) -> Any:
        keys = self._ice.engine._scala._gateway.new_array(self._resolve("int"), len(ids))
        for place, one in enumerate(ids):
            keys[place] = one
        return self._described(self._deletes().ofEqualityDeletes(keys), path, rows, 0).build()

    def _deletes(self) -> Any:
        self.java.refresh()
        return self._resolve("org.apache.iceberg.FileMetadata").deleteFileBuilder(self.java.spec())

    def _delete(self, deletes: Any) -> None:
        self.java.newRowDelta().addDeletes(deletes).commit()

    def _described(self, builder: Any, path: Path, rows: int, size_more: int) -> Any:
        described = builder.withPath(path.as_uri()).withFormat("PARQUET").withRecordCount(rows)
        return described.withFileSizeInBytes(path.stat().st_size + size_more)

    def _write(self, rows: pa.Table, options: Mapping[str, Any]) -> Path:
        self._written += 1
        folder = Path(str(self.java.location()).removeprefix("file:")) / "data"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"foreign-{self._written}.parquet"
        pq.write_table(rows, path, **options)
        return path


def field(name: str, kind: pa.DataType, ids: Mapping[str, int], *, nullable: bool = True) -> pa.Field:
    """Return a field with its id, without one if the ids do not name it."""
    metadata = {b"PARQUET:field_id": str(ids[name]).encode()} if name in ids else None
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def read_by_others(ice: IcebergLab, table: str) -> dict[str, list[str]]:
    """Return the rows as each reader sees them that is not ours, sorted, as text; its error for what it cannot read."""
    newest = str(ice.java(table).operations().current().metadataFileLocation())
    scans: dict[str, Callable[[], Iterable[Any]]] = {
        "pyiceberg": lambda: StaticTable.from_metadata(newest).scan().to_arrow().to_pylist(),
        "duckdb": lambda: _DuckDb()._connection.sql(f"FROM iceberg_scan('{newest}')").fetchall(),
    }
    return {name: _rows_or_error(scan) for name, scan in scans.items()}


def hidden_values(ice: IcebergLab, table: str, column: str) -> list[Any]:
    """Return the stored values of a column for which the bounds in manifests leave out every file."""
    found = StaticTable.from_metadata(str(ice.java(table).operations().current().metadataFileLocation()))
    values = found.scan(selected_fields=(column,)).to_arrow()[column].drop_null().to_pylist()
    return [one for one in values if not list(found.scan(row_filter=EqualTo(term=column, value=one)).plan_files())]


def stored_rows(ice: IcebergLab, table: str) -> list[str]:
    """Return the rows of the live data files, sorted, as pyarrow finds them there: no reader of tables decides."""
    files = [row[0] for row in ice.sql(f"SELECT file_path FROM {table}.data_files").collect()]
    rows = (row for path in files for row in pq.read_table(path.removeprefix("file:")).to_pylist())
    return sorted(repr(tuple(row.values())) for row in rows)


def _rows_or_error(scan: Callable[[], Iterable[Any]]) -> list[str]:
    try:
        return sorted(repr(tuple(row.values()) if isinstance(row, dict) else tuple(row)) for row in scan())
    except Exception as error:  # noqa: BLE001 - what a reader cannot read is compared, too
        return [f"{type(error).__name__}: {str(error)[:300]}"]
