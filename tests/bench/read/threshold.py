"""How large row groups have to be: the same rows in the same number of files, in row groups of several sizes.

A file of copied row groups is like a file that was written with row groups of that size, so it is written so. The knee
of a reader is the smallest size from which it needs at most a twentieth more than for the best size.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler

from shared.policy.policy import KIB
from tests.bench.delta.table import PlayedTable
from tests.bench.read.measuring import Times
from tests.bench.read.readers import Query
from tests.bench.read.rows import RowKind
from tests.bench.read.stream import add_action, bytes_per_row, statistics, write_file
from tests.bench.read.table import delta_columns

TOLERANCE = 0.05
"""What a reader may need more than for the best size."""

SIZES_KIB = (64, 256, 1024, 4096, 16384, 65536)
FILES = 2
"""Of each table: as many as the cores that the benchmark expects, so that one row group for each file is no loss."""

ACCOUNTS = 1 << 32
DICTIONARIES = ["kind"]
"""Few values of other columns occur twice, and they have no dictionary: so the bytes are the same at each size."""

_DAY = "2026-01-01"


@dataclass(frozen=True, slots=True)
class ThresholdSpec:
    """Tables of about `table_bytes` in `FILES` files; `row_group_bytes` are the sizes that are compared."""

    row_group_bytes: tuple[int, ...]
    table_bytes: int
    extra_columns: int = 0

    @property
    def kind(self) -> RowKind:
        """The rows of these tables."""
        return RowKind(self.extra_columns, ACCOUNTS)


@dataclass(frozen=True, slots=True)
class SizedTable:
    """One table: its path, rows, and mean size of its row groups as requested."""

    path: Path
    rows: int
    row_group_bytes: int


def make_tables(spec: ThresholdSpec, folder: Path, *, seed: int) -> list[SizedTable]:
    """Write a table for each size."""
    kind = spec.kind
    folder.mkdir(parents=True)
    per_row = bytes_per_row(kind, folder, dictionaries=DICTIONARIES)
    per_file = int(spec.table_bytes / FILES / per_row)
    tables = {
        size: PlayedTable(folder / f"{size // KIB}-kib", {}, delta_columns(kind)) for size in spec.row_group_bytes
    }
    for number in range(FILES):
        rows = kind.rows(number * per_file, per_file, seed=seed)
        stats, path = statistics(rows), f"day={_DAY}/part-{number}.parquet"
        for size, table in tables.items():
            in_group = rows_per_group(per_file, per_row, size)
            written = write_file(table.path / path, rows, rows_per_group=in_group, dictionaries=DICTIONARIES)
            table.commit([{"add": add_action(path, written, stats, {"day": _DAY})}])
    return [SizedTable(table.path, FILES * per_file, size) for size, table in tables.items()]


def rows_per_group(rows: int, per_row: float, size: int) -> int:
    """Return the rows of a row group, so that all of a file have equally many, and about `size` bytes."""
    groups = max(1, round(rows * per_row / size))
    return -(-rows // groups)


def knee(ms_by_size: Mapping[int, float], tolerance: float = TOLERANCE) -> int:
    """Return the smallest size from which on, up to the best one, no size takes more than the tolerance longer."""
    best = min(ms_by_size, key=lambda size: (ms_by_size[size], size))
    found = best
    for size in sorted((size for size in ms_by_size if size <= best), reverse=True):
        if ms_by_size[size] > ms_by_size[best] * (1 + tolerance):
            return found
        found = size
    return found


def relative(times: Times, sizes: Mapping[str, int], *, cpu: bool) -> dict[tuple[str, str], dict[int, float]]:
    """Return, by reader and question, the time (or CPU time) for each size over that for the best."""
    found = {}
    for key, by_table in times.items():
        if cpu:
            ratios = {sizes[name]: max(timed.mean_cpu_ms, 0.01) for name, timed in by_table.items()}
        else:  # Of paired rounds.
            best = min(by_table, key=lambda name: by_table[name].median_ms)
            ratios = {sizes[name]: timed.ratio(by_table[best]) for name, timed in by_table.items()}
        found[key] = {size: ratio / min(ratios.values()) for size, ratio in ratios.items()}
    return found


class _CountedFile:
    """An open file of a store, which notes every request."""

    def __init__(self, opened: Any, note: Any) -> None:
        self._opened, self._note = opened, note

    def read(self, nbytes: int = -1) -> bytes:
        data: bytes = self._opened.read(nbytes)
        self._note(len(data))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)


class CountingStore(DeltaStorageHandler):
    """deltalake's own access to a table, which counts the requests that pyarrow makes of it."""

    def open_input_file(self, path: str) -> pa.PythonFile:
        return pa.PythonFile(_CountedFile(self._handler.open_input_file(path), self._note), mode="r")

    def count(self) -> "CountingStore":
        """Start to count."""
        self.sizes: list[int] = []
        self._lock = threading.Lock()
        return self

    def _note(self, size: int) -> None:
        with self._lock:
            self.sizes.append(size)


def requests(table: Path, asked: Sequence[Query]) -> dict[str, int]:
    """Return how many requests pyarrow makes of a store for each question, footers included."""
    opened = DeltaTable(str(table))
    found = {}
    for query in asked:
        store = CountingStore.from_table(opened._table, None, None).count()
        data: Any = opened.to_pyarrow_dataset(filesystem=pyarrow.fs.PyFileSystem(store))
        data.to_table(columns=list(query.columns), filter=query.condition)
        found[query.name] = len(store.sizes)
    return found
