"""Samples rows of a Delta table's files: some columns of one row group in each of some files, by ranged reads.

The command line reads them on the machine where it runs; a decider never reads data. Deleted rows are sampled, too, and
files outside the table's folder are not: a sample needs neither to be exact.
"""

import io
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.exceptions import BaseError

from decider.formats.table_format import TableReader
from decider.storage.stores import ObjectStores, RootedStore
from decider.whatif.recorded_filters import RecordedFilter, named_columns
from decider.whatif.sort_advice import (
    MAX_CANDIDATES,
    KeyedFiles,
    Row,
    RowSample,
    SampledPartition,
    advise,
    describe_order,
)
from decider.whatif.trace_reader import TableTrace, comparable_columns
from shared.errors import Corrupt, Unsupported
from shared.layout.key_values import key_range
from shared.paths.locations import catalog_name
from shared.table import DataFile, PartitionColumn, PartitionKey

MAX_FILES = 64
"""Files that are sampled, at even distances in the order of the log."""

ROWS_PER_FILE = 2_000
"""Rows of each, at even distances in a row group."""


async def advise_order(
    log: TableReader, table: TableTrace, stores: ObjectStores, filters: Sequence[RecordedFilter], target_bytes: int
) -> dict[str, Any]:
    """Return which order recorded filters argue for, as plain values; raises what reading log and files raises."""
    if catalog_name(table.location) is not None:
        raise Unsupported(
            f"{table.location}: rows are sampled only of tables that are named by their location; give the location of "
            "this one's files",
            field="location",
        )
    keyed, left_out = await comparable_columns(log, table, named_columns(tuple(filters))[:MAX_CANDIDATES])
    sample = sample_rows(stores.open(table.location), keyed)
    advice = advise(sample, keyed, filters, target_bytes)
    return describe_order(advice, sample, len(filters), left_out)


def sample_rows(store: RootedStore, keyed: Sequence[KeyedFiles]) -> RowSample:
    """Return rows of some live files with these columns; raises Corrupt for a file that is not there or not Parquet."""
    columns = tuple(one.column for one in keyed)
    files = keyed[0].files if keyed else ()
    near = [file for file in files if ":" not in file.path and not file.path.startswith("/")]
    count = min(MAX_FILES, len(near))
    rows: defaultdict[PartitionKey, list[Row]] = defaultdict(list)
    for number in range(count):
        file = near[number * len(near) // count]
        rows[file.partition] += _rows(store, file, columns, number)
    sizes: defaultdict[PartitionKey, int] = defaultdict(int)
    for file in files:
        sizes[file.partition] += file.size_bytes
    return RowSample(columns, tuple(SampledPartition(sizes[one], tuple(own)) for one, own in rows.items()))


class _StoredFile(io.RawIOBase):
    """A stored file as Arrow reads files: of the client's own it misses `closed`."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return int(self._opened.seek(offset, whence))

    def readinto(self, buffer: Any, /) -> int:
        read = memoryview(self._opened.read(len(buffer)))
        buffer[: len(read)] = read
        return len(read)


def _rows(store: RootedStore, file: DataFile, columns: Sequence[PartitionColumn], number: int) -> list[Row]:
    """Return rows of one row group, another one in each file."""
    key = store.key(unquote(file.path))
    try:
        parquet = pq.ParquetFile(_StoredFile(obstore.open_reader(store.client, key)))
        if not parquet.num_row_groups:
            return []
        there = set(parquet.schema_arrow.names)
        wanted = [column.physical for column in columns if column.physical in there]
        read = parquet.read_row_group(number % parquet.num_row_groups, columns=wanted)
    except (BaseError, OSError, pa.ArrowException) as problem:
        first_line = str(problem).split("\n", 1)[0]
        raise Corrupt(f"the rows of {file.path} cannot be sampled: {first_line}") from problem
    kept = read.take(list(range(0, read.num_rows, -(-read.num_rows // ROWS_PER_FILE) or 1)))
    values = [
        [_number(value, column.type) for value in kept[column.physical].to_pylist()]
        if column.physical in there
        else [None] * kept.num_rows
        for column in columns
    ]
    return list(zip(*values, strict=True))


def _number(value: Any, type_name: str) -> int | None:
    """Return a value as the number by which the bounds in a log are compared; None for null and NaN."""
    if isinstance(value, (date, datetime)):
        value = value.isoformat()
    elif isinstance(value, Decimal):
        value = str(value)
    found = key_range(value, value, type_name)
    return None if found is None else found[0]
