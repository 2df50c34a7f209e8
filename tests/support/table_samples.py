"""A week in the life of a registered table, as samples of its history."""

from dataclasses import replace
from typing import Any

from decider.state.table_summary import TableSummary
from decider.store.samples import add_sample
from decider.store.tables.table_history import STEP, TableSample
from shared.queue import keys
from shared.typed_json import from_json, to_json
from tests.support.live_decider import LiveDecider

HOURS = 7 * 24


def week_of_samples(decider: LiveDecider, name: str) -> None:
    """Give a table a sample for each hour of a week, with two runs and twenty merged files an hour, and no backlog."""
    table, now_ms = decider.get(f"/v1/tables/{name}")["id"], decider.services.operations.now_ms()
    redis, history = decider.services.operations.redis, decider.services.queue.history.tables
    now = decider.run(history.present([table], now_ms))[table]

    def after(hour: int) -> TableSample:
        return replace(
            now,
            at_ms=now_ms - (HOURS - hour) * STEP,
            files=now.files + 24 * (hour % 12),
            small_files=now.files + 20 * (hour % 12),
            commits=30 * hour,
            bytes_added=2**20 * 40 * hour,
            bytes_replaced=2**20 * 55 * hour,
            bytes_written=2**20 * 55 * hour,
            files_replaced=20 * hour,
            files_written=hour,
            jobs_run=2 * hour,
            usage_core_ms=9_000 * hour,
        )

    async def write() -> None:
        key = keys.history("default", int(STEP), table)
        await redis.delete(key)
        async with redis.pipeline(transaction=False) as pipe:
            for hour in range(HOURS):
                add_sample(pipe, key, STEP, after(hour))
            await pipe.execute()
        last = after(HOURS)
        counters = ("commits", "bytes_added", "bytes_replaced", "bytes_written", "files_replaced", "files_written")
        counted: Any = {one: getattr(last, one) for one in (*counters, "jobs_run", "usage_core_ms")}
        await redis.hset(keys.counters("default", table), mapping=counted)
        raw: Any = await redis.hget(keys.table_state("default", table), "summary")
        summary = replace(from_json(TableSummary, raw), backlog_bytes=0)
        await redis.hset(keys.table_state("default", table), "summary", to_json(summary))

    decider.run(write())
