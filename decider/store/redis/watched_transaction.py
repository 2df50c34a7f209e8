"""Reads and writes several keys of Redis in one step: what was read is still so when the writes take effect.

The writes are one MULTI, which neither another client, nor a crash, nor FLUSHALL takes apart.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from redis.asyncio import Redis
from redis.exceptions import WatchError

from shared.errors import RetryableError

R = TypeVar("R")

ATTEMPTS = 100
"""Transactions that a call may lose to other writers: seconds, beside a discovery that registers without a pause."""

MAX_PAUSE_S = 0.02
"""Longest pause before the next attempt, at random, so that two writers do not meet again and again."""


async def watched_transaction(redis: Redis, watched: tuple[str, ...], body: Callable[[Any], Awaitable[R]]) -> R:
    """Return what `body` returns, once its writes took effect on what it had read.

    `body` reads from the pipeline that it is given, calls `multi()`, and queues its writes there; it may run several
    times. Raises RetryableError if other writers change the watched keys all the time.
    """
    for _ in range(ATTEMPTS):
        async with redis.pipeline(transaction=True) as pipe:
            await pipe.watch(*watched)
            result = await body(pipe)
            if not pipe.command_stack:
                return result
            try:
                await pipe.execute()
            except WatchError:
                await asyncio.sleep(random.random() * MAX_PAUSE_S)  # noqa: S311 - spreads writers, hides nothing
                continue
            return result
    raise RetryableError(f"other deciders change {' and '.join(watched)} all the time; try again")
