"""Each table waits once and is read by one at a time, whatever the number of events that named it."""

import asyncio
import random

import pytest

from decider.events import refresh_queue
from decider.events.refresh_queue import RefreshQueue
from shared.errors import InvalidInput, RetryableError
from shared.retry import RetryPolicy
from shared.table import TableId, TableRef
from tests.support.refreshing import RecordedRefreshes, in_time, refreshing

A, B = (TableRef(TableId(name), name, f"file:///{name}") for name in ("a", "b"))


@pytest.mark.parametrize(
    ("versions", "wanted"),
    [([3, 7, 5], 7), ([3, None], None), ([None, 3], None), ([None], None), ([0, 0], 0)],
)
async def test_many_events_of_a_table_are_one_look_for_the_newest_version(
    versions: list[int | None], wanted: int | None
) -> None:
    async with in_time():
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


@pytest.mark.parametrize("workers", [1, 3])
async def test_tables_are_refreshed_in_the_order_in_which_their_first_waiting_events_arrived(workers: int) -> None:
    """However many events are behind: one that repeats an earlier one moves nothing."""
    async with in_time():
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


async def test_an_event_during_a_look_leads_to_another_one_after_it_and_never_beside_it() -> None:
    async with in_time():
        refreshes = RecordedRefreshes()
        inbox = RefreshQueue(refreshes, workers=4)
        work = asyncio.create_task(refreshing(inbox))
        await inbox.put(A, 1)
        await refreshes.begun.wait()
        idle = asyncio.create_task(inbox.refresh_next())
        await inbox.put(A, 2)
        for _ in range(10):
            await asyncio.sleep(0)  # Every worker has its turn.
        assert refreshes.running == ["a"]
        assert not idle.done(), "a worker that takes what is being read crashes"
        await inbox.put(B, 1)
        await inbox.put(A, 3)
        assert inbox.backlog >= 2
        refreshes.open.set()
        await inbox.drained()
        work.cancel()
        idle.cancel()
        assert [refresh for refresh in refreshes.seen if refresh[0] == "a"] == [("a", 1), ("a", 3)]
        assert refreshes.most == {"a": 1, "b": 1}


async def test_a_look_that_was_refused_ends_no_one_elses_and_is_not_repeated() -> None:
    async with in_time():
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        refreshes.fails = [InvalidInput("no table"), InvalidInput("no table")]
        inbox = RefreshQueue(refreshes, workers=1)
        work = asyncio.create_task(refreshing(inbox))
        for table in (A, B, A):
            await inbox.put(table, 1)
            await inbox.drained()
        assert [name for name, _ in refreshes.seen] == ["a", "b", "a"]
        assert inbox.retrying == 0
        assert not work.done()
        work.cancel()


@pytest.mark.parametrize("failure", [RetryableError("away"), OSError("too many open files")], ids=["foreseen", "crash"])
@pytest.mark.parametrize("tries", [1, 3])
async def test_a_look_that_failed_for_the_moment_is_taken_so_often_and_then_left_to_the_sweep(
    tries: int, failure: Exception
) -> None:
    async with in_time():
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        refreshes.fails = [failure for _ in range(tries)]
        inbox = RefreshQueue(refreshes, workers=1, retry_policy=RetryPolicy(tries, 0.001, 0.001))
        work = asyncio.create_task(refreshing(inbox))
        await inbox.put(A, 5)
        await refreshes.times(tries)
        await inbox.drained()
        work.cancel()
        assert inbox.retrying == 0
        assert refreshes.seen == [("a", 5)] + [("a", None)] * (tries - 1), "a retry asks for whatever is newest"


async def test_a_success_begins_the_count_of_failures_again() -> None:
    async with in_time():
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


def _tables(kind: str, number: int) -> list[TableRef]:
    return [TableRef(TableId(f"{kind}{n}"), f"{kind}{n}", f"file:///{kind}{n}") for n in range(number)]


async def _order(refreshes: RecordedRefreshes, inbox: RefreshQueue) -> list[str]:
    """Serve the queue by one worker until it is empty, and return the tables in their order."""
    refreshes.open.set()
    work = asyncio.create_task(refreshing(inbox))
    await inbox.drained()
    work.cancel()
    return [name for name, _ in refreshes.seen]


