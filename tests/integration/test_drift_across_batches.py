"""Commits that repeat what an earlier batch did make the state drift; the check finds it, and no job does harm.

The state keeps no paths, so that a process that has not seen the first action, such as a new one, cannot know that it
is repeated. The snapshot is always right.
"""

import pytest

from decider.store.tables.table_state import TableStateStore
from decider.tracking.drift_check import DEFAULT_EVERY_MS
from shared.jobs.payload import JobPayload
from shared.layout.planner import plan
from shared.policy.policy import MIB
from shared.table import DataFile, RemovedFile
from tests.support.counted_files import count_live_files
from tests.support.timed_world import POLICY, TABLE, World, in_world, partition

pytestmark = pytest.mark.redis

PARTITION = partition(1)


def small(name: object) -> DataFile:
    return DataFile(f"small-{name}", MIB // 2, PARTITION)


def removal(file: DataFile) -> RemovedFile:
    return RemovedFile(file.path, None, file.size_bytes, file.partition, tags=file.tags)


async def is_exact(world: World) -> bool:
    live = count_live_files((await world.log.snapshot()).files, POLICY)
    stored = {
        key: state async for key, state in TableStateStore(world.queue).iterate_partitions(TABLE.id) if state.files
    }
    return stored == live


async def sweep_after_the_interval(world: World) -> str:
    world.now_ms += DEFAULT_EVERY_MS + 1
    return (await world.decider.follower.follow(TABLE)).rescan


async def test_live_files_added_again_later_are_found_and_the_job_that_they_led_to_plans_nothing(
    redis_url: str,
) -> None:
    async with in_world(redis_url) as world:
        world.log.has_checksums = True
        files = [small(number) for number in range(4)]
        world.log.add(files)
        await world.decider.follow()
        assert await world.jobs() == []
        world.log.add(files)
        world.decider = world.new_decider()
        await world.decider.follow()
        assert not await is_exact(world)

        (job,) = await world.jobs()
        payload = JobPayload.decode(job.payload)
        live = (await world.log.snapshot()).files
        assert plan(PARTITION, live, payload.policy).groups == (), "the actor plans on what is live"
        assert (await sweep_after_the_interval(world)).startswith("drift")
        assert await is_exact(world)


async def test_a_file_removed_again_later_and_a_strangers_file_are_found_and_the_missing_job_comes(
    redis_url: str,
) -> None:
    async with in_world(redis_url) as world:
        world.log.has_checksums = True
        files = [small(number) for number in range(9)]
        world.log.add(files)
        world.log.add(removed=[removal(files[0])])
        world.log.add([small(10), small(11)])
        world.log.add(removed=[removal(one) for one in files[1:4]])
        await world.decider.follow()
        world.decider = world.new_decider()
        for gone in (files[0], small("stranger")):
            world.log.add(removed=[removal(gone)])
            assert (await world.decider.follower.follow(TABLE)).rescan.startswith("drift")
            assert await is_exact(world)


async def test_more_removals_than_there_were_files_are_rebuilt_at_once(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        files = [small(number) for number in range(2)]
        world.log.add(files)
        await world.decider.follow()
        world.log.add(removed=[removal(small(f"stranger-{number}")) for number in range(3)])
        followed = await world.decider.follower.follow(TABLE)
        assert followed.rescan == "the log removed files that the state never held"
        assert await is_exact(world)
