"""An action on tables as a whole is added by one module and one entry in the registry, and is timed by commits."""

import json
from dataclasses import replace

import pytest

from decider.archive.ledger_reader import LedgerReader
from decider.decide import ledger
from decider.store.tables.cleanup import delete_table
from shared.layout.eligibility import Reason
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB
from shared.queue import commands
from shared.queue.model import Band, JobRequest
from shared.table import RemovedFile, TableMetadata, VacuumMark
from tests.support.timed_world import DT, HOUR_MS, TABLE, World, in_world, partition
from tests.support.toy_table_action import INVENTORY, WITH_TOY_TABLE, InventoryReason

pytestmark = pytest.mark.redis

ON = {"lakewright.row-group-copy": "never"}
TIMER = f"{INVENTORY} {WHOLE_TABLE}"


async def _remove(world: World, size: int = 9 * MIB) -> None:
    """Write a file and remove it again."""
    file = world.file(partition(1), size)
    world.log.add([file])
    world.log.add((), [RemovedFile(file.path, None, size, file.partition, tags={})])
    await world.decider.follow()


async def test_commits_set_the_timer_of_a_table_which_decides_queues_and_records(redis_url: str) -> None:
    async with in_world(redis_url, ON, actions=WITH_TOY_TABLE) as world:
        await world.write(partition(1), [9 * MIB])
        assert TIMER not in await world.timers.all(TABLE.id)
        await _remove(world)
        assert (await world.timers.all(TABLE.id))[TIMER] == 2 * HOUR_MS
        world.now_ms = 2 * HOUR_MS
        done = await world.decider.tick()
        assert (done.timers, done.jobs) == (1, 1)
        (job,) = [job for job in await world.jobs() if job.key.kind == INVENTORY]
        assert (job.key.partition, job.band) == (WHOLE_TABLE, Band.BACKGROUND)
        (record,) = await LedgerReader(world.queue, WITH_TOY_TABLE).newest(TABLE.id, limit=1)
        assert isinstance(record, ledger.LedgerRecord)
        assert (record.reason, record.outcome) == (InventoryReason.REMOVED, "queued")
        # The end of a vacuum in the log ends what it freed, and the timer.
        world.log.add(data_change=False, by_us=True)
        world.log.commits[-1] = replace(world.log.commits[-1], vacuum=VacuumMark(2 * HOUR_MS))
        await world.decider.follow()
        assert TIMER not in await world.timers.all(TABLE.id)


async def test_a_table_without_the_property_has_no_timer_and_one_switched_off_loses_timer_and_job(
    redis_url: str,
) -> None:
    async with in_world(redis_url, actions=WITH_TOY_TABLE) as world:
        await _remove(world)
        assert await world.timers.all(TABLE.id) == {}
        world.log.add(metadata=TableMetadata("u-1", DT, ON), data_change=False)
        await world.decider.follow()
        assert TIMER in await world.timers.all(TABLE.id), "what was removed before is known after a rebuild"
        world.now_ms = 2 * HOUR_MS
        await world.decider.tick()
        assert [job.key.kind for job in await world.jobs()] == [INVENTORY]
        off = TableMetadata("u-1", DT, ON | {"lakewright.enabled": "false"})
        world.log.add(metadata=off, data_change=False)
        await world.decider.follow()
        assert await world.jobs() == []
        assert TIMER not in await world.timers.all(TABLE.id)


async def test_a_table_whose_action_is_switched_off_loses_a_waiting_job_unless_a_person_requested_it(
    redis_url: str,
) -> None:
    """The owner takes the property away: what is queued would still be done, hours later."""
    async with in_world(redis_url, ON, actions=WITH_TOY_TABLE) as world:
        for reason, left in ((InventoryReason.REMOVED, []), (Reason.REQUESTED, [INVENTORY])):
            world.log.add(metadata=TableMetadata("u-1", DT, ON), data_change=False)
            await _remove(world)
            world.now_ms += 2 * HOUR_MS
            await world.decider.tick()
            (job,) = await world.jobs()
            payload = json.dumps({**json.loads(job.payload), "reason": reason})
            same = JobRequest(job.key, job.tenant, job.band, job.priority, job.cost_bytes, job.version, payload)
            await world.queue.run(commands.enqueue(world.queue.name, replace(same, precedence=1)))
            world.log.add(metadata=TableMetadata("u-1", DT, {}), data_change=False)
            await world.decider.follow()
            assert [job.key.kind for job in await world.jobs()] == left


async def test_the_job_on_a_table_leaves_with_it(redis_url: str) -> None:
    async with in_world(redis_url, ON, actions=WITH_TOY_TABLE) as world:
        await _remove(world)
        world.now_ms = 2 * HOUR_MS
        await world.decider.tick()
        assert len(await world.jobs()) == 1
        await delete_table(world.queue, TABLE.id, kinds=WITH_TOY_TABLE.kinds)
        assert await world.jobs() == []
