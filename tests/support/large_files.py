"""A table whose rewrite takes long enough to be interrupted, although it takes little room."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support import delta_tables as tables

_ROWS = 2**19


def large_table(
    path: Path, *, files: int, rows_of_file: int = _ROWS, configuration: Mapping[str, str] | None = None
) -> tables.HandTable:
    """Make a table of files that share their bytes on disk, by default of 32 MiB each."""
    table = tables.HandTable(path, configuration=configuration or {})
    add = table.new_file(1, {})
    columns = {"id": range(rows_of_file), "v": ["x" * 56] * rows_of_file, "x": pa.array([1] * rows_of_file, pa.int32())}
    rows = pa.table(columns)
    options = {"compression": "none", "use_dictionary": False, "data_page_size": 1 << 16}
    first = path / add["path"]
    pq.write_table(rows, first, **options)
    stats = json.dumps({"numRecords": rows_of_file})
    adds = []
    for number in range(files):
        os.link(first, path / f"{number}.parquet")
        named = {"path": f"{number}.parquet", "size": first.stat().st_size, "stats": stats}
        adds.append({"add": add | named})
    first.unlink()
    table.commit(adds)
    return table


def everything(path: Path) -> set[str]:
    """All files of a table outside of its log, hidden ones and checksums included."""
    return {
        str(file.relative_to(path)) for file in path.rglob("*") if file.is_file() and "_delta_log" not in file.parts
    }
