"""A refusal by an actor is remembered: one attempt and one message, and the other files go on being compacted."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
import redis

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat
from actor.queue_executor import SyncQueueExecutor, connect
from actor.worker import ActorContext, Worker, WorkerSettings
from decider.optimize.on_demand import OnDemandOptimizer, OptimizeCommand
from decider.optimize.run_terms import RunTerms
from decider.store.tables.cleanup import delete_table
from decider.tracking import table_tracking
from shared import partition_refusals
from shared.errors import Difference
from shared.jobs.payload import DEDUPLICATE
from shared.partition_refusals import NOTHING, PartitionRefusals
from shared.partitions import WHOLE_TABLE
from shared.queue import keys
from shared.refusals import RefusalReason
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


pytestmark = pytest.mark.redis

DAY_MS = 86_400_000


def test_over_fifty_batches_a_refused_file_costs_one_attempt_and_the_others_are_compacted(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(good=7, bad=1)
        await world.run_jobs()
        assert world.attempts == 1
        for _ in range(50):
            await world.commit(good=8)
            await world.run_jobs()
        assert world.attempts == 1
        (known,) = world.remembered().refusals
        assert (known.reason, known.count) == (RefusalReason.TYPES, 1)
        assert world.good_files() < 20
        runs = world.redis.xlen(keys.runs("default"))
        assert world.redis.hget(keys.counters("default"), "plans_empty") is None
        assert runs <= 60

    in_refusal_world(redis_url, story)


async def _of_removal(world: RefusalWorld) -> None:
    await world.remove([next(file for path, file in world.engine.files.items() if path.startswith(BAD))])


async def _of_schema(world: RefusalWorld) -> None:
    await world.alter(schema="another")


async def _of_properties(world: RefusalWorld) -> None:
    await world.alter(**{"write.parquet.compression-codec": "zstd"})


async def _of_release(world: RefusalWorld) -> None:
    await world.world.new_decider().follow()


LIFTS: dict[str, Callable[[RefusalWorld], Coroutine[Any, Any, None]]] = {
    "files": _of_removal,
    "schema": _of_schema,
    "properties": _of_properties,
    "release": _of_release,
}


@pytest.mark.parametrize("event", LIFTS)
def test_each_of_four_changes_lifts_a_refusal_even_if_no_commit_touches_the_partition(
    redis_url: str, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(bad=16)
        await world.run_jobs()
        before = world.attempts
        await world.commit(good=1)
        assert await world.run_jobs() == 0
        assert world.attempts == before
        if event == "release":
            for module in (table_tracking, partition_refusals):
                monkeypatch.setattr(module, "RELEASE", "9.0.0")
        world.engine.refuses = lambda _: False
        await LIFTS[event](world)
        assert await world.run_jobs() == 1
        assert not any(path.startswith(BAD) for path in world.engine.files)
        assert world.remembered().refusals == ()
        assert world.redis.hlen(keys.refusing_tables("default")) == 0

    in_refusal_world(redis_url, story)


def test_a_writer_of_nothing_but_refused_files_gets_fewer_and_fewer_attempts(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        for _ in range(100):
            await world.commit(bad=8)
            await world.run_jobs()
        assert world.attempts <= 10
        assert world.remembered().futile_runs <= 6

    in_refusal_world(redis_url, story)


def test_force_gives_refused_files_another_attempt_and_a_plain_request_does_not(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(bad=8)
        await world.run_jobs()
        assert world.attempts == 1
        requests = OnDemandOptimizer(
            world.world.queue,
            world.world.decider.follower,
            lambda _: world.world.log,
            lambda: world.world.now_ms,
        )
        answer = await requests.optimize(TABLE, OptimizeCommand())
        assert answer.jobs == ()
        assert [str(reason) for reason in answer.reasons] == ["refused_files"]
        assert not (await requests.dry_run(TABLE, OptimizeCommand())).plans
        force = OptimizeCommand(terms=RunTerms(force=True))
        assert len((await requests.dry_run(TABLE, force)).plans) == 1
        assert len((await requests.optimize(TABLE, force)).jobs) == 1
        assert await world.run_jobs() == 1
        assert world.attempts == 2
        assert len(world.remembered().refusals) == 1

    in_refusal_world(redis_url, story)


def test_a_second_decider_and_a_rebuild_see_the_same_refusals(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(bad=8)
        await world.run_jobs()
        await world.commit(good=2, follow=False)
        await world.world.new_decider().follow()
        await world.alter(**{"lakewright.tolerance": "0.2"})
        world.engine.attempts.clear()
        await world.run_jobs()
        before = world.attempts
        world.redis.hdel(keys.table_state("default", TABLE.id), "version")
        world.redis.delete(keys.table_state("default", TABLE.id))
        await world.world.new_decider().follow()
        assert await world.run_jobs() == 0
        assert world.attempts == before

    in_refusal_world(redis_url, story)


def test_what_is_lost_with_redis_is_remembered_again_by_one_attempt(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(bad=8)
        await world.run_jobs()
        world.redis.delete(keys.refusals("default", TABLE.id), keys.refusing_tables("default"))
        await world.commit(good=1)
        await world.run_jobs()
        await world.commit(good=1)
        assert await world.run_jobs() == 0
        assert world.attempts == 2

    in_refusal_world(redis_url, story)


def test_an_unregistered_table_leaves_no_refusals(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(bad=8)
        await world.run_jobs()
        assert world.redis.hgetall(keys.refusing_tables("default")) == {TABLE.id: "1"}
        await delete_table(world.world.queue, TABLE.id, kinds=("compact",))
        assert not world.redis.exists(keys.refusing_tables("default"), keys.refusals("default", TABLE.id))

    in_refusal_world(redis_url, story)


def test_a_job_on_the_whole_table_that_is_refused_is_not_tried_again_for_every_commit(redis_url: str) -> None:
    attempts: list[int] = []

    async def story(world: RefusalWorld) -> None:
        def differ(*_: object) -> None:
            attempts.append(world.engine.version)
            raise Difference("column v differs; nothing was committed")

        world.engine.table_kinds = (DEDUPLICATE,)
        world.engine.run_table_job = differ  # type: ignore[method-assign,assignment]
        for _ in range(30):
            await world.commit(good=1)
            await world.world.decider.tick()
            await world.run_jobs()
            world.world.now_ms += DAY_MS
            assert len(attempts) <= 3
        (known,) = world.remembered(WHOLE_TABLE).jobs
        assert (known.kind, known.reason, known.runs) == (DEDUPLICATE, RefusalReason.DIFFERENCE, len(attempts))
        await world.alter(**{"lakewright.deduplicate-every": "2h"})
        await world.world.decider.tick()
        await world.run_jobs()
        assert len(attempts) == known.runs + 1 == 4
        assert world.remembered(WHOLE_TABLE).jobs[0].runs == 1

    keyed = {"lakewright.primary-key": "id", "lakewright.sequence-by": "ts"}
    in_refusal_world(redis_url, story, keyed)
