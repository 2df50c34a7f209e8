"""History: samples of all tables together, and the layout of one table over time from its own log."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from decider.background.history_sampler import HistorySampler
from decider.store.fleet_history import LEASE_MS, FleetHistory, FleetSample
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.samples import KEPT, SampleStep
from shared.prices import Usage
from shared.queue import keys
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.waiting import until

pytestmark = pytest.mark.redis

DAY_MS = 86_400_000


def run(redis_url: str, scenario: Callable[[FleetHistory, FleetHistory], Awaitable[None]]) -> None:
    async def story() -> None:
        async with connect(redis_url) as redis:
            queue = AsyncQueueExecutor(redis, "default")
            await scenario(FleetHistory(queue, "we"), FleetHistory(queue, "they"))

    asyncio.run(story())


def large(minute: int) -> FleetSample:
    """Return what 100,000 tables are and have had, in many digits."""
    counters = {one.name: 10**15 + minute for one in fields(FleetSample) if one.type is int}
    states = dict.fromkeys(("compact", "waiting", "paused", "failing"), 25_000)
    used = Usage(**{one.name: 10**12 + minute for one in fields(Usage)})
    return FleetSample(**counters | {"at_ms": minute * SampleStep.MINUTE}, states=states, usage=used)


def test_thirty_days_take_a_bounded_space_survive_a_restart_and_show_minutes_of_the_last_day(redis_url: str) -> None:
    async def scenario(history: FleetHistory, after_a_restart: FleetHistory) -> None:
        last = 32 * 1_440
        for minute in (*range(0, last, 60), *range(last - 59, last + 1)):
            await history.record(large(minute))
        last_ms = last * SampleStep.MINUTE
        minutes = await after_a_restart.samples(SampleStep.MINUTE, 0)
        assert (len(minutes), minutes[0].at_ms) == (23 + 60, last_ms - 23 * SampleStep.HOUR)
        hours = await after_a_restart.samples(SampleStep.HOUR, 0)
        assert len(hours) == KEPT[SampleStep.HOUR]
        assert hours[0].at_ms >= last_ms - 30 * DAY_MS
        assert [one.at_ms for one in hours] == sorted(one.at_ms for one in hours)
        assert await after_a_restart.samples(SampleStep.MINUTE, last_ms) == (large(last),)
        redis = history._queue.redis
        used = [await redis.memory_usage(keys.history("default", int(step)), samples=0) for step in SampleStep]
        assert 700_000 < sum(used) / (len(minutes) + len(hours)) * sum(KEPT.values()) < 920_000

    run(redis_url, scenario)


def test_one_decider_takes_the_samples_and_another_when_it_has_ended(redis_url: str) -> None:
    async def scenario(we: FleetHistory, they: FleetHistory) -> None:
        assert [await we.acquire(), await they.acquire(), await we.acquire()] == [True, False, True]
        key, redis = keys.history_lease("default"), we._queue.redis
        assert 0 < await redis.pttl(key) <= LEASE_MS
        await redis.delete(key)
        assert [await they.acquire(), await we.acquire()] == [True, False]

    run(redis_url, scenario)


def test_the_first_sample_of_a_minute_stays(redis_url: str) -> None:
    async def scenario(history: FleetHistory, _: FleetHistory) -> None:
        for at_ms, files in ((120_000, 1), (130_000, 2), (180_000, 3)):
            await history.record(FleetSample(at_ms, files=files))
        assert [one.files for one in await history.samples(SampleStep.MINUTE, 0)] == [1, 3]
        assert [one.files for one in await history.samples(SampleStep.HOUR, 0)] == [1]
        newest = await history.newest()
        assert newest is not None
        assert newest.files == 3

    run(redis_url, scenario)


def test_a_sample_has_the_sums_of_all_tables_and_is_shown(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", days=("2026-01-01",))
    table.append(11)
    decider.register(table.path, "a.t")
    decider.drain()
    services = decider.services
    late_ms = 0

    def now_ms() -> int:
        return services.operations.now_ms() + late_ms

    queue, index = services.queue, services.tables.index
    received = 7

    def sampler_of(decider_name: str) -> HistorySampler:
        history = FleetHistory(queue.executor, decider_name)
        figures = (history, index, queue.admin, queue.counters)
        return HistorySampler(*figures, events_received=lambda: received, now_ms=now_ms)

    sampler = sampler_of("test")
    redis = services.operations.redis
    counted = (12, {"waiting": 1})  # A job is counted by a read of its own, after the table's files.
    until(
        "the table and its job are counted",
        lambda: (found := decider.run(index.totals())) and (found.files, found.states) == counted,
    )
    # The decider's own sampler has begun.
    own = [keys.history("default", int(step)) for step in SampleStep]
    decider.run(redis.set(keys.history_lease("default"), "test"))
    decider.run(redis.delete(*own))
    first = decider.run(sampler.run_once())
    assert first is not None
    assert (first.tables, first.files, first.files_needed, first.waiting) == (1, 12, 1, 1)
    assert first.states == {"waiting": 1}
    assert first.events_received == 7
    assert decider.run(sampler.run_once()) is None, "one a minute"
    received = 10
    assert decider.run(sampler_of("another").run_once()) is None, "it counts, and leaves the samples to the first"
    decider.run(redis.hincrby(keys.counters("default"), "usage_core_ms", 1_500))
    late_ms = 60_000
    assert decider.run(sampler.run_once()) is not None
    last = decider.get("/v1/history", hours=1)["points"][-1]
    assert (last["events_received"], last["core_s"]) == (7 + 3 + 10, 1.5)
    shown = decider.get("/v1/history", hours=1)
    assert (shown["points"][0]["files"], shown["points"][0]["files_needed"]) == (12, 1)
    assert shown["backlog"]["left_bytes"] > 0
    assert decider.get("/v1/history", hours=48)["points"][0]["files"] == 12
    assert "lakewright_files_needed 1.0\n" in decider.client.get("/metrics").text


def test_a_decider_counts_each_event_that_it_received_once_ignored_ones_included(decider: LiveDecider) -> None:
    for _ in range(2):
        assert decider.post("/v1/events", [{"table": "no.table"}, {"table": "nor.this"}]).status_code == 202
        for _ in range(2):
            decider.run(decider.task("history").run_once())
    assert decider.get("/v1/status")["funnel"]["events_received"] == 4


def files_at(path: Path, version: int) -> int:
    return len(DeltaTable(str(path), version=version).file_uris())


def history(decider: LiveDecider, **query: Any) -> Any:
    return decider.get("/v1/tables/a.t/layout-history", **query)


def test_each_point_is_what_another_reader_counts_at_that_version(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t")
    table.append(4)
    table.delete("2026-01-01")
    DeltaTable(str(table.path)).optimize.compact()
    table.append(2)
    decider.register(table.path, "a.t")
    found = history(decider)
    assert found["complete"]
    assert [one["version"] for one in found["points"]] == list(range(table.version + 1))
    assert [one["files"] for one in found["points"]] == [
        files_at(table.path, version) for version in range(table.version + 1)
    ]
    assert [one["version"] for one in found["points"] if one["rewrite"]] == [table.version - 2]


def test_a_client_reads_only_what_is_new(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t")
    table.append(6)
    decider.register(table.path, "a.t")
    assert [one["version"] for one in history(decider, commits=2)["points"]] == [5, 6]
    assert [one["version"] for one in history(decider, after=4)["points"]] == [5, 6]
    assert history(decider, after=6)["points"] == []
    assert history(decider, after=4)["complete"]


def test_a_log_that_was_cleaned_up_is_shown_as_far_as_it_goes(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t")
    table.append(5)
    DeltaTable(str(table.path)).create_checkpoint()
    for version in range(3):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()
    table.append(1)
    decider.register(table.path, "a.t")
    found = history(decider)
    assert not found["complete"]
    assert found["points"][-1]["files"] == files_at(table.path, table.version)
    assert found["points"][0]["version"] >= 3


def test_a_table_that_was_not_read_has_no_history(decider: LiveDecider, tmp_path: Path) -> None:
    decider.post("/v1/tables", {"location": str(tmp_path / "none"), "name": "a.t"})
    decider.drain()
    assert history(decider) == {"version": None, "points": [], "complete": False}
