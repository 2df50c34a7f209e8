"""A rebuild takes any number of partitions, says what it decided, and starts over if what it staged was cut."""

import pytest

from decider.archive.ledger_reader import LedgerReader
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.tables import ingest as storing
from decider.store.tables.ingest import PARTITIONS_INLINE
from decider.tracking.rebuild import RECORDS
from shared.policy.policy import MIB
from shared.queue import keys
from shared.queue.model import StagedState
from shared.table import TableMetadata
from tests.support.memory_log import MemoryLog
from tests.support.timed_world import DT, HOUR_MS, TABLE, TWO_SMALL, in_world, partition

pytestmark = pytest.mark.redis


async def test_a_rebuild_that_lost_a_part_of_what_it_staged_starts_over(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failover between two pages leaves the new partitions incomplete; in place, the others would stay missing."""
    stage, lost = storing._stage, []

    async def cut(queue: AsyncQueueExecutor, step: storing.StateUpdate) -> StagedState:
        made = await stage(queue, step)
        if not lost:
            lost.append(await queue.redis.hdel(keys.staged_partitions("default", made.name), partition(7)))
        return made

    monkeypatch.setattr(storing, "_stage", cut)
    async with in_world(redis_url) as world:
        many = PARTITIONS_INLINE + 1
        world.log.add([world.file(partition(number), MIB) for number in range(many)])
        await world.decider.follow()
        assert lost == [1]
        assert await world.queue.redis.hlen(keys.partitions("default", TABLE.id)) == many


async def test_a_rebuild_takes_a_table_of_any_number_of_partitions_and_says_what_it_decided(redis_url: str) -> None:
    """Beyond a thousand partitions they are staged: the old ones are deleted, jobs and timers exist, no key leaks."""
    async with in_world(redis_url) as world:
        many = PARTITIONS_INLINE + 500
        await world.write(partition("old"), TWO_SMALL)
        world.log.commits = MemoryLog(TableMetadata("u-2", DT)).commits
        for number in range(many):
            world.log.add([world.file(partition(number), size) for size in (TWO_SMALL if number else [100_000] * 8)])
        world.now_ms += HOUR_MS
        restarted = world.new_decider()
        world.log.oldest = many - 1
        await restarted.follow()
        partitions = await world.queue.redis.hlen(keys.partitions("default", TABLE.id))
        assert partitions == many
        assert len(await world.timers.all(TABLE.id)) == many
        assert [job.key.partition for job in await world.jobs()] == [partition(0)]
        records = await LedgerReader(world.queue).newest(TABLE.id, limit=1_000)
        assert len([record for record in records if record.version == many]) == RECORDS
        assert any(record.partition == partition(0) and record.outcome == "queued" for record in records)
        assert await world.queue.redis.ttl(keys.partitions("default", TABLE.id)) == -1
        assert await world.queue.redis.ttl(keys.timers("default", TABLE.id)) == -1
        assert not await world.queue.redis.keys("*new*")
