"""A sweep only requests looks: what a table is registered as is read when it is read, however old the asking."""

import asyncio
from pathlib import Path

import pytest

from decider.background.sweep import Sweep
from decider.events.refresh_queue import RefreshQueue
from shared.table import TableId, TableRef
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.refreshing import refreshing
from tests.support.time_limits import scaled

pytestmark = pytest.mark.redis


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
