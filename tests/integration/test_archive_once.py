"""No decision is lost or doubled in the archive, whoever is slow, and whatever the archive's log has forgotten."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from decider.background.ledger_archiver import APP
from shared.errors import RetryableError
from shared.queue import keys
from tests.support.archive_world import in_world

pytestmark = pytest.mark.redis


async def test_a_decider_that_was_overtaken_while_it_planned_does_not_move_places_back(
    redis_url: str, tmp_path: Path
) -> None:
    """It saw fewer records than the one that overtook it: its batch must not end before what is archived."""
    async with in_world(redis_url, tmp_path) as world:
        await world.write(2)
        slow, refreshed, goes_on = world.decider(), asyncio.Event(), asyncio.Event()
        ahead = slow.batches.ahead

        async def looks_and_waits(*args: Any, **named: Any) -> Any:
            found = await ahead(*args, **named)
            refreshed.set()
            await goes_on.wait()
            return found

        slow.batches.ahead = looks_and_waits  # type: ignore[method-assign]
        going = asyncio.create_task(slow.run_once())
        await refreshed.wait()
        await world.write(3)
        await world.decider().run_once()
        world.expect_each_once()
        places = await world.queue.redis.hgetall(keys.archived_up_to("default"))
        goes_on.set()
        await going
        assert await world.queue.redis.hgetall(keys.archived_up_to("default")) == places
        await world.write(1)
        await world.decider().run_once()
        world.expect_each_once()


@pytest.mark.parametrize("is_pending", [False, True])
async def test_an_archive_whose_log_was_cleaned_still_knows_what_it_holds(
    redis_url: str, tmp_path: Path, *, is_pending: bool
) -> None:
    """Redis comes back from a state that is older than the log's oldest commit: the notes of batches are gone."""
    async with in_world(redis_url, tmp_path) as world:
        names = (keys.archive_progress("default"), keys.archived_up_to("default"))
        await world.write(2)
        await world.decider().run_once(batch_records=3)
        await world.write(1)
        if is_pending:
            dying = world.decider()
            with pytest.raises(RetryableError, match="killed here"):
                await dying.dies_at(dying.batches, "note").run_once(batch_records=3)
        dumps = [await world.queue.redis.dump(name) for name in names]
        every = world.tables
        for some in (every, every, every[:1], every[:1]):
            world.tables = some
            await world.write(2)
            await world.decider().run_once(batch_records=3)
        world.expect_each_once()
        table = DeltaTable(str(world.folder))
        table.create_checkpoint()
        for version in range(table.version() - 1):
            (world.folder / "_delta_log" / f"{version:020}.json").unlink()
        assert await world.decider().archive.notes(APP, above=1) is None
        for name, dump in zip(names, dumps, strict=True):
            assert dump is not None
            await world.queue.redis.restore(name, 0, dump, replace=True)
        await world.decider().run_once()
        world.expect_each_once()
        world.tables = every
        await world.write(2)
        await world.decider().run_once()
        world.expect_each_once()
