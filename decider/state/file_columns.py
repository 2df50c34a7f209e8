"""Live files in columns: the files of a large table are counted by Arrow, without an object for each of them.

The result equals counting one by one, integer for integer. Sums that can leave 64 bits are taken of halves.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shared.layout.cells.tags import CELL_TAG
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.partition_count import PartitionCount, PartitionCounter
from shared.layout.partition_stats import CUBE_TAG
from shared.partition_refusals import file_id, live_ids
from shared.paths.data_paths import PLAIN_PATH, is_harmful
from shared.policy.policy import Policy, PortablePaths
from shared.table import DataFile, PartitionKey, Snapshot

COLUMNS = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("partition", pa.int64(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("modified_ms", pa.int64(), nullable=False),
        pa.field("is_idle_compacted", pa.bool_(), nullable=False),
        pa.field("is_cube", pa.bool_(), nullable=False),
        pa.field("is_cell", pa.bool_(), nullable=False),
        pa.field("generated_ms", pa.int64()),
    ]
)
"""A file without a deletion vector: its path as the log spells it, the number of its partition, its size, when it was
written, which of the tags that are counted it carries, and the time of its rows by its tag. No number is negative."""

GROUP_ROWS = 1 << 20
"""Files that are grouped at a time, so that no sum of halves leaves 64 bits."""

_HALF_BITS = 20
"""Bits of the lower half of a shortfall: products of two halves, added up over a million files, stay below 2^61."""

MAX_TARGET_BYTES = 1 << 2 * _HALF_BITS
"""Target (1 TiB) beyond which a shortfall has no two such halves; table properties end at 16 GiB."""

_GROUPS_AT_A_TIME = 256
"""Groups that become Python objects by one call, which no other thread can interrupt: well below a millisecond."""

_SIZE_BITS = 32
_DOTS = r"(^|/)\.{1,2}(/|$)"


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Files in the form of `COLUMNS`; `partitions` are the keys that the column `partition` numbers from 0 on."""

    table: pa.Table = field(default_factory=COLUMNS.empty_table)
    partitions: tuple[PartitionKey, ...] = ()

    @staticmethod
    def concatenated(parts: Iterable["FileColumns"]) -> "FileColumns":
        """Return the files of several parts, with one numbering of their partitions."""
        numbers: dict[PartitionKey, int] = {}
        tables = [COLUMNS.empty_table()]
        for part in parts:
            renumbered = pa.array([numbers.setdefault(key, len(numbers)) for key in part.partitions], pa.int64())
            partition = pc.take(renumbered, part.table["partition"])
            tables.append(part.table.set_column(1, COLUMNS.field("partition"), partition))
        return FileColumns(pa.concat_tables(tables), tuple(numbers))


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """All live files of a snapshot, each once, for counting.

    head: the snapshot without its files; columns: the usual files; others: those that have deletion vectors, or were
    added since the last checkpoint.
    """

    head: Snapshot
    columns: FileColumns
    others: tuple[DataFile, ...]

    @staticmethod
    def of(snapshot: Snapshot) -> "LiveFiles":
        """Return the files of a snapshot, none of them in columns."""
        return LiveFiles(replace(snapshot, files=()), FileColumns(), snapshot.files)

    @property
    def totals(self) -> tuple[int, int]:
        """Number of files, and their total size in bytes."""
        sizes = self.columns.table["size_bytes"]
        total = _sum(sizes) + sum(file.size_bytes for file in self.others)
        return len(sizes) + len(self.others), total

    def clustered(self, *, in_cells: bool) -> ClusteredFiles:
        """Count the files in and outside of Z-cubes, or with and without a cell."""
        tag, column = (CELL_TAG, "is_cell") if in_cells else (CUBE_TAG, "is_cube")
        counted = ClusteredFiles.of((file.size_bytes, tag in file.tags) for file in self.others)
        for is_clustered in (True, False):
            sizes = self.columns.table.filter(pc.equal(self.columns.table[column], is_clustered))["size_bytes"]
            if len(sizes):
                counted = counted.plus(_sum(sizes), is_cube=is_clustered, files=len(sizes))
        return counted


def live_ids_of(live: LiveFiles, partitions: Collection[PartitionKey]) -> dict[PartitionKey, dict[str, str]]:
    """Return the ids of the live files of some partitions, each with the digest of its deletes."""
    found: dict[PartitionKey, dict[str, str]] = {partition: {} for partition in partitions}
    for file in live.others:
        if file.partition in found:
            found[file.partition] |= live_ids([file])
    numbers = [number for number, partition in enumerate(live.columns.partitions) if partition in found]
    if numbers:
        table = live.columns.table
        some = table.filter(pc.is_in(table["partition"], pa.array(numbers, pa.int64())))
        for path, number in zip(some["path"].to_pylist(), some["partition"].to_pylist(), strict=True):
            found[live.columns.partitions[number]][file_id(path)] = ""
    return found


