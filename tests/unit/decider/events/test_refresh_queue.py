"""Each table waits once and is read by one at a time, whatever the number of events that named it."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decider.events.refresh_queue import RefreshQueue
from shared.errors import InvalidInput, RetryableError
from shared.retry import RetryPolicy
from shared.table import TableId, TableRef
from tests.support.refreshing import refreshing
from tests.support.time_limits import scaled

A, B = (TableRef(TableId(name), name, f"file:///{name}") for name in ("a", "b"))


def play(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), scaled(20)))


class RecordedRefreshes:
    """What is read, in order; a refresh waits for `open` and fails as `fails` says."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int | None]] = []
        self.running: list[str] = []
        self.most: dict[str, int] = {}
        self.open = asyncio.Event()
        self.begun = asyncio.Event()
        self.fails: list[Exception] = []
        self.awaited = (0, asyncio.Event())

    async def times(self, count: int) -> None:
        """Return once there were so many refreshes."""
        if len(self.seen) < count:
            self.awaited = (count, asyncio.Event())
            await self.awaited[1].wait()

    async def __call__(self, table: TableRef, version: int | None) -> None:
        self.seen.append((table.name, version))
        self.running.append(table.name)
        self.most[table.name] = max(self.most.get(table.name, 0), self.running.count(table.name))
        self.begun.set()
        if len(self.seen) == self.awaited[0]:
            self.awaited[1].set()
        try:
            await self.open.wait()
            if self.fails:
                raise self.fails.pop(0)
        finally:
            self.running.remove(table.name)


@pytest.mark.parametrize(
    ("versions", "wanted"),
    [([3, 7, 5], 7), ([3, None], None), ([None, 3], None), ([None], None), ([0, 0], 0)],
)
def test_many_events_of_a_table_are_one_look_for_the_newest_version(
    versions: list[int | None], wanted: int | None
) -> None:
    async def story() -> None:
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        inbox = RefreshQueue(refreshes)
        for version in versions:
            await inbox.put(A, version)
        assert inbox.backlog == 1
        work = asyncio.create_task(refreshing(inbox))
        await inbox.drained()
        work.cancel()
        assert refreshes.seen == [("a", wanted)]

    play(story)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from([A, B]), st.none() | st.integers(0, 9)), max_size=20))
def test_in_any_order_each_table_is_read_once_for_all_that_was_asked(
    events: list[tuple[TableRef, int | None]],
) -> None:
    async def story() -> None:
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        inbox = RefreshQueue(refreshes, workers=2)
        for table, version in events:
            await inbox.put(table, version)
        work = asyncio.create_task(refreshing(inbox))
        await inbox.drained()
        work.cancel()
        asked = {table.name: [v for t, v in events if t is table] for table in (A, B)}
        assert sorted(refreshes.seen, key=lambda refresh: refresh[0]) == [
            (name, None if None in versions else max(v for v in versions if v is not None))
            for name, versions in asked.items()
            if versions
        ]

    play(story)


@pytest.mark.parametrize("workers", [1, 3])
def test_tables_are_refreshed_in_the_order_in_which_their_first_waiting_events_arrived(workers: int) -> None:
    """However many events are behind: one that repeats an earlier one moves nothing."""

    async def story() -> None:
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        inbox = RefreshQueue(refreshes, workers=workers)
        tables = [TableRef(TableId(f"t{n}"), f"t{n}", f"file:///t{n}") for n in range(50)]
        random.Random(1).shuffle(tables)
        for number, table in enumerate(tables):
            await inbox.put(table, number)
            await inbox.put(tables[number // 2], number)
        work = asyncio.create_task(refreshing(inbox))
        await inbox.drained()
        work.cancel()
        assert [name for name, _ in refreshes.seen] == [table.name for table in tables]

    play(story)


def test_an_event_during_a_look_leads_to_another_one_after_it_and_never_beside_it() -> None:
    async def story() -> None:
        refreshes = RecordedRefreshes()
        inbox = RefreshQueue(refreshes, workers=4)
        work = asyncio.create_task(refreshing(inbox))
        await inbox.put(A, 1)
        await refreshes.begun.wait()
        await inbox.put(A, 2)
        for _ in range(10):
            await asyncio.sleep(0)  # Every worker has its turn.
        assert refreshes.running == ["a"]
        assert not work.done()
        await inbox.put(B, 1)
        await inbox.put(A, 3)
        assert inbox.backlog >= 2
        refreshes.open.set()
        await inbox.drained()
        work.cancel()
        assert [refresh for refresh in refreshes.seen if refresh[0] == "a"] == [("a", 1), ("a", 3)]
        assert refreshes.most == {"a": 1, "b": 1}

    play(story)


def test_a_look_that_crashed_or_was_refused_ends_no_one_elses() -> None:
    async def story() -> None:
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        refreshes.fails = [KeyError("no one foresaw this"), InvalidInput("no table")]
        inbox = RefreshQueue(refreshes, workers=1)
        work = asyncio.create_task(refreshing(inbox))
        for table in (A, B, A):
            await inbox.put(table, 1)
            await inbox.drained()
        assert [name for name, _ in refreshes.seen] == ["a", "b", "a"]
        assert inbox.retrying == 0
        assert not work.done()
        work.cancel()

    play(story)


@pytest.mark.parametrize("tries", [1, 3])
def test_a_look_that_failed_for_the_moment_is_taken_so_often_and_then_left_to_the_sweep(tries: int) -> None:
    async def story() -> None:
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        refreshes.fails = [RetryableError("away") for _ in range(tries)]
        inbox = RefreshQueue(refreshes, workers=1, retry_policy=RetryPolicy(tries, 0.001, 0.001))
        work = asyncio.create_task(refreshing(inbox))
        await inbox.put(A, 5)
        await refreshes.times(tries)
        await inbox.drained()
        work.cancel()
        assert inbox.retrying == 0
        assert refreshes.seen == [("a", 5)] + [("a", None)] * (tries - 1), "a retry asks for whatever is newest"

    play(story)


def test_a_success_begins_the_count_of_failures_again() -> None:
    async def story() -> None:
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        inbox = RefreshQueue(refreshes, workers=1, retry_policy=RetryPolicy(2, 0.001, 0.001))
        work = asyncio.create_task(refreshing(inbox))
        for times in (2, 4, 6):
            refreshes.fails = [RetryableError("away")]
            await inbox.put(A, None)
            await refreshes.times(times)
            await inbox.drained()
        work.cancel()
        assert len(refreshes.seen) == 6, "each time one failure and one success"

    play(story)


def test_why_a_refresh_failed_is_known_until_one_succeeds() -> None:
    async def reported() -> list[str]:
        table, problems = TableRef(TableId("t"), "t", ""), [RetryableError("the store is away"), None]

        async def refresh(_table: TableRef, _version: int | None) -> None:
            problem = problems.pop(0)
            if problem is not None:
                raise problem

        queue = RefreshQueue(refresh, workers=1, retry_policy=RetryPolicy(1, 1.0))
        found = [queue.problem(table.id)]
        async with asyncio.TaskGroup() as group:
            work = group.create_task(refreshing(queue))
            for _ in range(2):
                await queue.put(table, None)
                await queue.drained()
                found.append(queue.problem(table.id))
            work.cancel()
        return found

    assert asyncio.run(reported()) == ["", "the store is away", ""]
