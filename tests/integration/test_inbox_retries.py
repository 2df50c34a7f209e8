"""A refresh that failed for the moment is taken again by itself, after pauses that grow, are bounded and differ."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from decider.background.discovery import DiscoveryLimits
from decider.background.table_refreshes import Sweep
from decider.events.refresh_queue import FAILED_REFRESH, RefreshQueue
from shared.errors import RetryableError
from shared.retry import RetryPolicy
from shared.table import TableId, TableRef
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.redis_server import RedisServer
from tests.support.refreshing import refreshing
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.redis

FAST = DiscoveryLimits(interval_s=0, requests_per_s=10_000.0)


def settings(redis_url: str, lake: Path) -> Any:
    roots, buckets = (lake.as_uri(),), {"lake": lake.as_uri()}
    return decider_settings(redis_url, roots=roots, buckets=buckets, discovery=FAST)


def test_a_look_that_failed_for_the_moment_is_taken_again_by_itself(own_redis_server: RedisServer, lake: Path) -> None:
    """The store is away while an event is read, and no other event and no sweep comes."""
    with LiveDecider(settings(own_redis_server.url, lake)) as live:
        refreshes = live.services.requests.refresh_queue
        table = WrittenTable(lake / "orders")
        name = live.register(table.path)
        away, real = [True], refreshes._handle

        async def hiccup(found: Any, version: int | None) -> None:
            if away[0]:
                raise RetryableError("the store is away")
            await real(found, version)

        refreshes._handle = hiccup
        refreshes._retry_policy = RetryPolicy(1_000, 0.05, 0.2)
        table.append(3)
        live.post("/v1/events", table.event(table.version))
        until("it waits for its retry", lambda: refreshes.retrying == 1)
        away[0] = False
        until("it was followed", lambda: live.get(f"/v1/tables/{name}")["state"]["version"] == table.version)
        assert live.partitions(name) == table.count_files()


def test_a_redis_that_was_away_is_come_back_to(own_redis_server: RedisServer, lake: Path) -> None:
    with LiveDecider(settings(own_redis_server.url, lake)) as live:
        refreshes = live.services.requests.refresh_queue
        refreshes._retry_policy = RetryPolicy(1_000, 0.05, 0.2)
        table = WrittenTable(lake / "orders")
        name = live.register(table.path)
        known = live.run(live.services.tables.registry.find(name))
        assert known is not None
        own_redis_server.kill()
        table.append(3)
        live.run(refreshes.put(known, table.version))
        until("it waits for its retry", lambda: refreshes.retrying == 1)
        own_redis_server.start()
        until("it was followed", lambda: refreshes.backlog + refreshes.retrying == 0)
        assert live.get(f"/v1/tables/{name}")["state"]["version"] == table.version


def test_retries_are_bounded_and_events_do_not_shorten_the_pause() -> None:
    refreshes: list[str] = []

    async def story() -> None:
        fourth = asyncio.Event()

        async def fails(found: Any, _version: int | None) -> None:
            refreshes.append(found.name)
            if len(refreshes) == 4:
                fourth.set()
            raise RetryableError("away")

        inbox = RefreshQueue(fails, workers=2, retry_policy=RetryPolicy(4, 0.001, 0.002))
        work = asyncio.create_task(refreshing(inbox))
        await inbox.put(_table(), None)
        await fourth.wait()
        await inbox.drained()
        assert inbox.retrying == 0
        inbox._retry_policy = RetryPolicy(8, 60.0)
        await inbox.put(_table(), 5)
        await inbox.drained()
        for version in range(6, 10):
            await inbox.put(_table(), version)
        assert (len(refreshes), inbox.retrying, inbox.backlog) == (5, 1, 0)
        await inbox.put(_table(), None)
        await inbox.drained()
        assert len(refreshes) == 6
        work.cancel()

    asyncio.run(asyncio.wait_for(story(), scaled(20)))


def test_pauses_double_up_to_a_bound_and_are_never_the_same_for_all() -> None:
    queue = RefreshQueue(_fails, retry_policy=FAILED_REFRESH)
    for failures in range(1, 30):
        drawn = [queue._pause_s(failures) for _ in range(50)]
        longest = min(60, 2 ** (failures - 1))
        assert longest / 2 <= min(drawn) < max(drawn) <= longest


async def _fails(found: Any, version: int | None) -> None:
    raise RetryableError(f"the store of {found} is away at {version}")


def _table() -> Any:
    from shared.table import TableId, TableRef

    return TableRef(TableId("t"), "t", "file:///t")


class Held(RefreshQueue):
    """Passes on to another inbox what it is given, once it may."""

    def __init__(self, real: RefreshQueue) -> None:
        self.real = real
        self.reached, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def put_swept(self, table: TableRef) -> None:
        """Wait, then pass on."""
        self.reached.set()
        await self.may_go_on.wait()
        await self.real.put_swept(table)


def test_a_table_switched_off_during_a_sweep_stays_switched_off(redis_url: str, tmp_path: Path) -> None:
    with LiveDecider(decider_settings(redis_url)) as live:
        names = []
        for place in ("orders", "items"):
            table = WrittenTable(tmp_path / place, days=("2026-01-01",))
            table.append(11)
            names.append(live.register(table.path, place))
        assert len(live.get("/v1/jobs")["jobs"]) == 2
        held = Held(live.services.requests.refresh_queue)
        sweep = Sweep(live.services.tables.registry, held, interval_s=1)

        async def begun() -> asyncio.Task[object]:
            task: asyncio.Task[object] = asyncio.ensure_future(sweep.run_once(spread_s=0.001))
            await held.reached.wait()
            return task

        task = live.run(begun())
        for name in names:
            stated = {"properties": {"lakewright.enabled": "false"}}
            assert live.client.patch(f"/v1/tables/{name}", json=stated).status_code == 200
        live.drain()
        before = {name: live.get(f"/v1/tables/{name}")["state"] for name in names}
        assert live.get("/v1/jobs")["jobs"] == []

        async def ended() -> None:
            held.may_go_on.set()
            await task

        live.run(ended())
        live.drain()
        assert live.get("/v1/jobs")["jobs"] == []
        assert {name: live.get(f"/v1/tables/{name}")["state"] for name in names} == before, "a rebuild"


def test_of_two_askings_the_later_registration_is_handed_on() -> None:
    handed: list[TableRef] = []

    async def story() -> None:
        async def taken(table: TableRef, _version: int | None) -> None:
            handed.append(table)

        inbox = RefreshQueue(taken)
        for name in ("before", "after"):
            await inbox.put(TableRef(TableId("t"), name, "file:///t"), None)
        work = asyncio.create_task(refreshing(inbox))
        await inbox.drained()
        work.cancel()

    asyncio.run(asyncio.wait_for(story(), scaled(20)))
    assert [table.name for table in handed] == ["after"]
