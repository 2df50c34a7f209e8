"""Each table waits once and is read by one at a time, whatever the number of events that named it."""

import asyncio

import pytest

from decider.events.refresh_queue import RefreshQueue
from shared.errors import InvalidInput, RetryableError
from shared.retry import RetryPolicy
from shared.table import TableId, TableRef
from tests.support.refreshing import RecordedRefreshes, play, refreshing

A, B = (TableRef(TableId(name), name, f"file:///{name}") for name in ("a", "b"))


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
