"""What-if of a sort key: what is shown where files have no bounds, and where there are too many to plan sorts."""

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from decider.whatif import range_reads
from decider.whatif.range_reads import KeyedFiles, key_reads
from decider.whatif.trace import CommitTrace
from decider.whatif.trace_reader import TableTrace, with_ranges
from shared.partitions import WHOLE_TABLE
from shared.policy import MIB, Policy
from shared.table import DataFile, PartitionColumn, Snapshot, TableMetadata, TableProtocol

if TYPE_CHECKING:
    from decider.formats.table_format import TableReader

COLUMN = PartitionColumn("k", "k", "long")
POLICY = Policy(target_bytes=100 * MIB)


def random_files(count: int, size: int = 100 * MIB) -> KeyedFiles:
    dice = random.Random(3)
    drawn = (sorted((dice.randrange(1_000_000), dice.randrange(1_000_000))) for _ in range(count))
    return KeyedFiles(
        COLUMN, tuple(DataFile(f"f{at}", size, WHOLE_TABLE, key_range=(a, b)) for at, (a, b) in enumerate(drawn))
    )


def test_a_sort_of_random_keys_saves_files_and_says_what_it_rewrites() -> None:
    found = key_reads(random_files(200), POLICY)
    least = found.ranges[0]
    assert (found.files_now, found.files_merged, found.files_sorted) == (200, 200, 200)
    assert least.sorted is not None
    assert least.now == least.merged > 50
    assert least.sorted < least.now / 5
    assert found.bytes_sorted is not None
    assert 200 * 100 * MIB / 2 < found.bytes_sorted < 2 * 200 * 100 * MIB


def test_merges_alone_sort_their_full_outputs_and_cost_no_bytes_of_a_sort() -> None:
    found = key_reads(random_files(200, 8 * MIB), POLICY)
    least = found.ranges[0]
    assert least.sorted is not None
    assert least.sorted < least.merged / 5 < least.now / 20
    assert (found.files_merged, found.bytes_sorted) == (found.files_sorted, 0)


def test_of_more_files_than_can_be_planned_the_table_as_it_is_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reads, "MAX_FILES", 9)
    found = key_reads(random_files(10), POLICY)
    assert (found.files_now, found.files_sorted, found.bytes_sorted) == (10, None, None)
    assert [one.sorted for one in found.ranges] == [None] * 3
    assert found.ranges[0].now > 1
    assert key_reads(random_files(9), POLICY).files_sorted == 9


def test_files_without_bounds_are_counted_and_no_range_is_made_up_for_them() -> None:
    files = tuple(DataFile(f"f{n}", MIB, WHOLE_TABLE) for n in range(3))
    found = key_reads(KeyedFiles(COLUMN, files), POLICY)
    assert (found.files_without_range, found.ranges) == (3, ())
    assert key_reads(KeyedFiles(COLUMN, ()), POLICY).files_now == 0


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
    own = asyncio.run(with_ranges(log, replace(plain, metadata=TableMetadata("t", sort_key=COLUMN)), ()))
    assert [(one.column.name, len(one.files)) for one in own.keyed] == [("k", 1)]
    named = asyncio.run(with_ranges(cast("TableReader", reader), plain, ("x", "y", "x")))
    assert [one.column.name for one in named.keyed] == reader.asked == ["x", "y"]
