"""Queue limits that a table's policy set are removed with it, whatever happens in between."""

import shutil
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from deltalake import DeltaTable

from decider.state.effective_policy import PolicyDefaults
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.tables import table_queue_limits
from decider.store.tables.ingest import ingest
from decider.store.tables.table_queue_limits import apply_queue_limits
from decider.tracking import rebuild
from decider.tracking.table_context import FollowedTable
from decider.tracking.tracker import TableTracker
from shared.errors import RetryableError
from shared.queue import queries
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from shared.queue.model import JobState
from shared.table import DataFile, TableMetadata
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.memory_log import MemoryLog
from tests.support.timed_world import DT, POLICY, TABLE, Alone, partition

pytestmark = pytest.mark.redis

LIMIT = "lakewright.max-concurrent-jobs"
LIMITS = {LIMIT: "1", "lakewright.weight": "2"}
ONE = {**LIMITS, "lakewright.fan-in": "4"}
"""Limits, and a value whose change has the table counted again."""


@pytest.fixture
def decider(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveDecider]:
    monkeypatch.setattr("decider.tracking.table_context.TRUSTED_MS", -1)
    with LiveDecider(decider_settings(redis_url)) as live:
        yield live


def queue_limits(decider: LiveDecider) -> list[str]:
    return sorted(
        name.partition(":")[0]
        for name in decider.run(decider.services.queue.admin.weights_and_limits())
        if "table" in name
    )


def say(decider: LiveDecider, name: str, stated: dict[str, str]) -> None:
    assert decider.client.patch(f"/v1/tables/{name}", json={"properties": stated}).status_code == 200


def set_properties(table: WrittenTable, stated: dict[str, str]) -> None:
    DeltaTable(str(table.path)).alter.set_table_properties(stated, raise_if_not_exists=False)


async def dies(*_: Any, **__: Any) -> bool:
    """What a process does that ends before the cursor moves."""
    raise RuntimeError("the process ended")


