"""Advice in a real Redis: what two deciders write at once."""

import asyncio

import pytest

from decider.store.redis.queue_executor import connect
from decider.store.tables.advice_records import Advice, Evidence, ReplayedCost
from decider.store.tables.advice_store import AdviceStore
from shared.table import TableId

pytestmark = pytest.mark.redis

COST = ReplayedCost(write_s=1.0, read_s=1.0, files_mean=10.0, bytes_rewritten=1)
PROOF = Evidence(0, 9, 10, 1.0, 60.0, COST, COST, 0.2)


def advice(table: str, message: str = "larger files") -> Advice:
    return Advice(TableId(table), 1, {"lakewright.target-file-size": "64 MiB"}, "", message, PROOF)


async def test_advice_of_many_tables_at_once_is_kept(redis_url: str) -> None:
    redis = connect(redis_url)
    stores = [AdviceStore(redis, f"decider-{n}") for n in range(2)]
    tables = [advice(f"table-{n}") for n in range(20)]
    replaced = await asyncio.gather(*(stores[n % 2].replace(one.table, None, one) for n, one in enumerate(tables)))
    assert all(replaced)
    assert {one.table for one in await stores[0].all()} == {one.table for one in tables}
    await redis.aclose()


async def test_advice_that_changed_since_it_was_read_is_not_replaced(redis_url: str) -> None:
    redis = connect(redis_url)
    store = AdviceStore(redis, "decider")
    read, newer = advice("orders"), advice("orders", "smaller files")
    assert await store.replace(read.table, None, read)
    assert await store.replace(read.table, read, newer)
    assert not await store.replace(read.table, read, None)
    assert await store.all() == [newer]
    await redis.aclose()
