"""An Iceberg table of small files, with as many files of positions and of keys that delete rows, made once from a seed.

Its commits are those of a stream: each adds data files, files that delete rows of these by position, and files that
delete rows of older commits by key. No JVM takes part.
"""

import os
import random
import shutil
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DATA_FILE_TYPE, DataFileContent
from pyiceberg.types import IntegerType, ListType, NestedField, StructType

from tests.support.duckdb_extensions import iceberg_connection
from tests.support.iceberg_folder import IcebergFolder, Written
from tests.support.iceberg_foreign import POSITION_FIELDS, field

COMMITS = 10
ROW_BYTES = 20
"""Of a row of these columns in a compressed file."""
SMALL_ROWS, DELETED_ROWS = 2_000, 20
"""Rows of a data file that has deletes, and of each file that deletes."""
TEXT_BYTES = 16
IDS = {"id": 1, "dt": 2, "ts": 3, "country": 4}
KINDS = {"dt": pa.date32(), "ts": pa.timestamp("us"), "country": pa.string(), "file_path": pa.string()}
"""Types of the columns that hold no numbers."""
_COLUMNS = f"count(*), sum(hash({', '.join(IDS)}))"

Rows = tuple[int, int]
"""Number of rows, and sum of their hashes."""


@dataclass(frozen=True, slots=True)
class Case:
    """Files of each kind; `rows`: of each data file."""

    data: int
    positions: int
    keys: int
    rows: int

    @property
    def has_deletes(self) -> bool:
        return bool(self.positions or self.keys)

    def smaller(self, files: int) -> "Case":
        """Return the same with at most so many files of each kind."""
        return Case(min(files, self.data), min(files, self.positions), min(files, self.keys), self.rows)


