"""Rows that a log implies: within the bounds of their files, as many as these are large, evenly spread; and ranges."""

import asyncio
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from decider.whatif.sort_advice import KeyedFiles
from decider.whatif.spread_rows import ROWS, describe_key, spread_rows
from decider.whatif.trace import CommitTrace
from decider.whatif.trace_reader import TableTrace, with_ranges
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB
from shared.table import DataFile, PartitionColumn, PartitionKey, Snapshot, TableMetadata, TableProtocol

if TYPE_CHECKING:
    from decider.formats.table_format import TableReader

KEY = PartitionColumn("k", "k", "long")

DAYS = (PartitionKey('{"day":"1"}'), PartitionKey('{"day":"2"}'))
BOUNDS = st.one_of(st.none(), st.tuples(st.integers(-(10**6), 10**6), st.integers(0, 10**6)))
FILES = st.lists(st.tuples(st.integers(1, 10**9), st.sampled_from(DAYS), BOUNDS, BOUNDS), max_size=20)


@given(FILES)
def test_rows_lie_within_the_bounds_of_their_files(drawn: list[tuple[int, PartitionKey, object, object]]) -> None:
    def keyed(at: int, name: str) -> KeyedFiles:
        files = []
        for number, (size, day, *bounds) in enumerate(drawn):
            low_and_width = bounds[at]
            known = None if low_and_width is None else (low_and_width[0], sum(low_and_width))  # type: ignore[index]
            files.append(DataFile(str(number), size, day, key_range=known))
        return KeyedFiles(PartitionColumn(name, name, "long"), tuple(files))

    sides = [keyed(0, "a"), keyed(1, "b")]
    sample = spread_rows(sides)
    rows = [row for partition in sample.partitions for row in partition.rows]
    assert len(drawn) <= len(rows) + 1
    assert len(rows) <= ROWS + len(drawn)
    assert sum(partition.bytes for partition in sample.partitions) == sum(size for size, *_ in drawn)
    for at, side in enumerate(sides):
        known = [file.key_range for file in side.files if file.key_range is not None]
        values = [row[at] for row in rows if row[at] is not None]
        assert (not known) == (not values)
        assert all(min(low for low, _ in known) <= value <= max(high for _, high in known) for value in values)


def test_two_columns_of_a_file_are_spread_evenly_and_apart() -> None:
    def keyed(name: str) -> KeyedFiles:
        return KeyedFiles(PartitionColumn(name, name, "long"), (DataFile("f", 1, DAYS[0], key_range=(0, ROWS)),))

    (partition,) = spread_rows([keyed("a"), keyed("b")]).partitions
    for at in (0, 1):
        assert Counter(row[at] for row in partition.rows) == Counter(range(ROWS))
    # Of the lower half by one column, half are in the lower half by the other.
    both = sum(row[0] < ROWS // 2 and row[1] < ROWS // 2 for row in partition.rows)  # type: ignore[operator]
    assert 0.24 < both / ROWS < 0.26


def test_a_range_reads_nearly_all_files_of_random_keys_and_once_sorted_its_own_share_and_a_file() -> None:
    dice = random.Random(3)
    drawn = (sorted((dice.randrange(1_000_000), dice.randrange(1_000_000))) for _ in range(100))
    files = tuple(DataFile(f"f{at}", MIB, WHOLE_TABLE, key_range=(low, high)) for at, (low, high) in enumerate(drawn))
    found = describe_key(KeyedFiles(KEY, files), MIB)
    assert (found["column"], found["files"], found["files_without_range"]) == ("k", 100, 0)
    assert [one["share"] for one in found["ranges"]] == [0.001, 0.01, 0.1]
    for one in found["ranges"]:
        assert one["share_read_now"] > 0.25
        assert one["share"] <= one["share_read_sorted"] <= one["share"] + 0.02


def test_every_range_reads_the_files_without_bounds_and_none_is_made_up_where_no_file_has_any() -> None:
    unknown = tuple(DataFile(f"f{n}", MIB, WHOLE_TABLE) for n in range(3))
    found = describe_key(KeyedFiles(KEY, unknown), MIB)
    assert (found["files_without_range"], found["ranges"]) == (3, [])
    known = replace(unknown[0], key_range=(0, 1_000))
    ranges = describe_key(KeyedFiles(KEY, (known, *unknown[1:])), MIB)["ranges"]
    assert [one["share_read_now"] for one in ranges] == [1.0] * 3
    assert describe_key(KeyedFiles(KEY, ()), MIB)["ranges"] == []


class Reader:
    """The newest version of a table, which has bounds of every column."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def snapshot_with_ranges(self, column: str) -> Snapshot:
        self.asked.append(column)
        metadata = TableMetadata("t", sort_key=PartitionColumn(column, column, "long"))
        files = (DataFile("a", 1, WHOLE_TABLE, key_range=(1, 2)),)
        return Snapshot(3, 0, metadata, TableProtocol(1, 2), files)


def test_each_column_is_read_once_and_the_tables_own_if_none_is_named() -> None:
    reader, log = Reader(), cast("TableReader", Reader())
    plain = TableTrace("memory:///t", 0, 3, TableMetadata("t"), CommitTrace((), ()), 0, 0, 1)
    assert asyncio.run(with_ranges(log, plain, ())).keyed == ()
    own = asyncio.run(with_ranges(log, replace(plain, metadata=TableMetadata("t", sort_key=KEY)), ()))
    assert [(one.column.name, len(one.files)) for one in own.keyed] == [("k", 1)]
    named = asyncio.run(with_ranges(cast("TableReader", reader), plain, ("x", "y", "x")))
    assert [one.column.name for one in named.keyed] == reader.asked == ["x", "y"]
