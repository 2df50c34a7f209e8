"""A look that failed for the moment is taken again by itself, after pauses that grow, are bounded and differ."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from decider.events.refresh_queue import RefreshQueue, RefreshRetryPolicy
from shared.errors import RetryableError
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.redis_server import RedisServer
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


def settings(redis_url: str, lake: Path) -> Any:
    roots, buckets = (lake.as_uri(),), {"lake": lake.as_uri()}
    return decider_settings(redis_url, roots=roots, buckets=buckets, discovery_requests_per_s=10_000.0)


def test_a_look_that_failed_for_the_moment_is_taken_again_by_itself(own_redis_server: RedisServer, lake: Path) -> None:
    """The store is away while an event is read, and no other event and no sweep comes."""
    live = LiveDecider(settings(own_redis_server.url, lake)).start()
    try:
        table = WrittenTable(lake / "orders")
        name = live.register(table.path)
        away, real = [True], live.services.inbox._handle

        async def hiccup(found: Any, version: int | None) -> None:
            if away[0]:
                raise RetryableError("the store is away")
            await real(found, version)

        live.services.inbox._handle = hiccup
        live.services.inbox._patience = RefreshRetryPolicy(first_s=0.05, longest_s=0.2, tries=1_000)
        table.append(3)
        live.post("/v1/events", table.event(table.version))
        until("it waits for its retry", lambda: live.services.inbox.retrying == 1)
        away[0] = False
        until("it was followed", lambda: live.get(f"/v1/tables/{name}")["state"]["version"] == table.version)
        assert live.partitions(name) == table.recount()
    finally:
        live.close()


def test_a_redis_that_was_away_is_come_back_to(own_redis_server: RedisServer, lake: Path) -> None:
    live = LiveDecider(settings(own_redis_server.url, lake)).start()
    try:
        live.services.inbox._patience = RefreshRetryPolicy(first_s=0.05, longest_s=0.2, tries=1_000)
        table = WrittenTable(lake / "orders")
        name = live.register(table.path)
        known = live.run(live.services.registry.find(name))
        assert known is not None
        own_redis_server.kill()
        table.append(3)
        live.run(live.services.inbox.put(known, table.version))
        until("it waits for its retry", lambda: live.services.inbox.retrying == 1)
        own_redis_server.start()
        until("it was followed", lambda: live.services.inbox.backlog + live.services.inbox.retrying == 0)
        assert live.get(f"/v1/tables/{name}")["state"]["version"] == table.version
    finally:
        live.close()


def test_retries_are_bounded_and_events_do_not_shorten_the_pause() -> None:
    looks: list[str] = []

    async def story() -> None:
        fourth = asyncio.Event()

        async def fails(found: Any, _version: int | None) -> None:
            looks.append(found.name)
            if len(looks) == 4:
                fourth.set()
            raise RetryableError("away")

        inbox = RefreshQueue(fails, workers=2, patience=RefreshRetryPolicy(first_s=0.001, longest_s=0.002, tries=4))
        work = asyncio.create_task(inbox.run())
        await inbox.put(_table(), None)
        await fourth.wait()
        await inbox.drained()
        assert inbox.retrying == 0
        inbox._patience = RefreshRetryPolicy(first_s=60)
        await inbox.put(_table(), 5)
        await inbox.drained()
        for version in range(6, 10):
            await inbox.put(_table(), version)
        assert (len(looks), inbox.retrying, inbox.backlog) == (5, 1, 0)
        await inbox.put(_table(), None)
        await inbox.drained()
        assert len(looks) == 6
        work.cancel()

    asyncio.run(asyncio.wait_for(story(), scaled(20)))


def test_pauses_double_up_to_a_bound_and_are_never_the_same_for_all() -> None:
    patience = RefreshRetryPolicy(first_s=1, longest_s=60)
    for failures in range(1, 30):
        drawn = [patience.pause_s(failures) for _ in range(50)]
        longest = min(60, 2 ** (failures - 1))
        assert longest / 2 <= min(drawn) < max(drawn) <= longest


def _table() -> Any:
    from shared.table import TableId, TableRef

    return TableRef(TableId("t"), "t", "file:///t")
