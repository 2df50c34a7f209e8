"""Entries of the saved registry written to a real Redis: later changes stay, and names stay unique."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

import pytest

from decider.store.operator_settings import OperatorSettings
from decider.store.queue_executor import AsyncQueueExecutor, connect
from decider.store.registry_document import SavedEntry, table_entry, table_key
from decider.store.registry_entries import RegistryEntries
from decider.store.table_registry import TableRegistry
from shared.table import TableId, TableRef

pytestmark = pytest.mark.redis

NOW_MS = 10_000_000_000
ORDERS = TableRef(TableId("orders-1"), "orders", "file:///orders")
CLICKS = TableRef(TableId("clicks-1"), "clicks", "file:///clicks")


@dataclass(frozen=True, slots=True)
class World:
    """The registry in Redis, and the same as entries."""

    registry: TableRegistry
    entries: RegistryEntries


def run(redis_url: str, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def in_loop() -> None:
        redis = connect(redis_url)
        operator = OperatorSettings(AsyncQueueExecutor(redis, "default"), lambda: NOW_MS)
        world = World(TableRegistry(redis, now_ms=lambda: NOW_MS), RegistryEntries(redis, operator, lambda: NOW_MS))
        await scenario(world)
        await redis.aclose()

    asyncio.run(in_loop())


def entries_of(*tables: TableRef) -> Mapping[str, SavedEntry]:
    return {table_key(table.id): table_entry(table) for table in tables}


def test_what_changed_since_redis_was_read_is_not_overwritten(redis_url: str) -> None:
    async def scenario(world: World) -> None:
        await world.registry.register(ORDERS)
        known = await world.entries.read()
        before = await world.registry.get(ORDERS.id)
        assert before is not None
        await world.registry.update(before, replace(before, tenant="now"))
        late = replace(before, tenant="late", changed_ms=before.changed_ms - 1)
        await world.entries.apply(entries_of(late), {})
        await world.entries.apply(entries_of(replace(late, changed_ms=before.changed_ms)), known)
        found = await world.registry.get(ORDERS.id)
        assert found is not None
        assert found.tenant == "now"

    run(redis_url, scenario)


def test_tables_that_exchanged_their_names_have_them_in_redis(redis_url: str) -> None:
    async def scenario(world: World) -> None:
        for table in (ORDERS, CLICKS):
            await world.registry.register(table)
        later = {"changed_ms": NOW_MS + 5}
        exchanged = entries_of(replace(ORDERS, name="clicks", **later), replace(CLICKS, name="orders", **later))
        await world.entries.apply(exchanged, await world.entries.read())
        found = [await world.registry.find(name) for name in ("orders", "clicks")]
        assert [table and table.id for table in found] == [CLICKS.id, ORDERS.id]
        page = await world.registry.page(prefix="", after="", limit=10)
        assert [table.name for table in page.tables] == ["clicks", "orders"]

    run(redis_url, scenario)


def test_a_removed_table_leaves_nothing_and_may_be_registered_again(redis_url: str) -> None:
    async def scenario(world: World) -> None:
        await world.registry.register(ORDERS)
        applied = await world.entries.apply({table_key(ORDERS.id): SavedEntry(NOW_MS + 1)}, await world.entries.read())
        assert [table.id for table in applied.removed] == [ORDERS.id]
        assert await world.registry.find("orders") is None
        assert await world.registry.register(ORDERS)
        again = (await world.entries.read())[table_key(ORDERS.id)]
        assert again.value is not None
        assert again.changed_ms == NOW_MS + 2

    run(redis_url, scenario)
