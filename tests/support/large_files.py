"""A table whose rewrite takes long enough to be interrupted, although it takes little room."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support import delta_tables as tables

_ROWS = 2**19


def large_table(path: Path, *, files: int) -> tables.HandTable:
    """Make a table of files of 32 MiB, which share their bytes on disk."""
    table = tables.HandTable(path)
    add = table.new_file(1, {})
    rows = pa.table({"id": range(_ROWS), "v": ["x" * 56] * _ROWS, "x": pa.array([1] * _ROWS, pa.int32())})
    options = {"compression": "none", "use_dictionary": False, "data_page_size": 1 << 16}
    first = path / add["path"]
    pq.write_table(rows, first, **options)
    stats = json.dumps({"numRecords": _ROWS})
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
