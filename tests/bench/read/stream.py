"""Small commits, made once: one file each, which every rule's table gets by hard links, in the same commits."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shared.policy.policy import KIB
from shared.table import PartitionKey
from tests.bench.read.rows import rows_from

SIGMA = 0.7
"""Of the lognormal distribution of the files' sizes: a twentieth of them are beyond three times the median."""

_SAMPLE_ROWS = 20_000
_FIRST_DAY = date(2026, 1, 1)
_WRITTEN_MS = 1_767_225_600_000


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A stream of commits: `days` partitions, one after another, with equally many commits.

    target_bytes: of the rules that compact. file_bytes: median size.
    """

    name: str
    title: str
    days: int
    commits: int
    file_bytes: int
    target_bytes: int


@dataclass(frozen=True, slots=True)
class SmallFile:
    """One commit: a data file below the stream's folder, and what the log says of it."""

    path: str
    day: str
    bytes: int
    rows: int
    stats: str

    @property
    def partition(self) -> PartitionKey:
        """Key of the partition that the file is in."""
        return partition_of(self.day)


@dataclass(frozen=True, slots=True)
class Stream:
    """All commits, and the folder of their files."""

    spec: StreamSpec
    folder: Path
    files: tuple[SmallFile, ...]

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self.files)

    def is_last_of_day(self, index: int) -> bool:
        """Return whether the partition of this commit gets no more: a stream of several days ends with a day."""
        if index + 1 == len(self.files):
            return self.spec.days > 1
        return self.files[index + 1].day != self.files[index].day


def partition_of(day: str) -> PartitionKey:
    """Return the key of a partition."""
    return PartitionKey(json.dumps({"day": day}, separators=(",", ":")))


def make_stream(spec: StreamSpec, folder: Path, *, seed: int) -> Stream:
    """Write the files of a stream below `folder`, one row group each, as small commits leave them."""
    dice, first = random.Random(seed), 0
    rows_per_file = spec.file_bytes / bytes_per_row(folder)
    made: list[SmallFile] = []
    for number in range(spec.commits):
        count = max(20, int(rows_per_file * dice.lognormvariate(0, SIGMA)))
        day = (_FIRST_DAY + timedelta(number * spec.days // spec.commits)).isoformat()
        path = f"day={day}/part-{number:06d}-{dice.randbytes(8).hex()}.snappy.parquet"
        rows = rows_from(first, count, seed=seed)
        size = write_file(folder / path, rows)
        made.append(SmallFile(path, day, size, count, statistics(rows)))
        first += count
    return Stream(spec, folder, tuple(made))


def bytes_per_row(folder: Path) -> float:
    """Return the bytes that a row takes in a file of one row group."""
    sample = folder / "sample.parquet"
    size = write_file(sample, rows_from(0, _SAMPLE_ROWS, seed=0))
    sample.unlink()
    return size / _SAMPLE_ROWS


def write_file(path: Path, rows: pa.Table) -> int:
    """Write one data file of one row group, and return its size in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, compression="snappy", row_group_size=rows.num_rows)
    return path.stat().st_size


def statistics(rows: pa.Table) -> str:
    """Return the statistics of an `add`: bounds of all columns."""
    bounds = {name: pc.min_max(rows.column(name)).as_py() for name in rows.column_names}
    stats = {
        "numRecords": rows.num_rows,
        "minValues": {name: found["min"] for name, found in bounds.items()},
        "maxValues": {name: found["max"] for name, found in bounds.items()},
        "nullCount": dict.fromkeys(rows.column_names, 0),
    }
    return json.dumps(stats, separators=(",", ":"))


def add_action(path: str, size: int, stats: str, partition_values: Mapping[str, str]) -> dict[str, Any]:
    """Return the `add` of a file."""
    return {
        "path": path,
        "partitionValues": dict(partition_values),
        "size": size,
        "modificationTime": _WRITTEN_MS,
        "dataChange": True,
        "stats": stats,
    }


def default_streams(commits: int, file_kib: int, target_kib: int) -> Sequence[StreamSpec]:
    """Return the two streams: partitions of several full files, and partitions that never fill one."""
    sizes = (commits, file_kib * KIB, target_kib * KIB)
    return (
        StreamSpec("large", "one partition, which still gets commits", 1, *sizes),
        StreamSpec("daily", "a partition a day, each below the size of a full file, all over", 12, *sizes),
    )
