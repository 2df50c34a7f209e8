"""A Redis that does not answer is a transient failure, whatever exception the client library raises.

Callers above the store know our errors only; so the refresh queue, the sweep and the API all survive an unavailable
Redis.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from redis.exceptions import RedisError

from decider.store.cancellation import cancellation_kept
from shared.errors import RetryableError

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def translating_redis_errors() -> Iterator[None]:
    """Raise RetryableError where Redis fails inside the block; a cancellation inside it is kept."""
    with cancellation_kept():
        try:
            yield
        except RedisError as problem:
            raise RetryableError(f"Redis does not answer; check that it runs and is reachable: {problem}") from problem


def translate_redis_errors(call: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Make a coroutine function raise RetryableError where Redis fails."""

    @wraps(call)
    async def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        with translating_redis_errors():
            return await call(*args, **kwargs)

    return checked
