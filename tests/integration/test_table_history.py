"""History of one table: samples of the hours in which it changed, what happened to it, and what rewriting was worth."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from actor.queue_executor import SyncQueueExecutor
from actor.queue_executor import connect as connect_actor
from decider.state.table_summary import TableSummary
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.samples import KEPT, SampleStep, add_sample
from decider.store.tables.table_history import (
    LEAST_MS,
    MARKS_KEPT,
    MAX_DETAIL,
    STEP,
    MarkKind,
    TableHistory,
    TableSample,
)
from shared.queue import admin_commands, commands, keys
from shared.queue.model import RunResult, Scope
from shared.table import TableId
from shared.typed_json import to_json
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.queue_bench import end_of

pytestmark = pytest.mark.redis

TABLE = TableId("t")
NOW_MS = 1_767_225_600_000
SUMMARY = TableSummary(files=12, bytes=1_000, small_files=11, shortfall=0, target_bytes=1, is_enabled=True)


def run(redis_url: str, scenario: Callable[[Any, TableHistory], Awaitable[None]]) -> None:
    async def story() -> None:
        async with connect(redis_url) as redis:
            await scenario(redis, TableHistory(AsyncQueueExecutor(redis, "default")))

    asyncio.run(story())


async def change(redis: Any, table: TableId, at_ms: int, **counters: int) -> None:
    """Change a table as an ingest and the end of a run do."""
    await redis.hset(keys.table_state("default", table), "summary", to_json(SUMMARY))
    await redis.zadd(keys.changed_tables("default"), {table: at_ms})
    for name, count in counters.items():
        await redis.hincrby(keys.counters("default", table), name, count)


def busy(hour: int) -> TableSample:
    """Return a table of a TiB with a commit a minute, after so many hours."""
    grown = {one.name: (hour + 500) * 10**9 for one in fields(TableSample) if "bytes" in one.name}
    counted = {one.name: (hour + 500) * 60 for one in fields(TableSample) if "bytes" not in one.name}
    return TableSample(**counted | grown | {"at_ms": NOW_MS + hour * STEP})


def test_a_table_that_changed_gets_one_sample_an_hour_and_another_writes_nothing(redis_url: str) -> None:
    async def scenario(redis: Any, history: TableHistory) -> None:
        quiet = [TableId(f"quiet{number}") for number in range(1_200)]
        for table in (TABLE, *quiet):
            await change(redis, table, NOW_MS - 1)
        assert await history.record_changed(NOW_MS) == 1_201
        assert await history.record_changed(NOW_MS + STEP) == 0
        await change(redis, TABLE, NOW_MS + STEP + 5, commits=3, usage_core_ms=1_500)
        assert await history.record_changed(NOW_MS + 2 * STEP) == 1
        await change(redis, TABLE, NOW_MS + 2 * STEP + 1)
        await history.record_changed(NOW_MS + 2 * STEP + 2)
        lengths = [await redis.xlen(keys.history("default", int(STEP), table)) for table in (TABLE, *quiet)]
        assert lengths == [2, *[1] * 1_200]
        # Another process reads the same.
        first, second, now = await TableHistory(history._queue).samples(TABLE, NOW_MS + 3 * STEP)
        assert (first.at_ms, first.files, first.files_needed, first.small_files, first.commits) == (
            *(NOW_MS, 12, 12, 11, 0),
        )
        assert (second.at_ms, second.commits, second.usage.core_ms) == (NOW_MS + 2 * STEP, 3, 1_500)
        assert (now.at_ms, now.commits) == (NOW_MS + 3 * STEP, 3)
        just_now = await history.samples(TABLE, NOW_MS + 2 * STEP + 9)
        assert [one.at_ms for one in just_now] == [NOW_MS, NOW_MS + 2 * STEP + 9], "no rate is of seconds"

    run(redis_url, scenario)


def test_a_sample_that_a_crash_prevented_is_taken_an_hour_later(redis_url: str) -> None:
    async def scenario(redis: Any, history: TableHistory) -> None:
        await change(redis, TABLE, NOW_MS)
        await redis.set(keys.history("default", int(STEP), TableId("other")), "damaged")
        await change(redis, TableId("other"), NOW_MS)
        assert await history.record_changed(NOW_MS + 1) == 2
        await redis.delete(keys.sampled_changes("default"))  # It crashed before it noted what it had sampled.
        assert await history.record_changed(NOW_MS + 2) == 2
        assert await redis.xlen(keys.history("default", int(STEP), TABLE)) == 1

    run(redis_url, scenario)


def test_thirty_days_of_a_busy_table_take_a_bounded_space(redis_url: str) -> None:
    async def scenario(redis: Any, history: TableHistory) -> None:
        key = keys.history("default", int(STEP), TABLE)
        async with redis.pipeline(transaction=False) as pipe:
            for hour in range(800):
                add_sample(pipe, key, SampleStep.HOUR, busy(hour))
            await pipe.execute()
        assert await redis.xlen(key) == KEPT[STEP]
        kept = await history.samples(TABLE, NOW_MS + 799 * STEP + LEAST_MS)
        assert kept[1:] == tuple(map(busy, range(81, 800)))
        used = await redis.memory_usage(key, samples=0)
        print(f"{used:,} bytes for {KEPT[STEP]} samples")
        for number in range(1_000):
            await history.mark(TABLE, MarkKind.PROPERTIES, f"{number} " + "x" * MAX_DETAIL)
        marks = await redis.memory_usage(keys.marks("default", TABLE), samples=0)
        print(f"{marks:,} bytes of marks")
        assert MARKS_KEPT <= len(await history.marks(TABLE, 0)) < 2 * MARKS_KEPT
        assert used + marks < 200_000

    run(redis_url, scenario)


def test_pauses_and_quarantines_are_marked_once_each_and_only_of_tables_that_are_read(
    decider: LiveDecider, redis_url: str, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "t", days=("2026-01-01", "2026-01-02"))
    table.append(11)
    decider.register(table.path, "a.t")
    for how in ("pause", "pause", "resume", "resume"):
        decider.post(f"/v1/tables/a.t/{how}", {}).raise_for_status()
    with connect_actor(redis_url) as client:
        queue = SyncQueueExecutor(client, "default")
        queue.run(admin_commands.pause("default", Scope.TABLE, "unread"))
        assert not client.exists(keys.marks("default", "unread"))
        own = {"properties": {"lakewright.tolerance": "0.2"}}
        client.rename(keys.marks("default", decider.get("/v1/tables/a.t")["id"]), "kept")
        client.set(keys.marks("default", decider.get("/v1/tables/a.t")["id"]), "damaged")
        decider.post("/v1/tables/a.t/pause", {}).raise_for_status()
        decider.post("/v1/tables/a.t/resume", {}).raise_for_status()
        decider.client.patch("/v1/tables/a.t", json=own).raise_for_status()
        client.rename("kept", keys.marks("default", decider.get("/v1/tables/a.t")["id"]))
        claims = queue.run(commands.claim("default", worker="w", nonce="n1", slots=2, lease_ms=60_000))
        assert len(claims) == 2
        for claim in claims:
            queue.run(end_of(claim, RunResult.QUARANTINE, cost_bytes=0, seen_version=-1, error="the disk is gone"))
    found = decider.get("/v1/tables/a.t/history")["marks"]
    assert [(one["kind"], one["detail"]) for one in found] == [
        ("paused", ""),
        ("resumed", ""),
        ("quarantined", "compact"),
    ]
    table_id = decider.get("/v1/tables/a.t")["id"]
    decider.client.delete("/v1/tables/a.t").raise_for_status()
    redis = decider.services.operations.redis
    assert decider.run(redis.exists(keys.marks("default", table_id))) == 0
    assert decider.run(redis.exists(keys.history("default", int(STEP), table_id))) == 0


def test_changed_properties_are_marked_with_their_values(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", days=("2026-01-01",))
    decider.register(table.path, "a.t")
    own = DeltaTable(table.path)
    own.alter.set_table_properties({"lakewright.fan-in": "4", "owner": "me"}, raise_if_not_exists=False)
    decider.sweep()
    own.alter.set_table_properties({"lakewright.weight": "2", "owner": "you"}, raise_if_not_exists=False)
    decider.sweep()
    decider.client.patch("/v1/tables/a.t", json={"properties": {"lakewright.tolerance": "0.2"}}).raise_for_status()
    decider.client.patch("/v1/tables/a.t", json={"properties": {}}).raise_for_status()
    decider.client.patch("/v1/tables/a.t", json={"tenant": "other"}).raise_for_status()
    decider.drain()
    found = decider.get("/v1/tables/a.t/history")["marks"]
    assert {one["kind"] for one in found} == {"properties"}
    assert [one["detail"] for one in found] == [
        "lakewright.fan-in = 4",
        "lakewright.weight = 2",
        "lakewright.tolerance = 0.2",
        "lakewright.tolerance removed",
    ]


def test_the_history_of_a_table_is_served_with_its_rests_and_its_worth(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", days=("2026-01-01",))
    table.append(11)
    decider.register(table.path, "a.t")
    table_id = decider.get("/v1/tables/a.t")["id"]
    redis, now_ms = decider.services.operations.redis, decider.services.operations.now_ms()

    async def write(*samples: TableSample) -> None:
        key = keys.history("default", int(STEP), table_id)
        await redis.delete(key)
        async with redis.pipeline(transaction=False) as pipe:
            for sample in samples:
                add_sample(pipe, key, SampleStep.HOUR, sample)
            await pipe.execute()
        counted = {"usage_core_ms": 600_000, "files_replaced": 40, "files_written": 2, "jobs_run": 3}
        await redis.hset(keys.counters("default", table_id), mapping=counted)

    old = TableSample(now_ms - 100 * STEP, files=50, files_needed=1, small_files=50, bytes=1)
    here = decider.run(decider.services.queue.history.tables.present([table_id], now_ms))[table_id]
    decider.run(write(old, TableSample(now_ms - 40 * STEP, 20, 1, 20, here.bytes, files_replaced=30, files_written=1)))
    shown = decider.get("/v1/tables/a.t/history", hours=60)
    assert [one["files"] for one in shown["points"]] == [50, 50, 20, 20, 12]
    assert shown["points"][-1]["jobs_run"] == 3
    assert shown["points"][-1]["core_s"] == 600
    assert decider.get("/v1/tables/a.t/history")["worth"]["result"] == "backlog"
    redis_state = keys.table_state("default", table_id)
    summary = TableSummary(12, here.bytes, 12, 0, 1, is_enabled=True)
    decider.run(redis.hset(redis_state, "summary", to_json(summary)))
    assert decider.get("/v1/tables/a.t/history")["worth"]["result"] == "reads_unknown"
    decider.client.patch("/v1/tables/a.t", json={"properties": {"lakewright.read-weight": "0.5"}}).raise_for_status()
    worth = decider.get("/v1/tables/a.t/history")["worth"]
    assert (worth["result"], worth["reads_per_hour"]) == ("below_cost", 0.5)
    assert worth["text"].startswith("does not pay: ")
    assert worth["spent"]["core_s"] == 600
