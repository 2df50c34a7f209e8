"""Writers come first: where MERGE, UPDATE and DELETE are at work jobs wait, or are not made at all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from decider.archive.ledger_reader import LedgerReader
from decider.decide.decision import DecisionKind
from decider.state.effective_policy import PolicyDefaults
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.tables.counters import CounterReader
from decider.store.tables.table_state import TableStateStore
from decider.tracking.tracker import TableTracker
from shared.jobs.payload import JobPayload
from shared.layout.eligibility import Reason
from shared.policy.policy import MIB, Policy
from shared.queue import queries
from shared.queue.model import JobState
from shared.queue.records import JobView
from shared.table import DataFile, PartitionColumn, PartitionKey, RemovedFile, TableId, TableMetadata, TableRef
from tests.support.defaults import Alone
from tests.support.memory_log import MemoryLog
from tests.support.recomputing import contradictions, recompute

pytestmark = pytest.mark.redis

MINUTE = 60_000
NOON = 500_000 * 60 * MINUTE
TABLE = TableRef(TableId("t-1"), "t", "memory:///t")
HOT, COOL = PartitionKey('{"dt":"1"}'), PartitionKey('{"dt":"2"}')


class World:
    """One table, its log, and a decider; a MERGE of five minutes ends in the hot partition every ten."""

    def __init__(self, url: str, configuration: dict[str, str]) -> None:
        self.log = MemoryLog(TableMetadata("u-1", (PartitionColumn("dt", "dt", "string"),), configuration))
        self.queue = AsyncQueueExecutor(connect(url), "default")
        self.now_ms = NOON
        defaults = Alone(PolicyDefaults(Policy(target_bytes=8 * MIB)))
        self.follower = TableTracker(self.queue, lambda _: self.log, lambda: self.now_ms, defaults)
        self._files = 0

    def files(self, partition: PartitionKey, count: int) -> list[DataFile]:
        self._files += count
        return [DataFile(f"f{self._files - n}", 100_000, partition) for n in range(count)]

    async def merges(self, count: int) -> None:
        for _ in range(count):
            self.now_ms += 10 * MINUTE
            self.log.command("MERGE", self.now_ms, 5 * MINUTE, self.files(HOT, 1))
            await self.follower.follow(TABLE)

    async def append(self, partition: PartitionKey) -> None:
        self.log.command("WRITE", self.now_ms, 1_000, self.files(partition, 9))
        await self.follower.follow(TABLE)

    async def jobs(self) -> dict[str, JobView]:
        pages = [await self.queue.run(queries.jobs("default", state)) for state in JobState]
        return {job.key.partition: job for page in pages for job in page.jobs}

    async def counters(self) -> dict[str, int]:
        return dict(await CounterReader(self.queue).read(TABLE.id))


@asynccontextmanager
async def in_world(url: str, configuration: dict[str, str] | None = None) -> AsyncIterator[World]:
    world = World(url, configuration or {})
    try:
        await world.follower.follow(TABLE)
        yield world
    finally:
        await world.queue.redis.aclose()


async def test_a_job_for_a_hot_partition_waits_and_commits_group_by_group_and_others_do_not(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.merges(6)
        await world.append(HOT)
        await world.append(COOL)
        jobs = await world.jobs()
        assert {partition: job.state for partition, job in jobs.items()} == {
            HOT: JobState.DELAYED,
            COOL: JobState.QUEUED,
        }
        assert JobPayload.decode(jobs[HOT].payload).is_contended
        assert not JobPayload.decode(jobs[COOL].payload).is_contended
        newest = {record.partition: record for record in await LedgerReader(world.queue).newest(TABLE.id, limit=2)}
        assert newest[HOT].verdict is DecisionKind.DEFER
        assert "of the last hour" in newest[HOT].message
        assert newest[COOL].verdict is DecisionKind.ENQUEUE
        for record in await LedgerReader(world.queue).newest(TABLE.id, limit=100):
            assert recompute(record) is record.verdict
            assert contradictions(record) == ()
        assert (await world.counters())["deferred"] >= 1


@pytest.mark.parametrize(
    ("policy", "state"), [("always", JobState.QUEUED), ("defer", JobState.DELAYED), ("never", None)]
)
async def test_the_tables_dml_policy_says_what_becomes_of_a_hot_partition(
    redis_url: str, policy: str, state: JobState | None
) -> None:
    async with in_world(redis_url, {"lakewright.dml-policy": policy}) as world:
        await world.merges(6)
        await world.append(HOT)
        job = (await world.jobs()).get(HOT)
        assert (job.state if job else None) == state
        if state is None:
            (record,) = await LedgerReader(world.queue).newest(TABLE.id, limit=1)
            assert (record.verdict, record.reason) == (DecisionKind.SKIP, Reason.DEFERRED_TO_WRITERS)
            assert recompute(record) is DecisionKind.SKIP
            assert contradictions(record) == ()
            assert (await world.counters())["deferred_to_writers"] >= 1


async def test_a_partition_that_has_cooled_down_is_served_at_once_and_heat_outlasts_a_rebuild(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.merges(6)
        changed = TableMetadata(
            "u-1", (PartitionColumn("dt", "dt", "string"),), {"lakewright.max-write-contention": "0.2"}
        )
        world.log.add(metadata=changed, data_change=False)
        await world.follower.follow(TABLE)
        cursor = await TableStateStore(world.queue).state(TABLE.id)
        assert cursor is not None
        assert cursor.contention.busy_ratio(HOT, world.now_ms) > 0
        await world.append(HOT)
        assert (await world.jobs())[HOT].state is JobState.DELAYED
        world.now_ms += 180 * MINUTE
        await world.append(HOT)
        assert (await world.jobs())[HOT].state is JobState.QUEUED


async def test_aborts_that_a_commit_of_ours_may_have_caused_are_counted(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.merges(2)
        rewritten = (await world.log.snapshot()).files[:2]
        merged = DataFile("ours", sum(file.size_bytes for file in rewritten), HOT)
        world.log.command("OPTIMIZE", world.now_ms + 6 * MINUTE, 0, [merged], by_us=True)
        gone = [RemovedFile(file.path, None, file.size_bytes, HOT) for file in rewritten]
        world.log.commits[-1] = replace(world.log.commits[-1], removed=tuple(gone))
        world.log.command("MERGE", world.now_ms + 13 * MINUTE, 5 * MINUTE, world.files(HOT, 1))
        await world.follower.follow(TABLE)
        assert (await world.counters())["possible_dml_aborts"] == 1
