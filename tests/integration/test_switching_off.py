"""A table that is switched off keeps no job, whoever dies on the way; one that is on again keeps every job."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import pytest

from decider.state.effective_policy import PolicyDefaults
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.tracking.tracker import TableTracker
from shared.errors import RetryableError
from shared.queue import queries
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from shared.queue.model import JobState
from shared.table import DataFile, TableMetadata
from tests.support.memory_log import MemoryLog
from tests.support.timed_world import DT, POLICY, TABLE, Alone, partition

pytestmark = pytest.mark.redis

R = TypeVar("R")
Hook = Callable[[], Awaitable[None]]

PARTITIONS = [partition(number) for number in range(3)]


class HookedQueue(AsyncQueueExecutor):
    """Runs something else once, before or after the first call of a script."""

    before: tuple[ScriptName, Hook] | None = None
    after: tuple[ScriptName, Hook] | None = None

    async def run(self, command: Command[R]) -> R:
        if self.before is not None and self.before[0] is command.script:
            (_, hook), self.before = self.before, None
            await hook()
        result = await super().run(command)
        if self.after is not None and self.after[0] is command.script:
            (_, hook), self.after = self.after, None
            await hook()
        return result


class World:
    """One table with three partitions that wait for their jobs, and two deciders; the first one can be held up."""

    def __init__(self, url: str) -> None:
        self.log = MemoryLog(self.metadata(enabled=True))
        self.log.add(
            [DataFile(f"{partition}-{number}", 100_000, partition) for partition in PARTITIONS for number in range(9)]
        )
        self.first, self.second = (HookedQueue(connect(url), "default") for _ in range(2))

    @staticmethod
    def metadata(*, enabled: bool) -> TableMetadata:
        configuration = {} if enabled else {"lakewright.enabled": "false"}
        return TableMetadata("u-1", DT, configuration)

    def switch(self, *, on: bool) -> None:
        self.log.add(metadata=self.metadata(enabled=on), data_change=False)

    async def follow(self, queue: AsyncQueueExecutor) -> None:
        await TableTracker(queue, lambda _: self.log, lambda: 1_000_000, Alone(PolicyDefaults(POLICY))).follow(TABLE)

    async def waiting(self) -> list[str]:
        """Partitions that have a job."""
        pages = [await self.second.run(queries.jobs("default", state)) for state in JobState]
        return sorted(job.key.partition for page in pages for job in page.jobs)


@asynccontextmanager
async def in_world(url: str) -> AsyncIterator[World]:
    world = World(url)
    await world.follow(world.first)
    assert await world.waiting() == PARTITIONS
    try:
        yield world
    finally:
        await world.first.redis.aclose()
        await world.second.redis.aclose()


@pytest.mark.parametrize(("moment", "script"), [("after", ScriptName.INGEST), ("before", ScriptName.CANCEL)])
async def test_who_switches_off_late_leaves_the_jobs_of_a_table_that_is_on_again(
    redis_url: str, moment: str, script: ScriptName
) -> None:
    async with in_world(redis_url) as world:

        async def on_again() -> None:
            world.switch(on=True)
            await world.follow(world.second)
            assert await world.waiting() == PARTITIONS

        world.switch(on=False)
        setattr(world.first, moment, (script, on_again))
        await world.follow(world.first)
        assert await world.waiting() == PARTITIONS


async def test_a_table_made_again_and_switched_off_keeps_no_job_of_the_one_before(redis_url: str) -> None:
    """Its versions start over, below those that the jobs were requested at."""
    async with in_world(redis_url) as world:
        files = (await world.log.snapshot()).files
        world.log = MemoryLog(world.metadata(enabled=False))
        world.log.commits[0] = replace(world.log.commits[0], added=files)
        await world.follow(world.first)
        assert await world.waiting() == []


@pytest.mark.parametrize(("moment", "script"), [("after", ScriptName.INGEST), ("after", ScriptName.CANCEL)])
async def test_who_dies_while_switching_off_leaves_no_job_behind(
    redis_url: str, moment: str, script: ScriptName
) -> None:
    async with in_world(redis_url) as world:

        async def dies() -> None:
            raise RetryableError("killed here")

        world.switch(on=False)
        setattr(world.first, moment, (script, dies))
        with pytest.raises(RetryableError, match="killed here"):
            await world.follow(world.first)
        await world.follow(world.second)
        assert await world.waiting() == []
