"""A decider, a queue and a slot of an actor around one table in memory, of which the actor refuses some files."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any

import redis

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat
from actor.queue_executor import SyncQueueExecutor, connect
from actor.worker import ActorContext, Worker, WorkerSettings
from shared.partition_refusals import NOTHING, PartitionRefusals
from shared.queue import keys
from shared.table import DataFile, PartitionKey, RemovedFile
from tests.support.memory_engine import MemoryEngine
from tests.support.timed_world import TABLE, World, in_world, partition
from tests.support.worker_bench import TIMES

HERE = partition(1)
SMALL = 100_000
BAD = "bad"
"""What the path of a file begins with that the engine refuses."""


class RefusalWorld:
    """The decider's world, with a worker that runs the jobs on the same table."""

    def __init__(self, world: World, url: str) -> None:
        self.world = world
        self.engine = MemoryEngine()
        self.engine.version, self.engine.table_uuid = 0, world.metadata.table_uuid
        self.engine.configuration = dict(world.metadata.configuration)
        self.engine.refuses = lambda file: file.path.startswith(BAD)
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        self._heart = Heartbeat(SyncQueueExecutor(connect(url), "default"), "a-1", TIMES, cancel=self.engine.cancel)
        self._heart.start()
        queue = SyncQueueExecutor(connect(url), "default")
        actor = ActorContext("a-1", self._heart, threading.Event())
        self.worker = Worker(EngineSet([self.engine]), queue, actor, WorkerSettings(idle_s=0.01))

    async def commit(
        self, good: int = 0, bad: int = 0, *, size: int = SMALL, where: PartitionKey = HERE, follow: bool = True
    ) -> list[DataFile]:
        """Commit so many files of either kind, and let the decider see it."""
        made = [self.world.file(where, size) for _ in range(good + bad)]
        made = [replace(file, path=f"{BAD}-{file.path}" if at < bad else file.path) for at, file in enumerate(made)]
        made = [replace(file, rows=file.size_bytes) for file in made]
        await self._commit(made, (), follow=follow)
        return made

    async def remove(self, files: Iterable[DataFile]) -> None:
        """Commit the removal of files."""
        await self._commit((), files)

    async def _commit(self, added: Iterable[DataFile], removed: Iterable[DataFile], *, follow: bool = True) -> None:
        gone = [RemovedFile(file.path, None, file.size_bytes, file.partition, tags=file.tags) for file in removed]
        self.engine.version = self.world.log.add(added, gone)
        for file in removed:
            del self.engine.files[file.path]
        self.engine.files |= {file.path: file for file in added}
        if follow:
            await self.world.decider.follow()

    async def alter(self, *, schema: str = "", **properties: str) -> None:
        """Change the schema or the properties of the table."""
        self.engine.schema_digest = schema or self.engine.schema_digest
        self.engine.configuration = self.engine.configuration | properties
        known = replace(
            self.world.metadata, configuration=self.engine.configuration, schema_digest=self.engine.schema_digest
        )
        self.engine.version = self.world.log.add(metadata=known, data_change=False)
        await self.world.decider.follow()

    async def run_jobs(self) -> int:
        """Run all jobs that are ready; the decider sees what they commit. Returns how many there were."""
        runs = 0
        while await asyncio.to_thread(self._run_next):
            runs += 1
            await self.world.decider.follow()
        return runs

    def _run_next(self) -> bool:
        before, version = dict(self.engine.files), self.engine.version
        ran = self.worker.run_next()
        if self.engine.version != version:
            gone = [one for path, one in before.items() if path not in self.engine.files]
            new = [one for path, one in self.engine.files.items() if path not in before]
            removed = [RemovedFile(one.path, None, one.size_bytes, one.partition, tags=one.tags) for one in gone]
            self.engine.version = self.world.log.add(new, removed, data_change=False, by_us=True)
        return ran

    @property
    def attempts(self) -> int:
        """How often a group was refused."""
        return len(self.engine.attempts)

    def remembered(self, where: PartitionKey = HERE) -> PartitionRefusals:
        """What Redis has of a partition."""
        raw = self.redis.hget(keys.refusals("default", TABLE.id), where)
        return PartitionRefusals.decode(str(raw)) if raw else NOTHING

    def good_files(self) -> int:
        """Number of live files that are not refused."""
        return sum(not file.path.startswith(BAD) for file in self.engine.files.values())

    def close(self) -> None:
        self._heart.close()


def in_refusal_world(
    url: str, story: Callable[[RefusalWorld], Coroutine[Any, Any, None]], configuration: dict[str, str] | None = None
) -> None:
    """Run a story in such a world."""

    async def report() -> None:
        async with in_world(url, configuration) as world:
            with closing(RefusalWorld(world, url)) as made:
                await made.alter(schema="first")
                await story(made)

    asyncio.run(report())
