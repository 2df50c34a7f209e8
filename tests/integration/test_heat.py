"""Writers come first: where MERGE, UPDATE and DELETE are at work jobs wait, or are not made at all."""

import asyncio
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from decider.archive.ledger_reader import LedgerReader
from decider.decide.actions import ACTIONS
from decider.decide.decision import DecisionKind
from decider.store.tables.ingest import CounterReader
from decider.store.tables.table_state import TableStateStore
from shared.jobs.payload import (
    CHECKPOINT,
    CLUSTER,
    COMPACT,
    DEDUPLICATE,
    INDEX,
    VACUUM,
    JobPayload,
)
from shared.layout.eligibility import Reason
from shared.policy.policy import MIB
from shared.queue import commands, queries
from shared.queue.model import Band, Claim, JobKey, JobRequest, JobState, job_id
from shared.queue.records import JobView
from shared.table import DataFile, PartitionKey, RemovedFile, TableMetadata
from tests.support.decisions import contradictions, recompute
from tests.support.queue_bench import end_of
from tests.support.timed_world import DT, HOUR_MS, TABLE, World, in_world, partition

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


CARED_FOR = {
    "lakewright.vacuum": "on",
    "lakewright.min-retain": "1 hour",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "lakewright.checkpoint-every": "2",
    "lakewright.primary-key": "id",
    "lakewright.sequence-by": "ts",
    "lakewright.deduplicate-every": "1h",
}
TABLES = 100
"""Tables with a due job of each kind, beside the hot one."""

ACTORS = 3
ROUNDS = 40
HOT_PARTITIONS = [partition(f"hot {number}") for number in range(6)]


def again(job: JobView, table: str) -> JobRequest:
    """The same request about another table."""
    key = JobKey(table, job.key.partition, job.key.kind)
    return JobRequest(key, job.tenant, job.band, job.priority, job.cost_bytes, job.version, job.payload)


async def due_jobs(world: World) -> list[JobView]:
    """Let commits and the clock make each kind of work on the whole table due."""
    for _ in range(4):
        file = world.file(partition("old"), 9 * MIB)
        world.log.add([file])
        world.log.add((), [RemovedFile(file.path, None, 9 * MIB, file.partition, tags={})])
    await world.decider.follow()
    world.now_ms += 1_000 * HOUR_MS
    await world.decider.tick()
    return [job for job in await world.jobs() if job.key.kind != COMPACT]


@pytest.mark.parametrize("seed", range(3))
async def test_no_work_on_a_whole_table_starts_while_a_rewrite_waits(redis_url: str, seed: int) -> None:
    """A vacuum is charged nothing: by fair shares alone, a hundred of them went before the next rewrite."""
    dice, served = random.Random(seed), Counter[str]()
    async with in_world(redis_url, CARED_FOR) as world:
        name = world.queue.name
        due = await due_jobs(world)
        assert {job.key.kind for job in due} == {VACUUM, CHECKPOINT, DEDUPLICATE}
        assert {job.band for job in due} == {Band.BACKGROUND}
        requests = [again(job, f"other-{at}") for job in due for at in range(TABLES)]
        await asyncio.gather(*(world.queue.run(commands.enqueue(name, request)) for request in requests))
        running: list[Claim] = []
        for turn in range(ROUNDS):
            if dice.random() < 0.5:
                for _ in range(dice.randrange(1, 4)):
                    await world.write(dice.choice(HOT_PARTITIONS), [MIB] * 9)
            found = [
                await world.queue.run(queries.job(name, job_id(JobKey(TABLE.id, one, COMPACT))))
                for one in HOT_PARTITIONS
            ]
            waiting = [job for job in found if job is not None and job.state is JobState.QUEUED]
            take = commands.claim(name, worker="w", nonce=f"c{turn}", slots=ACTORS, lease_ms=60_000)
            claims = await world.queue.run(take)
            served.update(claim.key.kind for claim in claims)
            order = [claim.key.kind == COMPACT for claim in claims]
            assert order == sorted(order, reverse=True), "work on a table started before a rewrite"
            assert sum(order) == min(len(waiting), ACTORS), "a rewrite waited while work on a table started"
            running += claims
            dice.shuffle(running)
            while len(running) > dice.randrange(ACTORS):
                await world.queue.run(end_of(running.pop()))
    assert served[COMPACT] > ROUNDS / 4
    assert sum(served[kind] for kind in (VACUUM, CHECKPOINT, DEDUPLICATE)) > ROUNDS / 4


def test_each_automatic_action_on_a_table_waits_in_the_background_unless_it_rewrites() -> None:
    """A new action that rewrites is a decision about its band."""
    assert {action.kind for action in ACTIONS.table_actions if action.is_rewrite} == {CLUSTER, INDEX}