def count_live(live: LiveFiles, policy: Policy) -> dict[PartitionKey, PartitionCount]:
    """Count the partitions of a table from its live files; raises ValueError for a target beyond `MAX_TARGET_BYTES`."""
    if policy.target_bytes > MAX_TARGET_BYTES:
        raise ValueError(f"a target of {policy.target_bytes} bytes: at most {MAX_TARGET_BYTES} can be counted")
    counter = PartitionCounter(policy)
    counter.add(live.others, has_delete_files=bool(live.head.deletes))
    counter.add_deletes(live.head.deletes)
    table, partitions = live.columns.table, live.columns.partitions
    for start in range(0, len(table), GROUP_ROWS):
        some = table.slice(start, GROUP_ROWS).combine_chunks()
        _add_groups(_grouped(some, policy), partitions, counter)
        if policy.portable_paths is PortablePaths.ALWAYS:
            _note_harmful(some, partitions, counter)
    return counter.counts()


_KEYS = ("partition", "window_ms", "level", "is_idle_compacted", "is_cube")
_SUMS = ("size_high", "size_low", "high_high", "high_low", "low_low")


def _grouped(files: pa.Table, policy: Policy) -> pa.Table:
    """Group files that count alike; sums of size and squared shortfall are of halves."""
    size, floors = files["size_bytes"], policy.size_levels.floors
    size_high, size_low = _halves(size, _SIZE_BITS)
    missing = pc.max_element_wise(pc.subtract(policy.target_bytes, size), 0)
    high, low = _halves(missing, _HALF_BITS)
    level = reduce(pc.add, (pc.cast(pc.greater_equal(size, floor), pa.int8()) for floor in floors[1:]))
    columns = {
        "partition": files["partition"],
        "window_ms": _windows(files, policy),
        "level": level,
        "is_idle_compacted": files["is_idle_compacted"],
        "is_cube": files["is_cube"],
        "size_high": size_high,
        "size_low": size_low,
        "high_high": pc.multiply(high, high),
        "high_low": pc.multiply(high, low),
        "low_low": pc.multiply(low, low),
        "modified_ms": files["modified_ms"],
    }
    sums = [(name, "sum") for name in _SUMS]
    return pa.table(columns).group_by(_KEYS).aggregate([*sums, ("modified_ms", "max"), ([], "count_all")])


def _add_groups(groups: pa.Table, partitions: tuple[PartitionKey, ...], counter: PartitionCounter) -> None:
    """Add the groups to the partitions and to their windows, few at a time, so that other threads get their turn."""
    batches = groups.to_batches(max_chunksize=_GROUPS_AT_A_TIME)
    for group in chain.from_iterable(batch.to_pylist() for batch in batches):
        partition, level, files = partitions[group["partition"]], group["level"], group["count_all"]
        size = (group["size_high_sum"] << _SIZE_BITS) + group["size_low_sum"]
        shortfall = (
            (group["high_high_sum"] << 2 * _HALF_BITS)
            + (group["high_low_sum"] << _HALF_BITS + 1)
            + group["low_low_sum"]
        )
        for total in counter.sums_of(partition, group["window_ms"]):
            total.add_group(level, files, size, shortfall)
            total.tag_group(level, files * group["is_idle_compacted"], files * group["is_cube"])
        counter.note(partition, group["modified_ms_max"])


def _windows(files: pa.Table, policy: Policy) -> pa.ChunkedArray | pa.Array:
    """Return the start of each file's time window in ms, null where the table has none."""
    if policy.time_window_s is None:
        return pa.nulls(len(files), pa.int64())
    length_ms = policy.time_window_s * 1000
    at_ms = pc.coalesce(files["generated_ms"], files["modified_ms"])
    return pc.multiply(pc.divide(at_ms, length_ms), length_ms)


def _note_harmful(files: pa.Table, partitions: tuple[PartitionKey, ...], counter: PartitionCounter) -> None:
    """Count the files to rewrite for their paths; paths of the usual spelling harm no engine."""
    usual = pc.match_substring_regex(files["path"], f"^{PLAIN_PATH}$")
    suspects = files.filter(pc.or_(pc.invert(usual), pc.match_substring_regex(files["path"], _DOTS)))
    for path, partition, modified_ms in zip(
        suspects["path"].to_pylist(),
        suspects["partition"].to_pylist(),
        suspects["modified_ms"].to_pylist(),
        strict=True,
    ):
        counter.note(partitions[partition], modified_ms, purgeable=int(is_harmful(path)))


def _sum(sizes: pa.ChunkedArray) -> int:
    """Return the sum of sizes, which need not fit 64 bits."""
    high, low = (pc.sum(half).as_py() or 0 for half in _halves(sizes, _SIZE_BITS))
    return int((high << _SIZE_BITS) + low)


def _halves(values: pa.ChunkedArray | pa.Array, bits: int) -> tuple[Any, Any]:
    """Split whole numbers that are not negative into the part above the lowest bits, and these."""
    return pc.shift_right(values, bits), pc.bit_wise_and(values, (1 << bits) - 1)
