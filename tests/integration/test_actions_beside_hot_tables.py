"""Vacuums and other work on whole tables never delay a rewrite: one real queue, real decisions, many actors."""

import asyncio
import random
from collections import Counter

import pytest

from decider.decide.actions import ACTIONS
from shared.jobs.payload import (
    CHECKPOINT,
    CLUSTER,
    COMPACT,
    DEDUPLICATE,
    INDEX,
    REWRITE_MANIFESTS,
    SET_PROPERTIES,
    VACUUM,
)
from shared.policy.policy import MIB
from shared.queue import commands, queries
from shared.queue.model import Band, Claim, JobKey, JobRequest, JobState, job_id
from shared.queue.records import JobView
from shared.table import RemovedFile
from tests.support.queue_bench import end_of
from tests.support.timed_world import HOUR_MS, TABLE, World, in_world, partition

pytestmark = pytest.mark.redis

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
HOT = [partition(f"hot {number}") for number in range(6)]


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
                    await world.write(dice.choice(HOT), [MIB] * 9)
            found = [await world.queue.run(queries.job(name, job_id(JobKey(TABLE.id, one, COMPACT)))) for one in HOT]
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
    """The list is that of the product: a new action is a decision about its band."""
    assert {action.kind: action.is_rewrite for action in ACTIONS.table_actions} == {
        VACUUM: False,
        CHECKPOINT: False,
        DEDUPLICATE: False,
        CLUSTER: True,
        INDEX: True,
        REWRITE_MANIFESTS: False,
        SET_PROPERTIES: False,
    }
