"""Redis round trips of a refresh: each costs a decider more than deciding about a partition."""

from collections import Counter
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from decider.optimize.on_demand import OnDemandOptimizer
from decider.optimize.property_trigger import PropertyTriggers
from decider.state.effective_policy import PolicyDefaults
from decider.store.registry.manual_runs import ManualRunStore
from decider.tracking.refresh import TableRefresher
from tests.integration.test_follow import FollowedWorld, files
from tests.support.defaults import Alone
from tests.support.timed_world import POLICY, TABLE, partition

pytestmark = pytest.mark.redis


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
