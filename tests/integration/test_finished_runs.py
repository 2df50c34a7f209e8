"""After a run a table is refreshed at once; a refresh takes few round trips, and a rebuild any number of partitions."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from actor.queue_executor import SyncQueueExecutor, connect
from decider.archive.ledger_reader import LedgerReader
from decider.optimize.on_demand import OnDemandOptimizer
from decider.optimize.property_trigger import PropertyTriggers
from decider.state.effective_policy import PolicyDefaults
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.registry.manual_runs import ManualRunStore
from decider.store.tables import ingest as storing
from decider.store.tables.ingest import PARTITIONS_INLINE
from decider.tracking.rebuild import RECORDS
from decider.tracking.refresh import TableRefresher
from shared.policy.policy import MIB
from shared.queue import commands, keys
from shared.queue.model import StagedState
from shared.table import TableMetadata
from tests.integration.test_follow import FollowedWorld, files
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.memory_log import MemoryLog
from tests.support.queue_bench import end_of
from tests.support.timed_world import DT, HOUR_MS, POLICY, TABLE, TWO_SMALL, Alone, in_world, partition
from tests.support.waiting import until

pytestmark = pytest.mark.redis


def run_one_job(queue: SyncQueueExecutor, table: WrittenTable, *, commits: int) -> None:
    """Claim the job that waits, commit as its rewrite would, and report it."""
    claims = queue.run(commands.claim("default", worker="w", nonce="n", slots=1, lease_ms=60_000))
    assert len(claims) == 1
    before = table.version
    table.append(commits)
    report = {"versions": list(range(before + 1, table.version + 1)), "recovered_version": None}
    queue.run(end_of(claims[0], seen_version=table.version, result=json.dumps(report)))


def test_after_a_job_the_table_shows_the_new_version_without_event_or_sweep(
    decider: LiveDecider, redis_url: str, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    table.append(11)
    name = decider.register(table.path, "orders")
    decider.run(decider.task("finished_runs").run_once())  # From here on it reads, as it does within a second.
    run_one_job(SyncQueueExecutor(connect(redis_url), "default"), table, commits=1)

    def shown() -> int:
        return int(decider.get(f"/v1/tables/{name}")["state"]["version"])

    until("the rewrite is shown", lambda: shown() == table.version)


def test_a_job_that_committed_nothing_costs_no_read(decider: LiveDecider, redis_url: str, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    table.append(11)
    decider.register(table.path, "orders")
    decider.run(decider.task("finished_runs").run_once())
    reads = decider.reads()
    run_one_job(SyncQueueExecutor(connect(redis_url), "default"), table, commits=0)
    decider.run(decider.task("finished_runs").run_once())
    decider.drain()
    assert decider.reads() == reads


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


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is sent to Redis: pipelines, and commands outside of them."""
    sent: Counter[str] = Counter()
    execute, command = Pipeline.execute, Redis.execute_command

    async def pipelined(self: Any, *args: Any, **kwargs: Any) -> Any:
        sent["pipeline"] += 1
        return await execute(self, *args, **kwargs)

    async def commanded(self: Any, *args: Any, **kwargs: Any) -> Any:
        sent[str(args[0])] += 1
        return await command(self, *args, **kwargs)

    monkeypatch.setattr(Pipeline, "execute", pipelined)
    monkeypatch.setattr(Redis, "execute_command", commanded)
    return sent


async def test_a_refresh_that_applies_a_commit_takes_three_round_trips(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = FollowedWorld(redis_url)
    defaults = Alone(PolicyDefaults(POLICY))
    clock = lambda: world.now_ms  # noqa: E731 - a name for what three of them share
    on_demand = OnDemandOptimizer(world.queue, world.decider.follower, lambda _: world.log, clock)
    triggers = PropertyTriggers(ManualRunStore(world.queue.redis), on_demand, defaults, clock)
    refresher = TableRefresher(world.decider.follower, world.registry, world.queue, clock, after=triggers.process)
    await world.registry.register(TABLE)
    await refresher.refresh(TABLE, None)
    version = world.log.add(files(partition(1), 3))
    await refresher.refresh(TABLE, version)
    version = world.log.add(files(partition(1), 3, "more"))
    sent = counted(monkeypatch)
    await refresher.refresh(TABLE, version)
    # What is stored of the table; the partitions; the step.
    assert sent == {"pipeline": 2, "FCALL": 1}
    monkeypatch.undo()
    await world.expect_exact()
    await world.queue.redis.aclose()
