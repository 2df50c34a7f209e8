"""The inbox and the sweep outlast everything that a table or the store can do to them."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.background import table_refreshes
from decider.background.runner import run_periodically
from decider.background.table_refreshes import BURST_S, SPREAD, Sweep
from decider.events.refresh_queue import RefreshQueue
from decider.store.registry.table_registry import TableRegistry
from shared.errors import RetryableError
from shared.table import TableId, TableRef
from tests.support.refreshing import refreshing
from tests.support.time_limits import scaled

DEADLINE_S = 10


def table(name: str) -> TableRef:
    return TableRef(TableId(name), name, f"file:///{name}")


def within_deadline(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, scaled(DEADLINE_S)))


@pytest.mark.parametrize("raised", [RetryableError("away"), KeyError("a log that no one foresaw")])
def test_one_tables_trouble_ends_no_others_following(raised: Exception) -> None:
    seen: list[str] = []

    async def handle(found: TableRef, _version: int | None) -> None:
        seen.append(found.name)
        if found.name == "bad":
            raise raised

    async def work() -> None:
        inbox = RefreshQueue(handle, workers=1)
        running = asyncio.create_task(refreshing(inbox))
        await inbox.put(table("bad"), None)
        await inbox.put(table("good"), None)
        await inbox.drained()
        assert not running.done()
        running.cancel()

    within_deadline(work())
    assert seen == ["bad", "good"]


def test_who_waits_for_silence_swallows_no_wake_up() -> None:
    async def work() -> None:
        release, seen = asyncio.Event(), asyncio.Queue[str]()

        async def handle(found: TableRef, _version: int | None) -> None:
            seen.put_nowait(found.name)
            if found.name == "slow":
                await release.wait()

        inbox = RefreshQueue(handle, workers=2)
        running = asyncio.create_task(refreshing(inbox))
        await inbox.put(table("slow"), None)
        await inbox.put(table("first"), None)
        assert {await seen.get(), await seen.get()} == {"slow", "first"}
        silence = asyncio.create_task(inbox.drained())
        await inbox.put(table("second"), None)
        assert await seen.get() == "second"
        await inbox.put(table("third"), None)
        assert await seen.get() == "third"
        assert not silence.done()
        release.set()
        await silence
        running.cancel()

    within_deadline(work())


def test_a_table_named_again_while_it_runs_is_read_again_with_the_newest_version() -> None:
    async def work() -> None:
        release = asyncio.Event()
        started, versions = asyncio.Event(), list[int | None]()

        async def handle(_found: TableRef, version: int | None) -> None:
            versions.append(version)
            started.set()
            await release.wait()

        inbox = RefreshQueue(handle, workers=4)
        running = asyncio.create_task(refreshing(inbox))
        await inbox.put(table("t"), 1)
        await started.wait()
        for version in (5, 3, 4):
            await inbox.put(table("t"), version)
        assert inbox.oldest_wait_s >= 0
        release.set()
        await inbox.drained()
        assert versions == [1, 5]
        assert (inbox.backlog, inbox.oldest_wait_s) == (0, 0.0)
        running.cancel()

    within_deadline(work())


class _AwayAtFirst:
    """A registry whose Redis comes back at the third call."""

    def __init__(self) -> None:
        self.calls = 0

    async def count(self) -> int:
        self.calls += 1
        if self.calls < 3:
            raise RetryableError("Redis does not answer")
        return 1

    async def all(self) -> AsyncIterator[TableRef]:
        yield table("t")


def test_the_sweep_waits_for_a_redis_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_refreshes, "RETRY_S", 0.001)
    registry = _AwayAtFirst()

    async def work() -> None:
        refreshed = asyncio.Event()

        async def handle(_found: TableRef, _version: int | None) -> None:
            refreshed.set()

        inbox = RefreshQueue(handle)
        tasks = [
            asyncio.create_task(refreshing(inbox)),
            asyncio.create_task(
                run_periodically(Sweep(cast("TableRegistry", registry), inbox, interval_s=3600), name="sweep")
            ),
        ]
        await refreshed.wait()
        for task in tasks:
            task.cancel()

    within_deadline(work())
    assert registry.calls == 3


class Registry:
    """Four tables, behind a Redis that is away at the first call."""

    def __init__(self) -> None:
        self.calls = 0

    async def count(self) -> int:
        self.calls += 1
        if self.calls == 1:
            raise RetryableError("away")
        return 4

    async def all(self) -> AsyncIterator[TableRef]:
        for number in range(4):
            yield TableRef(TableId(f"t{number}"), f"t{number}", f"file:///t{number}")


async def unused(_table: TableRef, _version: int | None) -> None:
    raise AssertionError("nothing serves the queue")


def test_the_first_sweep_comes_at_once_and_the_next_ones_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses_s: list[float] = []

    async def noted(pause_s: float) -> None:
        pauses_s.append(pause_s)

    async def story() -> None:
        sweep = Sweep(cast("TableRegistry", Registry()), RefreshQueue(unused), interval_s=100.0)
        with pytest.raises(RetryableError):
            await sweep.run_once()
        assert (await sweep.run_once()).tables == 4
        assert pauses_s == []
        assert (await sweep.run_once()).tables == 4
        assert pauses_s == [100.0 * SPREAD / 4] * 4
        await sweep.run_once(spread_s=0.0)
        assert len(pauses_s) == 4

    monkeypatch.setattr(asyncio, "sleep", noted)
    asyncio.run(story())


class World:
    """A registry of so many tables, and a queue that notes them and the pauses between them."""

    def __init__(self, tables: int) -> None:
        self._tables = tables
        self.done: list[str | float] = []

    async def count(self) -> int:
        return self._tables

    async def all(self) -> AsyncIterator[TableRef]:
        for number in range(self._tables):
            yield TableRef(TableId(f"t{number}"), f"t{number}", f"file:///t{number}")

    async def put_swept(self, table: TableRef) -> None:
        self.done.append(table.name)

    async def sleep(self, pause_s: float) -> None:
        self.done.append(pause_s)

    @property
    def pauses(self) -> list[float]:
        return [one for one in self.done if isinstance(one, float)]


def swept(tables: int, spread_s: float) -> World:
    world: Any = World(tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "sleep", world.sleep)
        result = asyncio.run(Sweep(world, world, interval_s=300).run_once(spread_s=spread_s))
    assert result.tables == tables
    assert [one for one in world.done if isinstance(one, str)] == [f"t{number}" for number in range(tables)]
    found: World = world
    return found


def test_many_tables_come_in_bursts_and_few_one_by_one() -> None:
    assert swept(100, 10.0).pauses == [1.0] * 10
    assert swept(3, 30.0).pauses == [10.0] * 3
    assert swept(100, 0.0).pauses == []


@given(st.integers(0, 500), st.floats(0.1, 1_000))
def test_a_sweep_takes_its_time_and_bursts_are_small(tables: int, spread_s: float) -> None:
    world = swept(tables, spread_s)
    each_s = spread_s / tables if tables else 0.0
    assert sum(world.pauses) <= spread_s * 1.001
    assert spread_s - sum(world.pauses) <= max(1.5 * BURST_S, each_s) + 0.001 or not tables
    assert all(pause_s <= max(1.5 * BURST_S, each_s) * 1.001 for pause_s in world.pauses)
