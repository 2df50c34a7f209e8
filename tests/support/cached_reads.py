"""What an actor's cache of reads holds of a fake table, and what it makes of the commits since."""

from dataclasses import replace

from actor.formats.delta.read import read_partition
from actor.formats.delta.read_cache import CachedRead, ReadCache, caught_up
from shared.table import PartitionKey
from tests.support.fake_delta import LOCATION, FakeTable

A = PartitionKey('{"p":"a"}')


def listed(table: FakeTable, partition: PartitionKey | None = None) -> CachedRead:
    """What a listing of the newest snapshot gives."""
    memory = ReadCache()
    read_partition(table.log(), partition or A, memory)
    seen = memory.get(LOCATION, partition or A)
    assert seen is not None
    return replace(
        seen,
        partition=partition,
        files={key: one for key, one in seen.files.items() if one.file.partition == (partition or A)},
    )


def whole(table: FakeTable) -> CachedRead:
    memory = ReadCache()
    read_partition(table.log(), A, memory)
    seen = memory.get(LOCATION, A)
    assert seen is not None
    assert seen.partition is None
    return seen


def brought(table: FakeTable, seen: CachedRead) -> CachedRead | None:
    log = table.log()
    return caught_up(log, seen, log.shape(log.snapshot()), version=table.version)