def case_of(text: str, file_bytes: int) -> Case:
    """Return the case `174`, of data files of a size alone, or `200+200+200`, with deletes by position and by key."""
    data, positions, keys = (int(count) for count in f"{text}+0+0".split("+")[:3])
    return Case(data, positions, keys, SMALL_ROWS if positions or keys else file_bytes // ROW_BYTES)


def make(path: Path, case: Case, seed: int) -> Rows:
    """Make a table, and return the rows that it has, as a join of its files finds them without any Iceberg."""
    table, draw = IcebergFolder(path), random.Random(seed)
    table.create(f"00000000-0000-0000-0000-{seed:012}")
    (path / "data").mkdir()
    commits = min(COMMITS, case.data)
    with _keys_that_java_reads():
        for commit in range(commits):
            numbers = range(case.data * commit // commits, case.data * (commit + 1) // commits)
            table.commit([file for number in numbers for file in files_of(path / "data", case, commit, number, draw)])
    return joined(path / "data", case)


@contextmanager
def _keys_that_java_reads() -> Iterator[None]:
    """Have pyiceberg write the ids of keys as `int`, as specified: Java fails for its `long`."""
    ids = NestedField(135, "equality_ids", ListType(136, IntegerType(), element_required=True))
    theirs = DATA_FILE_TYPE[2]
    fields = (ids if one.field_id == ids.field_id else one for one in theirs.fields)
    DATA_FILE_TYPE[2] = StructType(*fields)
    try:
        yield
    finally:
        DATA_FILE_TYPE[2] = theirs


def files_of(folder: Path, case: Case, commit: int, number: int, draw: random.Random) -> list[Written]:
    """Write a data file, with `id` rising from file to file, and its deletes, if the case has as many."""
    data, places, keys = (folder / f"commit-{commit}-{kind}-{number}.parquet" for kind in ("data", "places", "keys"))
    first, after = number * case.rows, (number + 1) * case.rows
    _write(data, [pa.array(range(first, after)), *_random(draw, case.rows)], IDS)
    made = [_described(data, DataFileContent.DATA, rows=case.rows, bounds=_bounds(first, after - 1))]
    if number < case.positions:
        _write(places, [[data.as_uri()] * DELETED_ROWS, _some(draw, case.rows)], POSITION_FIELDS)
        more = {"rows": DELETED_ROWS, "referenced": data.as_uri()}
        made.append(_described(places, DataFileContent.POSITION_DELETES, **more))
    if number < case.keys:
        found = _some(draw, after)
        _write(keys, [found], {"id": IDS["id"]})
        bounds = _bounds(found[0], found[-1])
        made.append(_described(keys, DataFileContent.EQUALITY_DELETES, rows=len(found), bounds=bounds))
    return made


def _write(path: Path, columns: Sequence[Any], ids: Mapping[str, int]) -> None:
    """Write a file as Java does, which leaves columns of unique values without dictionaries."""
    schema = pa.schema([field(name, KINDS.get(name, pa.int64()), ids) for name in ids])
    rows = pa.Table.from_arrays([pa.array(one) for one in columns], schema=schema)
    pq.write_table(rows, path, compression="zstd", use_dictionary=False)


def _described(path: Path, content: DataFileContent, **more: Any) -> Written:
    return Written(path.as_uri(), path.stat().st_size, 0, (), content, **more)


def _bounds(low: int, high: int) -> dict[int, tuple[bytes, bytes]]:
    return {IDS["id"]: (struct.pack("<q", low), struct.pack("<q", high))}


def _some(draw: random.Random, among: int) -> list[int]:
    return sorted(draw.sample(range(among), min(among, DELETED_ROWS)))


def _random(draw: random.Random, rows: int) -> list[pa.Array]:
    """Return days, times and texts that hardly repeat."""
    days = _whole_numbers(draw, rows, pa.int32(), 2**14)
    times = _whole_numbers(draw, rows, pa.int64(), 2**50)
    ends = array("i", range(0, TEXT_BYTES * (rows + 1), TEXT_BYTES))
    digits = draw.randbytes(TEXT_BYTES // 2 * rows).hex().encode()
    texts = pa.Array.from_buffers(pa.utf8(), rows, [None, pa.py_buffer(ends), pa.py_buffer(digits)])
    return [days.cast(KINDS["dt"]), times.cast(KINDS["ts"]), texts]


def _whole_numbers(draw: random.Random, rows: int, kind: pa.DataType, below: int) -> pa.Array:
    """Return numbers from zero on, below a power of two."""
    drawn = pa.py_buffer(draw.randbytes(kind.bit_width // 8 * rows))
    return pc.bit_wise_and(pa.Array.from_buffers(kind, rows, [None, drawn]), pa.scalar(below - 1, kind))


def joined(folder: Path, case: Case) -> Rows:
    """Return the rows of the files, less those that are deleted by position, or by key in a later commit."""
    commit = "CAST(regexp_extract(filename, 'commit-([0-9]+)-', 1) AS INT)"
    data = f"read_parquet('{folder}/*-data-*.parquet', file_row_number = true)"
    text = f"SELECT {_COLUMNS} FROM (SELECT *, filename, {commit} AS commit FROM {data}) d"
    if case.positions:
        places = f"read_parquet('{folder}/*-places-*.parquet')"
        text += f" ANTI JOIN {places} p ON p.file_path = 'file://' || d.filename AND p.pos = d.file_row_number"
    if case.keys:
        keys = f"SELECT id, max({commit}) AS last FROM read_parquet('{folder}/*-keys-*.parquet') GROUP BY id"
        text += f" LEFT JOIN ({keys}) k USING (id) WHERE k.last IS NULL OR k.last <= d.commit"
    with iceberg_connection() as connection:
        return _only_row(connection, text)


def read(path: Path) -> tuple[Rows, int, int]:
    """Return the rows of a table as DuckDB reads them, with its data files and its delete files."""
    newest = max((path / "metadata").glob("v*.metadata.json"), key=lambda file: int(file.name[1:].partition(".")[0]))
    with iceberg_connection() as connection:
        rows = _only_row(connection, f"SELECT {_COLUMNS} FROM iceberg_scan('{newest}')")
        live = f"FROM iceberg_metadata('{newest}') WHERE status <> 'DELETED'"
        files = f"SELECT count(*) FILTER (manifest_content = 'DATA'), count(*) {live}"
        data, every = _only_row(connection, files)
    return rows, data, every - data


def _only_row(connection: duckdb.DuckDBPyConnection, text: str) -> Rows:
    ((first, second),) = connection.execute(text).fetchall()
    return int(first), int(second)


def copied(folder: Path, to: Path) -> None:
    """Copy a warehouse: data files by hard links, for nothing changes them, and metadata as bytes."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> None:
    (os.link if source.endswith(".parquet") else shutil.copy2)(source, target)
