"""No decision is lost or doubled in the archive, whoever is slow, and whatever the archive's log has forgotten."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shared.queue import keys
from tests.support.archive_world import World, in_world

pytestmark = pytest.mark.redis


def test_a_decider_that_was_overtaken_while_it_planned_does_not_move_places_back(
    redis_url: str, tmp_path: Path
) -> None:
    """It saw fewer records than the one that overtook it: its batch must not end before what is archived."""

    async def story(world: World) -> None:
        await world.write(2)
        slow, looked, goes_on = world.decider(), asyncio.Event(), asyncio.Event()
        ahead = slow.batches.ahead

        async def looks_and_waits(*args: Any, **named: Any) -> Any:
            found = await ahead(*args, **named)
            looked.set()
            await goes_on.wait()
            return found

        slow.batches.ahead = looks_and_waits  # type: ignore[method-assign]
        going = asyncio.create_task(slow.run_once())
        await looked.wait()
        await world.write(3)
        await world.decider().run_once()
        world.expect_each_once()
        places = await world.queue.redis.hgetall(keys.archived("default"))
        goes_on.set()
        await going
        assert await world.queue.redis.hgetall(keys.archived("default")) == places
        await world.write(1)
        await world.decider().run_once()
        world.expect_each_once()

    in_world(redis_url, tmp_path, story)
