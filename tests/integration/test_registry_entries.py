"""Entries of the saved registry written to a real Redis: later changes stay, and names stay unique."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from redis.asyncio import Redis

from decider.storage.numbered_objects import NumberedObjects
from decider.storage.object_reads import ReadMeter
from decider.storage.stores import ObjectStores
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.registry import table_registry
from decider.store.registry.merge_mark import MergeMark, RegistrySaver
from decider.store.registry.operator_settings import OperatorSettings
from decider.store.registry.registry_document import SavedEntry, merge, resolve_names, table_entry, table_key
from decider.store.registry.registry_entries import RegistryEntries
from decider.store.registry.saved_registry import SavedRegistry
from decider.store.registry.table_registry import TableRegistry
from shared.errors import RetryableError
from shared.queue import keys
from shared.queue.decode import text
from shared.queue.model import Scope
from shared.table import TableId, TableRef

pytestmark = pytest.mark.redis

NOW_MS = 10_000_000_000
ORDERS = TableRef(TableId("orders-1"), "orders", "file:///orders")
CLICKS = TableRef(TableId("clicks-1"), "clicks", "file:///clicks")


@dataclass(frozen=True, slots=True)
class World:
    """The registry in Redis, the same of a decider whose clock is an hour ahead, and the same as entries."""

    redis: Redis
    registry: TableRegistry
    ahead: TableRegistry
    entries: RegistryEntries


@asynccontextmanager
async def in_world(redis_url: str) -> AsyncIterator[World]:
    redis = connect(redis_url)
    operator = OperatorSettings(AsyncQueueExecutor(redis, "default"), lambda: NOW_MS)
    registry = TableRegistry(redis, now_ms=lambda: NOW_MS)
    ahead = TableRegistry(redis, now_ms=lambda: NOW_MS + 3_600_000)
    yield World(redis, registry, ahead, RegistryEntries(redis, [operator], lambda: NOW_MS))
    await redis.aclose()


def entries_of(*tables: TableRef) -> Mapping[str, SavedEntry]:
    return {table_key(table.id): table_entry(table) for table in tables}


async def test_what_changed_since_redis_was_read_is_not_overwritten(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.registry.register(ORDERS)
        known = await world.entries.read()
        before = await world.registry.get(ORDERS.id)
        assert before is not None
        await world.registry.update(before.id, lambda known: replace(known, tenant="now"))
        late = replace(before, tenant="late", changed_ms=before.changed_ms - 1)
        await world.entries.apply(entries_of(late), {})
        await world.entries.apply(entries_of(replace(late, changed_ms=before.changed_ms)), known)
        found = await world.registry.get(ORDERS.id)
        assert found is not None
        assert found.tenant == "now"


async def test_tables_that_exchanged_their_names_have_them_in_redis(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        for table in (ORDERS, CLICKS):
            await world.registry.register(table)
        later = {"changed_ms": NOW_MS + 5}
        exchanged = entries_of(replace(ORDERS, name="clicks", **later), replace(CLICKS, name="orders", **later))
        await world.entries.apply(exchanged, await world.entries.read())
        found = [await world.registry.find(name) for name in ("orders", "clicks")]
        assert [table and table.id for table in found] == [CLICKS.id, ORDERS.id]
        page = await world.registry.page(prefix="", after="", limit=10)
        assert [table.name for table in page.tables] == ["clicks", "orders"]


async def test_a_removed_table_leaves_nothing_and_may_be_registered_again(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.registry.register(ORDERS)
        applied = await world.entries.apply({table_key(ORDERS.id): SavedEntry(NOW_MS + 1)}, await world.entries.read())
        assert [table.id for table in applied.removed] == [ORDERS.id]
        assert await world.registry.find("orders") is None
        assert await world.registry.register(ORDERS)
        again = (await world.entries.read())[table_key(ORDERS.id)]
        assert again.value is not None
        assert again.changed_ms == NOW_MS + 2


async def test_of_two_changes_at_once_none_is_lost_whatever_the_deciders_clocks(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.registry.register(ORDERS)
        before = await world.registry.get(ORDERS.id)
        assert before is not None
        made = await asyncio.gather(
            world.ahead.update(ORDERS.id, lambda known: replace(known, tenant="sales")),
            world.registry.update(ORDERS.id, lambda known: replace(known, properties={"a": "b"})),
            *(world.registry.update(ORDERS.id, lambda known: replace(known, name=known.name + "x")) for _ in range(5)),
        )
        found = await world.registry.get(ORDERS.id)
        assert found is not None
        assert (found.tenant, found.properties, found.name) == ("sales", {"a": "b"}, "ordersxxxxx")
        assert found.changed_ms == max(one.changed_ms for one in made if one is not None)
        assert len({one.changed_ms for one in made if one is not None}) == len(made)


async def test_a_change_that_another_decider_makes_in_between_is_kept(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with in_world(redis_url) as world:
        await world.registry.register(ORDERS)
        require_free_name = table_registry._require_free_name

        async def overtaken(pipe: object, table: TableRef) -> None:
            monkeypatch.setattr(table_registry, "_require_free_name", require_free_name)
            await world.ahead.update(ORDERS.id, lambda known: replace(known, tenant="sales"))
            await require_free_name(pipe, table)

        monkeypatch.setattr(table_registry, "_require_free_name", overtaken)
        changed = await world.registry.update(ORDERS.id, lambda known: replace(known, properties={"a": "b"}))
        assert changed is not None
        assert (changed.tenant, changed.properties) == ("sales", {"a": "b"})
        assert await world.registry.get(ORDERS.id) == changed


async def test_a_removal_is_later_than_every_change_before_it_whatever_the_deciders_clocks(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.registry.register(ORDERS)
        read_before = await world.registry.get(ORDERS.id)
        assert read_before is not None
        changed = await world.ahead.update(ORDERS.id, lambda known: replace(known, name="sales.orders"))
        assert changed is not None
        assert await world.registry.remove(read_before)
        removal = (await world.entries.read())[table_key(ORDERS.id)]
        assert removal.value is None
        assert removal.changed_ms > changed.changed_ms
        assert await world.registry.find("sales.orders") is None
        assert await world.ahead.update(ORDERS.id, lambda known: known) is None


async def test_what_operators_set_at_once_is_recorded_in_one_order_whatever_the_deciders_clocks(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        queue = AsyncQueueExecutor(world.redis, "default")
        ahead, here = (OperatorSettings(queue, lambda now_ms=now_ms: now_ms) for now_ms in (NOW_MS + 3_600_000, NOW_MS))  # type: ignore[misc]
        await asyncio.gather(ahead.record_settings({"max_attempts": 4}), here.record_settings({"lease_ms": 9}))
        await ahead.record_pause(Scope.TABLE, "orders", paused=True)
        await here.record_pause(Scope.TABLE, "orders", paused=False)
        found = await here.read()
        assert found["queue/default/settings"].value == {"max_attempts": 4, "lease_ms": 9}
        assert found["queue/default/pause|table|orders"] == SavedEntry(NOW_MS + 3_600_001)


async def test_a_registration_is_whole_or_not_there_if_redis_is_emptied_in_between(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with in_world(redis_url) as world:
        await world.registry.register(CLICKS)
        queue_name = table_registry._queue_name

        def emptied(pipe: object, table: TableRef) -> None:
            monkeypatch.setattr(table_registry, "_queue_name", queue_name)
            emptying.append(asyncio.ensure_future(world.redis.flushall()))
            queue_name(pipe, table)

        emptying: list[asyncio.Future[object]] = []
        monkeypatch.setattr(table_registry, "_queue_name", emptied)
        await world.registry.register(ORDERS)
        await emptying[0]
        tables, names = await world.redis.hgetall(keys.TABLES), await world.redis.hgetall(keys.TABLE_NAMES)
        assert {text(one) for one in tables} == {text(one) for one in names.values()}


async def test_a_name_without_its_table_may_be_given_again(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.redis.hset(keys.TABLE_NAMES, ORDERS.name, "gone-1")
        assert await world.registry.register(ORDERS)
        assert await world.registry.find(ORDERS.name) is not None


async def test_a_discovered_table_is_never_later_than_what_a_person_set(redis_url: str) -> None:
    """Discovery found it again in a Redis that was emptied; the other copy has what a person set long ago."""
    async with in_world(redis_url) as world:
        await world.registry.register(replace(ORDERS, name="found.orders", is_discovered=True))
        by_person = entries_of(replace(ORDERS, tenant="sales", changed_ms=NOW_MS - 86_400_000))
        merged = merge(await world.entries.read(), by_person)
        assert merged == by_person


async def test_a_discovered_table_that_was_unregistered_may_be_discovered_again(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.registry.register(ORDERS)
        await world.registry.remove(ORDERS)
        removed = await world.entries.read()
        await world.registry.register(replace(ORDERS, is_discovered=True))
        assert merge(removed, await world.entries.read())[table_key(ORDERS.id)].value is not None


def test_a_name_is_the_one_that_a_person_gave_although_discovery_gave_it_before() -> None:
    found = replace(CLICKS, name="orders", is_discovered=True, changed_ms=1)
    resolved = resolve_names(entries_of(replace(ORDERS, changed_ms=NOW_MS), found))
    assert {key: entry.value["name"] for key, entry in resolved.items()} == {
        table_key(ORDERS.id): "orders",
        table_key(CLICKS.id): CLICKS.id,
    }


async def test_fields_of_a_later_release_stay_while_an_older_one_runs_beside_it(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        entry = table_entry(replace(ORDERS, changed_ms=NOW_MS))
        later = {table_key(ORDERS.id): SavedEntry(NOW_MS, entry.value | {"owner": "ann"})}
        await world.entries.apply(later, {})
        assert await world.entries.read() == later
        await world.registry.update(ORDERS.id, lambda known: replace(known, tenant="sales"))
        found = (await world.entries.read())[table_key(ORDERS.id)]
        assert (found.value["owner"], found.value["tenant"]) == ("ann", "sales")


async def test_nothing_changes_until_a_registry_that_was_lost_is_restored(redis_url: str, tmp_path: Path) -> None:
    async with in_world(redis_url) as world:
        mark = MergeMark(world.redis, wait_s=0)
        objects = NumberedObjects(ObjectStores(), tmp_path.as_uri(), ReadMeter())
        saver = RegistrySaver(SavedRegistry(objects, lambda: NOW_MS), mark)
        registry = TableRegistry(world.redis, now_ms=lambda: NOW_MS, saver=saver)
        operator = OperatorSettings(AsyncQueueExecutor(world.redis, "default"), lambda: NOW_MS, saver)

        async def record() -> None:
            await operator.begin()  # Before any part of the setting is in force.
            await operator.record_settings({"max_attempts": 4})

        changes = (
            lambda: registry.register(ORDERS),
            lambda: registry.register(replace(ORDERS, is_discovered=True)),
            lambda: registry.update(CLICKS.id, lambda known: replace(known, tenant="sales")),
            lambda: registry.remove(CLICKS),
            record,
        )
        await world.registry.register(CLICKS)
        before = await world.entries.read()
        for change in changes:
            with pytest.raises(RetryableError, match="not yet restored"):
                await change()
        assert await world.entries.read() == before
        assert await mark.complete(await mark.begin())
        for change in changes:
            await change()


async def test_a_merge_does_not_count_if_redis_was_emptied_meanwhile(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        mark = MergeMark(world.redis)
        begun = await mark.begin()
        await world.redis.flushall()
        other = await mark.begin()
        assert not await mark.complete(begun)
        assert not await mark.is_merged()
        assert await mark.complete(other)
        assert await mark.is_merged()


async def test_what_operators_set_in_a_group_is_restored_there_alone(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        queues = [AsyncQueueExecutor(world.redis, name) for name in ("default", "default/etl")]
        operators = [OperatorSettings(queue, lambda: NOW_MS) for queue in queues]
        entries = RegistryEntries(world.redis, operators, lambda: NOW_MS)
        await operators[1].record_pause(Scope.QUEUE, "", paused=True)
        saved = await entries.read()
        await world.redis.flushall()
        await entries.apply(saved, {})
        assert [await world.redis.hget(keys.config(queue.name), "paused") for queue in queues] == [None, b"all"]
        assert await entries.read() == saved