async def _turns() -> None:
    """Let all tasks go on as far as they can without waiting for anything."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_tables_of_the_sweep_wait_behind_those_of_events_but_have_every_ninth_turn() -> None:
    async with in_time():
        refreshes = RecordedRefreshes()
        inbox = RefreshQueue(refreshes, workers=1)
        for table in _tables("s", 3):
            await inbox.put_swept(table)
        for number, table in enumerate(_tables("e", 17)):
            await inbox.put(table, number)
        assert inbox.backlog == 20
        events = [f"e{n}" for n in range(17)]
        assert await _order(refreshes, inbox) == [*events[:8], "s0", *events[8:16], "s1", "e16", "s2"]
        assert dict(refreshes.seen)["s0"] is None


async def test_an_event_moves_a_swept_table_among_those_of_events_and_a_sweep_adds_nothing_to_one_that_waits() -> None:
    async with in_time():
        refreshes = RecordedRefreshes()
        inbox = RefreshQueue(refreshes, workers=1)
        swept = _tables("s", 2)
        for table in (*swept, swept[0]):
            await inbox.put_swept(table)
        await inbox.put(A, 3)
        await inbox.put(swept[1], 7)
        await inbox.put_swept(A)
        assert inbox.backlog == 3
        assert await _order(refreshes, inbox) == ["a", "s1", "s0"]
        assert [version for _, version in refreshes.seen] == [None, None, None]
        assert inbox._room._value == refresh_queue.MAX_SWEPT


async def test_the_sweep_waits_while_as_many_of_its_tables_wait_as_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh_queue, "MAX_SWEPT", 2)
    async with in_time():
        refreshes = RecordedRefreshes()
        inbox = RefreshQueue(refreshes, workers=1)

        async def sweep() -> None:
            for table in _tables("s", 5):
                await inbox.put_swept(table)

        sweeping = asyncio.create_task(sweep())
        await _turns()
        assert (inbox.backlog, sweeping.done()) == (2, False)
        await inbox.put(A, 1)  # Events wait for no room.
        refreshes.open.set()
        work = asyncio.create_task(refreshing(inbox))
        await sweeping
        await inbox.drained()
        work.cancel()
        assert [name for name, _ in refreshes.seen] == ["a", "s0", "s1", "s2", "s3", "s4"]


async def test_a_table_that_failed_for_the_moment_is_refreshed_at_once_by_the_sweep() -> None:
    async with in_time():
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        failing = [RetryableError("away")]

        async def refresh(table: TableRef, version: int | None) -> None:
            if failing:
                raise failing.pop()
            await refreshes(table, version)

        inbox = RefreshQueue(refresh, retry_policy=RetryPolicy(max_attempts=8, first_s=600.0, longest_s=600.0))
        work = asyncio.create_task(refreshing(inbox))
        await inbox.put(A, 1)
        await _turns()
        assert inbox.retrying == 1
        await inbox.put_swept(A)
        await inbox.drained()
        work.cancel()
        assert (refreshes.seen, inbox.retrying) == ([("a", None)], 0)


async def test_fewer_tables_are_refreshed_at_once_while_turns_of_the_loop_are_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests wait for each turn of the loop; tables can wait."""
    async with in_time():
        running, step = set[str](), asyncio.Semaphore(0)

        async def refresh(table: TableRef, _: int | None) -> None:
            running.add(table.name)
            await step.acquire()
            running.remove(table.name)

        inbox = RefreshQueue(refresh, workers=8)
        work = asyncio.create_task(refreshing(inbox))
        for longest_s, at_once in ((-1.0, refresh_queue.FEWEST_AT_ONCE), (3_600.0, 8)):
            monkeypatch.setattr(refresh_queue, "LONG_TURN_S", longest_s)
            for table in _tables("t", 40):
                await inbox.put(table, 1)
            for _ in range(20):
                step.release()
                await _turns()
            assert len(running) == at_once
            for _ in range(20):
                step.release()
            await inbox.drained()
        work.cancel()
