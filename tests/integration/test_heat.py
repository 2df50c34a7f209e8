"""Writers come first: where MERGE, UPDATE and DELETE are at work jobs wait, or are not made at all."""

from dataclasses import replace
from typing import Any

import pytest

from decider.archive.ledger_reader import LedgerReader
from decider.decide.decision import DecisionKind
from decider.store.tables.counters import CounterReader
from decider.store.tables.table_state import TableStateStore
from shared.jobs.payload import JobPayload
from shared.layout.eligibility import Reason
from shared.queue.model import JobState
from shared.queue.records import JobView
from shared.table import DataFile, PartitionKey, RemovedFile, TableMetadata
from tests.support.recomputing import contradictions, recompute
from tests.support.timed_world import DT, TABLE, World, in_world, partition

pytestmark = pytest.mark.redis

MINUTE = 60_000
NOON = 500_000 * 60 * MINUTE
HOT, COOL = partition(1), partition(2)


class HotWorld(World):
    """A MERGE of five minutes ends in the hot partition every ten."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.now_ms = NOON

    def small(self, partition: PartitionKey, count: int) -> list[DataFile]:
        return [self.file(partition, 100_000) for _ in range(count)]

    async def merges(self, count: int) -> None:
        for _ in range(count):
            self.now_ms += 10 * MINUTE
            self.log.command("MERGE", self.now_ms, 5 * MINUTE, self.small(HOT, 1))
            await self.decider.follow()

    async def append(self, partition: PartitionKey) -> None:
        self.log.command("WRITE", self.now_ms, 1_000, self.small(partition, 9))
        await self.decider.follow()

    async def by_partition(self) -> dict[str, JobView]:
        return {job.key.partition: job for job in await self.jobs()}

    async def counters(self) -> dict[str, int]:
        return dict(await CounterReader(self.queue).read(TABLE.id))


async def test_a_job_for_a_hot_partition_waits_and_commits_group_by_group_and_others_do_not(redis_url: str) -> None:
    async with in_world(redis_url, of=HotWorld) as world:
        await world.merges(6)
        await world.append(HOT)
        await world.append(COOL)
        jobs = await world.by_partition()
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
    async with in_world(redis_url, {"lakewright.dml-policy": policy}, of=HotWorld) as world:
        await world.merges(6)
        await world.append(HOT)
        job = (await world.by_partition()).get(HOT)
        assert (job.state if job else None) == state
        if state is None:
            (record,) = await LedgerReader(world.queue).newest(TABLE.id, limit=1)
            assert (record.verdict, record.reason) == (DecisionKind.SKIP, Reason.DEFERRED_TO_WRITERS)
            assert recompute(record) is DecisionKind.SKIP
            assert contradictions(record) == ()
            assert (await world.counters())["deferred_to_writers"] >= 1


async def test_a_partition_that_has_cooled_down_is_served_at_once_and_heat_outlasts_a_rebuild(redis_url: str) -> None:
    async with in_world(redis_url, of=HotWorld) as world:
        await world.merges(6)
        changed = TableMetadata("u-1", DT, {"lakewright.max-write-contention": "0.2"})
        world.log.add(metadata=changed, data_change=False)
        await world.decider.follow()
        cursor = await TableStateStore(world.queue).state(TABLE.id)
        assert cursor is not None
        assert cursor.contention.busy_ratio(HOT, world.now_ms) > 0
        await world.append(HOT)
        assert (await world.by_partition())[HOT].state is JobState.DELAYED
        world.now_ms += 180 * MINUTE
        await world.append(HOT)
        assert (await world.by_partition())[HOT].state is JobState.QUEUED


async def test_aborts_that_a_commit_of_ours_may_have_caused_are_counted(redis_url: str) -> None:
    async with in_world(redis_url, of=HotWorld) as world:
        await world.merges(2)
        rewritten = (await world.log.snapshot()).files[:2]
        merged = DataFile("ours", sum(file.size_bytes for file in rewritten), HOT)
        world.log.command("OPTIMIZE", world.now_ms + 6 * MINUTE, 0, [merged], by_us=True)
        gone = [RemovedFile(file.path, None, file.size_bytes, HOT) for file in rewritten]
        world.log.commits[-1] = replace(world.log.commits[-1], removed=tuple(gone))
        world.log.command("MERGE", world.now_ms + 13 * MINUTE, 5 * MINUTE, world.small(HOT, 1))
        await world.decider.follow()
        assert (await world.counters())["possible_dml_aborts"] == 1
