"""Strangers' places, however slow their store is, hold up neither known tables nor fill the memory."""

import asyncio

import pytest

from decider.events.refresh_queue import RefreshQueue
from decider.events.resolver import CONCURRENT_PROBES, MAX_PROBES, MAX_PROBES_PER_DELIVERY, AllowedRoots, EventResolver
from decider.events.table_hint import TableHint
from decider.store.redis.queue_executor import connect
from decider.store.registry.table_registry import TableRegistry
from shared.paths.locations import table_id
from shared.table import TableRef
from tests.support.time_limits import scaled

pytestmark = pytest.mark.redis

ROOT = "s3://lake"


class SlowLake:
    """A store that answers when it is allowed to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = asyncio.Semaphore(0)

    async def has_table(self, path: str) -> bool:
        """Say that there is no table, in the end."""
        assert path
        self.begun.release()
        await self.go.wait()
        return False

    def path_of(self, location: str) -> str:
        """Return the location without its root."""
        return location.removeprefix(ROOT)


async def never(_: TableRef, __: int | None) -> None:
    """Look at nothing."""
    raise AssertionError("the inbox does not run")


async def test_an_event_of_a_catalog_refreshes_the_table_of_its_name_in_every_catalog_and_one_registered_by_it(
    redis_url: str,
) -> None:
    async with connect(redis_url) as redis:
        registry, inbox = TableRegistry(redis, now_ms=lambda: 0), RefreshQueue(never)
        roots = ("catalog://a", "catalog://b/db", ROOT)
        intake = EventResolver(registry, inbox, AllowedRoots(roots))
        places = ["catalog://a/db/t", "catalog://b/db/t", f"{ROOT}/renamed"]
        for number, place in enumerate(places[:2]):
            await registry.register(TableRef(table_id(place), f"t{number}", place))
        hint = TableHint(name="db.t", catalog_path=("db", "t"))
        assert await intake.accept([hint]) == (1, {})
        assert inbox.backlog == 2
        await registry.register(TableRef(table_id(places[2]), "db.t", places[2]))
        assert await intake.accept([hint]) == (1, {})
        assert inbox.backlog == 3
        # A name that is too long for a location is no table, and no error of the other events.
        long = TableHint(catalog_path=("d" * 1_000, "t" * 1_042))
        assert await intake.accept([long, hint]) == (1, {"unknown_table": 1})


async def test_known_tables_do_not_wait_for_strangers_and_looks_do_not_pile_up(redis_url: str) -> None:
    async with connect(redis_url) as redis:
        registry, inbox, lake = TableRegistry(redis, now_ms=lambda: 0), RefreshQueue(never), SlowLake()
        intake = EventResolver(registry, inbox, AllowedRoots((ROOT,), lambda _: lake))
        known = f"{ROOT}/known"
        await registry.register(TableRef(table_id(known), "known", known))

        def delivery(number: int) -> list[TableHint]:
            places = [f"{ROOT}/forged/{number}/{one}" for one in range(MAX_PROBES_PER_DELIVERY)]
            return [TableHint(location=place) for place in (*places, known)]

        async with asyncio.TaskGroup() as group:
            slow = [
                group.create_task(intake.accept(delivery(number)))
                for number in range(MAX_PROBES // MAX_PROBES_PER_DELIVERY)
            ]
            for _ in range(CONCURRENT_PROBES):
                await lake.begun.acquire()
            async with asyncio.timeout(scaled(30)):
                while inbox.backlog == 0 or intake.probing < MAX_PROBES:  # noqa: ASYNC110 - a number is waited for
                    await asyncio.sleep(0)
                assert await intake.accept(delivery(-1)) == (1, {"unknown_table_limit": MAX_PROBES_PER_DELIVERY})
            assert not any(task.done() for task in slow)
            lake.go.set()
        assert [await task for task in slow] == [(1, {"table_not_found": MAX_PROBES_PER_DELIVERY})] * len(slow)
        assert (await intake.accept(delivery(-1)))[1] == {"table_not_found": MAX_PROBES_PER_DELIVERY}
