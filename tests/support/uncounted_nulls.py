"""Parquet files of writers that note bounds and no number of nulls, which none of our libraries writes."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

NULLS = 7
"""Nulls of each column whose number the footer then lacks."""

_COUNT = re.compile(rb"([\x16\x36])" + bytes([2 * NULLS]) + rb"\x28")
"""The number of nulls (field 3) of statistics in Thrift's compact form, and the head of the greatest value (5)."""


def write_uncounted(rows: pa.Table, path: Path) -> None:
    """Write rows; of columns with `NULLS` nulls, the footer has a number of distinct values (field 4) instead."""
    pq.write_table(rows, path, compression="zstd", store_schema=False)
    body = path.read_bytes()
    start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    footer = _COUNT.sub(lambda found: bytes([found[1][0] + 0x10, 2 * NULLS, 0x18]), body[start:])
    path.write_bytes(body[:start] + footer)
    columns = pq.read_metadata(path).row_group(0)
    for number, name in enumerate(rows.column_names):
        statistics = columns.column(number).statistics
        assert statistics.has_min_max
        assert statistics.has_null_count is (rows[name].null_count != NULLS), name