def test_a_table_made_again_where_another_one_was_has_none_of_its_queue_limits(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders")
    name = decider.register(table.path)
    say(decider, name, ONE)
    decider.drain()
    assert queue_limits(decider) == ["limit", "weight"]
    shutil.rmtree(table.path)
    decider.sweep()
    assert decider.get(f"/v1/tables/{name}")["refusal"]["missing"] is True
    assert queue_limits(decider) == []


def cut_short(decider: LiveDecider, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Register a table whose queue limits a rebuild has set before it died, and return its name."""
    name = decider.register(WrittenTable(folder / "orders").path)
    monkeypatch.setattr(rebuild, "ingest", dies)
    say(decider, name, ONE)
    decider.drain()
    assert queue_limits(decider) == ["limit", "weight"]
    return name


def test_a_queue_limit_set_by_a_rebuild_that_a_crash_cut_short_is_taken_back(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = cut_short(decider, tmp_path, monkeypatch)
    monkeypatch.setattr(rebuild, "ingest", ingest)
    say(decider, name, {})
    decider.drain()
    assert queue_limits(decider) == []


def test_a_change_of_limits_alone_counts_no_table_again_and_is_finished_after_a_crash_or_taken_back(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = WrittenTable(tmp_path / "orders")
    name = decider.register(table.path)
    decider.drain()
    set_properties(table, LIMITS)
    with monkeypatch.context() as dying:
        dying.setattr(table_queue_limits, "apply_queue_limits", dies)
        decider.sweep()
    assert queue_limits(decider) == []
    decider.sweep()
    assert queue_limits(decider) == ["limit", "weight"]
    with monkeypatch.context() as dying:
        dying.setattr(table_queue_limits, "apply_queue_limits", applied_by_a_process_that_dies)
        set_properties(table, {LIMIT: "off", "lakewright.weight": "1"})
        decider.sweep()
    assert queue_limits(decider) == []
    set_properties(table, LIMITS)
    decider.sweep()
    assert queue_limits(decider) == ["limit", "weight"]
    assert decider.get(f"/v1/tables/{name}")["state"]["rebuilds"] == 0


async def applied_by_a_process_that_dies(*args: Any) -> None:
    await apply_queue_limits(*args)
    raise RuntimeError("the process ended")


def test_who_loses_the_race_for_the_cursor_leaves_the_queue_limits_as_the_winner_set_them(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a rebuild sets its limits, another decider sees the properties removed, and moves the cursor first."""
    table = WrittenTable(tmp_path / "orders")
    name = decider.register(table.path)
    known = decider.run(decider.services.tables.registry.find(name))
    assert known is not None
    follower = copy(decider.services.requests.tracker)
    follower._followed = defaultdict(FollowedTable)  # As in another process.
    races: list[str] = []

    async def late(*args: Any) -> None:
        if not races:
            races.append(known.id)
            set_properties(table, {LIMIT: "off", "lakewright.weight": "1"})
            await follower.follow(known)
        await apply_queue_limits(*args)
        races.append(args[-1])

    set_properties(table, ONE)
    monkeypatch.setattr(rebuild, "apply_queue_limits", late)
    decider.sweep()
    assert races == [known.id, "", "2|1", ""]
    assert queue_limits(decider) == []


def test_forgetting_a_table_lifts_what_a_cut_short_rebuild_had_set(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = cut_short(decider, tmp_path, monkeypatch)
    assert decider.client.delete(f"/v1/tables/{name}").status_code == 204
    assert queue_limits(decider) == []


R = TypeVar("R")
Hook = Callable[[], Awaitable[None]]

PARTITIONS = [partition(number) for number in range(3)]


class HookedQueue(AsyncQueueExecutor):
    """Runs something else once, before or after the first call of a script."""

    before: tuple[ScriptName, Hook] | None = None
    after: tuple[ScriptName, Hook] | None = None

    async def run(self, command: Command[R]) -> R:
        if self.before is not None and self.before[0] is command.script:
            (_, hook), self.before = self.before, None
            await hook()
        result = await super().run(command)
        if self.after is not None and self.after[0] is command.script:
            (_, hook), self.after = self.after, None
            await hook()
        return result


class World:
    """One table with three partitions that wait for their jobs, and two deciders; the first one can be held up."""

    def __init__(self, url: str) -> None:
        self.log = MemoryLog(self.metadata(enabled=True))
        self.log.add(
            [DataFile(f"{partition}-{number}", 100_000, partition) for partition in PARTITIONS for number in range(9)]
        )
        self.first, self.second = (HookedQueue(connect(url), "default") for _ in range(2))

    @staticmethod
    def metadata(*, enabled: bool) -> TableMetadata:
        configuration = {} if enabled else {"lakewright.enabled": "false"}
        return TableMetadata("u-1", DT, configuration)

    def switch(self, *, on: bool) -> None:
        self.log.add(metadata=self.metadata(enabled=on), data_change=False)

    async def follow(self, queue: AsyncQueueExecutor) -> None:
        await TableTracker(queue, lambda _: self.log, lambda: 1_000_000, Alone(PolicyDefaults(POLICY))).follow(TABLE)

    async def waiting(self) -> list[str]:
        """Partitions that have a job."""
        pages = [await self.second.run(queries.jobs("default", state)) for state in JobState]
        return sorted(job.key.partition for page in pages for job in page.jobs)


@asynccontextmanager
async def in_world(url: str) -> AsyncIterator[World]:
    world = World(url)
    await world.follow(world.first)
    assert await world.waiting() == PARTITIONS
    try:
        yield world
    finally:
        await world.first.redis.aclose()
        await world.second.redis.aclose()


@pytest.mark.parametrize(("moment", "script"), [("after", ScriptName.INGEST), ("before", ScriptName.CANCEL)])
async def test_who_switches_off_late_leaves_the_jobs_of_a_table_that_is_on_again(
    redis_url: str, moment: str, script: ScriptName
) -> None:
    async with in_world(redis_url) as world:

        async def on_again() -> None:
            world.switch(on=True)
            await world.follow(world.second)
            assert await world.waiting() == PARTITIONS

        world.switch(on=False)
        setattr(world.first, moment, (script, on_again))
        await world.follow(world.first)
        assert await world.waiting() == PARTITIONS


async def test_a_table_made_again_and_switched_off_keeps_no_job_of_the_one_before(redis_url: str) -> None:
    """Its versions start over, below those that the jobs were requested at."""
    async with in_world(redis_url) as world:
        files = (await world.log.snapshot()).files
        world.log = MemoryLog(world.metadata(enabled=False))
        world.log.commits[0] = replace(world.log.commits[0], added=files)
        await world.follow(world.first)
        assert await world.waiting() == []


@pytest.mark.parametrize(("moment", "script"), [("after", ScriptName.INGEST), ("after", ScriptName.CANCEL)])
async def test_who_dies_while_switching_off_leaves_no_job_behind(
    redis_url: str, moment: str, script: ScriptName
) -> None:
    async with in_world(redis_url) as world:

        async def dies() -> None:
            raise RetryableError("killed here")

        world.switch(on=False)
        setattr(world.first, moment, (script, dies))
        with pytest.raises(RetryableError, match="killed here"):
            await world.follow(world.first)
        await world.follow(world.second)
        assert await world.waiting() == []
