"""A task that is cancelled during a call to Redis ends, whatever the client library makes of the cancellation."""

import asyncio
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as NoConnection

from decider.background.runner import Schedule, run_periodically
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.redis.redis_errors import translate_redis_errors
from shared.queue import queries
from shared.retry import RetryPolicy
from tests.support.time_limits import scaled


async def lost(*, raised: Exception | None = None) -> bytes:
    """Wait, and lose the cancellation as `asyncio.wait_for` does before Python 3.12."""
    try:
        await asyncio.sleep(3_600)
    except asyncio.CancelledError:
        if raised:
            raise raised from None
    return b""


async def ends(task: "asyncio.Task[Any]") -> None:
    await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=scaled(10))
    assert done
    assert task.cancelled()


@pytest.mark.parametrize("raised", [None, NoConnection("closed")])
async def test_a_duty_that_is_cancelled_in_a_call_ends(raised: Exception | None) -> None:
    class Task:
        schedule = Schedule(0.0, "task_failed")

        @translate_redis_errors
        async def run_once(self) -> bytes:
            return await lost(raised=raised)

    await ends(asyncio.create_task(run_periodically(Task(), name="task")))


@pytest.mark.parametrize("raised", [None, NoConnection("closed")])
async def test_a_transition_that_is_cancelled_is_not_tried_again(raised: Exception | None) -> None:
    class Server:
        connection_pool = connect("redis://localhost").connection_pool
        fcall = staticmethod(lambda *_: lost(raised=raised))

    queue = AsyncQueueExecutor(cast("Redis", Server()), "default", retry_policy=RetryPolicy(3, 0.0))
    await ends(asyncio.create_task(queue.run(queries.depth("default"))))


def test_an_earlier_cancellation_does_not_end_what_is_done_because_of_it() -> None:
    """A lease is given back after a cancellation: that call must not end with it."""
    given_back: list[bytes] = []

    @translate_redis_errors
    async def give_back() -> bytes:
        await asyncio.sleep(0)
        return b"given back"

    async def work() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            given_back.append(await give_back())

    async def story() -> None:
        await ends(asyncio.create_task(work()))

    asyncio.run(story())
    assert given_back == [b"given back"]
