"""A Redis that does not answer is a transient failure, whatever exception the client library raises.

Callers above the store know our errors only; so the refresh queue, the sweep and the API all survive an unavailable
Redis.

A task that is cancelled during a call to Redis ends, although the client library may lose the cancellation.

The library sends within `asyncio.wait_for`, which before Python 3.12 returns normally if the awaited call completes at
the moment of the cancellation (https://github.com/python/cpython/issues/86296). A background task would then run
forever, and the decider would not stop. A task counts its cancellations, so a lost one is noticed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from redis.exceptions import NoPermissionError, RedisError, ResponseError

from shared.errors import RetryableError
from shared.queue.command import NEEDED_RIGHTS, WRONG_TYPE, WrongKey

P = ParamSpec("P")
R = TypeVar("R")


UNKNOWN_COMMAND = "unknown command"
"""Beginning of the error of a server that does not have a command, as managed ones without some."""


class CommandRefused(RetryableError):  # noqa: N818 - as the other errors
    """The server does not let this user run a command, or does not have it."""


@contextmanager
def translating_redis_errors() -> Iterator[None]:
    """Raise RetryableError where Redis fails inside the block; a cancellation inside it is kept."""
    with cancellation_kept():
        try:
            yield
        except ResponseError as problem:
            if isinstance(problem, NoPermissionError) or str(problem).startswith(UNKNOWN_COMMAND):
                raise CommandRefused(f"Redis refuses a command ({NEEDED_RIGHTS}): {problem}") from problem
            if WRONG_TYPE in str(problem) or problem.status_code == WRONG_TYPE:  # A pipeline has it in its sentence.
                raise WrongKey("Redis", str(problem)) from problem
            raise RetryableError(f"Redis answers with an error: {problem}") from problem
        except (RedisError, OSError) as problem:
            # An OSError is one of this process: it has no descriptor for a connection, for example.
            raise RetryableError(f"Redis does not answer; check that it runs and is reachable: {problem}") from problem


def translate_redis_errors(call: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Make a coroutine function raise RetryableError where Redis fails."""

    @wraps(call)
    async def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        with translating_redis_errors():
            return await call(*args, **kwargs)

    return checked


@contextmanager
def cancellation_kept() -> Iterator[None]:
    """Raise CancelledError if the task was cancelled inside the block, which ended in another way."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    except Exception as problem:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError from problem
        raise
    if task and task.cancelling() > before:
        raise asyncio.CancelledError
