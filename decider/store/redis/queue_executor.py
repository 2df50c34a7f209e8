"""Carries queue transitions to the server from asyncio; a call whose reply is lost is repeated, within bounds.

The client library's own silent retries are refused: a retry must be a decision, made here, where it is known that
every transition may be repeated.

A pool of connections to the primary that sentinels name; after a failover, new connections lead to the new one.

The client library's own pool for sentinels raises an error when all of its connections are in use, where callers wait
for a connection of any other pool.
"""

import asyncio
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoReply
from redis.maint_notifications import MaintNotificationsConfig

from decider.store.redis.redis_errors import cancellation_kept
from decider.store.redis.redis_health import RedisSafety
from shared.errors import InvalidInput, LakewrightError
from shared.queue import keys
from shared.queue.client_settings import (
    SentinelUrl,
    address_in,
    parse_sentinel_url,
    primary_settings,
    retries_itself,
    sentinel_settings,
)
from shared.queue.command import LOST_REPLY, Command, error_of_reply, unreachable
from shared.queue.limits import require_queue
from shared.queue.lua_library import NOT_FOUND, ScriptLibrary, ScriptName
from shared.retry import RetryPolicy

R = TypeVar("R")

TIMEOUT_S = 5.0
"""Waiting for a connection or a reply; scripts take far below a millisecond, so more means trouble."""

CONNECTIONS = 32
"""Connections per process; further callers wait for a free one."""

FEW_GREETINGS: Mapping[str, Any] = MappingProxyType(
    {
        "driver_info": None,
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
    }
)
"""Settings by which a new connection greets the server once: each further greeting is a round trip before the first
call, and a server that is far away has a crowd of callers open many connections."""

ACCEPTS_WORK = frozenset({ScriptName.ENQUEUE, ScriptName.INGEST, ScriptName.DECIDE})
"""Transitions that promise work for later, which an unsafe server might forget; what runs may always end."""


class AsyncQueueExecutor:
    """Runs transitions of one queue; safe to share between tasks of one event loop.

    `names`: its own, and the names of its further groups.
    """

    def __init__(
        self,
        redis: Redis,
        queue: str,
        *,
        library: ScriptLibrary | None = None,
        retry_policy: RetryPolicy = LOST_REPLY,
        safety: RedisSafety | None = None,
        groups: Iterable[str] = (),
    ) -> None:
        """Use a client built by `connect`, or any other without retries of its own.

        With `safety`, no work is taken that Redis might lose. groups: further groups of the queue that are served.
        """
        require_queue(queue)
        if retries_itself(redis.connection_pool.connection_kwargs):
            raise InvalidInput("the Redis client retries by itself; build it with retry=Retry(NoBackoff(), 0)")
        self.redis = redis
        self.name = queue
        self.names = (queue, *(name for group in groups if (name := keys.in_group(queue, group)) != queue))
        self._library = library or ScriptLibrary()
        self._retry_policy = retry_policy
        self._address = address(redis)
        self._safety = safety

    def of_group(self, name: str) -> "AsyncQueueExecutor":
        """Return the executor of one of `names`, on the same connections."""
        return AsyncQueueExecutor(
            self.redis, name, library=self._library, retry_policy=self._retry_policy, safety=self._safety
        )

    @property
    def library_name(self) -> str:
        """The name by which the server knows our scripts."""
        return self._library.name

    async def run(self, command: Command[R]) -> R:
        """Carry out one transition; raises RetryableError, naming the address, if its effect is not known."""
        if self._safety is not None and command.script in ACCEPTS_WORK:
            await self._safety.require_safe()
        failed = 0
        while True:
            try:
                with cancellation_kept():
                    return command.decode(await self._call(command))
            except (AuthenticationError, AuthorizationError, ResponseError) as problem:
                raise self._error(command, problem) from problem
            except (NoConnection, NoReply, OSError) as problem:
                failed += 1
                if self._retry_policy.is_exhausted(failed):
                    raise unreachable(command.script, self._address, failed, problem) from problem
            await asyncio.sleep(self._retry_policy.pause_s(failed))

    async def _call(self, command: Command[R]) -> Any:
        function, named = self._library.function(command.script), command.keys
        try:
            return await self.redis.fcall(function, len(named), *named, *command.args)
        except ResponseError as problem:
            if NOT_FOUND not in str(problem):
                raise
            await self.redis.function_load(self._library.text, replace=True)
            return await self.redis.fcall(function, len(named), *named, *command.args)

    def _error(self, command: Command[R], problem: RedisError) -> LakewrightError:
        return error_of_reply(command.script, self._address, f"{problem.status_code or ''} {problem}".strip())


def connect(url: str, *, timeout_s: float = TIMEOUT_S, connections: int = CONNECTIONS) -> Redis:
    """Return a client that never retries by itself; nothing is sent yet.

    The URL is of `redis://`, `rediss://`, `unix://`, or of sentinels (see `SentinelUrl`).
    """
    settings: dict[str, Any] = {
        **FEW_GREETINGS,
        "max_connections": connections,
        "timeout": timeout_s,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
    }
    sentinels = parse_sentinel_url(url)
    if sentinels is not None:
        return Redis.from_pool(sentinel_pool(sentinels, **settings))
    return Redis.from_pool(BlockingConnectionPool.from_url(url, **settings))


def address(redis: Redis) -> str:
    """Return where a client connects to, without credentials, for messages."""
    pool = redis.connection_pool
    return pool.address if isinstance(pool, SentinelPool) else address_in(pool.connection_kwargs)


class SentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """Connections to the primary, of which a limited number is open; it closes those to the sentinels, too."""

    address: str

    async def aclose(self) -> None:
        """Close all connections."""
        await super().aclose()
        await self.sentinel_manager.aclose()


def sentinel_pool(url: SentinelUrl, **settings: Any) -> SentinelPool:
    """Return a pool for the primary; `settings` are arguments of a BlockingConnectionPool."""
    given: Any = parse_url(url.primary_url)
    is_encrypted = given.pop("connection_class", None) is SSLConnection
    to_primary = primary_settings(settings | given, is_encrypted=is_encrypted)
    to_sentinels = sentinel_settings(to_primary, url)
    manager = Sentinel(url.sentinels, sentinel_kwargs=to_sentinels)  # type: ignore[no-untyped-call]
    pool = SentinelPool(url.primary, manager, **to_primary)  # type: ignore[no-untyped-call]
    pool.address = url.address
    return pool
