"""A timer that fires for a table that has become refused meanwhile queues nothing."""

import pytest

from shared.table import TableProtocol
from tests.support.timed_world import HOUR_MS, TWO_SMALL, in_world, partition

pytestmark = pytest.mark.redis

CLUSTERED = TableProtocol(1, 7, frozenset(), frozenset({"clustering", "domainMetadata"}))


async def test_a_timer_of_a_table_that_became_refused_unseen_queues_nothing_and_ends(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        world.log.add(protocol=CLUSTERED, data_change=False)
        world.now_ms += 7 * HOUR_MS
        await world.decider.tick()

        assert await world.jobs() == []
        world.now_ms += 7 * HOUR_MS
        assert (await world.decider.tick()).timers == 0


async def test_the_timers_of_a_table_that_is_accepted_again_are_set_again(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        world.log.add(protocol=CLUSTERED, data_change=False)
        await world.decider.follow()
        world.log.add(protocol=TableProtocol(1, 2), data_change=False)
        await world.decider.follow()
        world.now_ms += 7 * HOUR_MS
        await world.decider.tick()

        assert len(await world.jobs()) == 1
