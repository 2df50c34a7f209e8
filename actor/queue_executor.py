"""Carries queue transitions to the server from threads; a call whose reply is lost is repeated, within bounds.

The client library's own silent retries are refused: a retry must be a decision, made here, where it is known that
every transition may be repeated.
"""

import time
from typing import Any, TypeVar

from redis import BlockingConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.connection import SSLConnection, parse_url
from redis.exceptions import AuthenticationError, AuthorizationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoReply
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

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
from shared.queue.decode import text
from shared.queue.limits import require_queue
from shared.queue.lua_library import NOT_FOUND, ScriptLibrary
from shared.queue.model import JobId
from shared.retry import RetryPolicy


class SyncSentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """Connections to the primary that sentinels name; after a failover, new connections lead to the new one.

    A limited number is open. The client library's own pool raises an error when all are in use, where callers wait for
    a connection of any other pool. It closes those to the sentinels, too.
    """

    address: str

    def disconnect(self, inuse_connections: bool = True) -> None:  # noqa: FBT001, FBT002 - the library's signature
        """Close all connections, or with `inuse_connections=False` those that are not in use."""
        super().disconnect(inuse_connections=inuse_connections)
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                sentinel.close()


def sentinel_pool(url: SentinelUrl, **settings: Any) -> SyncSentinelPool:
    """Return a pool for the primary; `settings` are a BlockingConnectionPool's."""
    given: Any = parse_url(url.primary_url)  # type: ignore[no-untyped-call]
    is_encrypted = given.pop("connection_class", None) is SSLConnection
    to_primary = primary_settings(settings | given, is_encrypted=is_encrypted)
    to_sentinels = sentinel_settings(to_primary, url)
    manager = Sentinel(url.sentinels, sentinel_kwargs=to_sentinels)  # type: ignore[no-untyped-call]
    pool = SyncSentinelPool(url.primary, manager, **to_primary)  # type: ignore[no-untyped-call]
    pool.address = url.address
    return pool


R = TypeVar("R")

TIMEOUT_S = 5.0
"""Waiting for a connection or a reply; scripts take far below a millisecond, so more means trouble."""

CONNECTIONS = 8
"""Connections per process; further callers wait for a free one."""


class SyncQueueExecutor:
    """Runs transitions of one queue; safe to share between threads."""

    def __init__(
        self, redis: Redis, queue: str, *, library: ScriptLibrary | None = None, retry_policy: RetryPolicy = LOST_REPLY
    ) -> None:
        """Use a client built by `connect`, or any other without retries of its own."""
        require_queue(queue)
        if retries_itself(redis.connection_pool.connection_kwargs):
            raise InvalidInput("the Redis client retries by itself; build it with retry=Retry(NoBackoff(), 0)")
        self.redis = redis
        self.name = queue
        self._library = library or ScriptLibrary()
        self._retry_policy = retry_policy
        self._address = address(redis)

    def run(self, command: Command[R]) -> R:
        """Carry out one transition; raises RetryableError, naming the address, if its effect is not known."""
        failed = 0
        while True:
            try:
                return command.decode(self._call(command))
            except (AuthenticationError, AuthorizationError, ResponseError) as problem:
                raise self._error(command, problem) from problem
            except (NoConnection, NoReply) as problem:
                failed += 1
                if self._retry_policy.is_exhausted(failed):
                    raise unreachable(command.script, self._address, failed, problem) from problem
            time.sleep(self._retry_policy.pause_s(failed))

    def traces(self, job: JobId) -> tuple[str, ...]:
        """Return the contexts of the traces that led to a job, oldest first; none where they cannot be read."""
        try:
            found = self.redis.hget(keys.job(self.name, job), "traces")
        except RedisError:
            return ()
        return tuple(text(found).split()) if found else ()

    def _call(self, command: Command[R]) -> Any:
        function, names = self._library.function(command.script), command.keys
        try:
            return self.redis.fcall(function, len(names), *names, *command.args)
        except ResponseError as problem:
            if NOT_FOUND not in str(problem):
                raise
            self.redis.function_load(self._library.text, replace=True)
            return self.redis.fcall(function, len(names), *names, *command.args)

    def _error(self, command: Command[R], problem: RedisError) -> LakewrightError:
        return error_of_reply(command.script, self._address, f"{problem.status_code or ''} {problem}".strip())


def connect(url: str, *, timeout_s: float = TIMEOUT_S, connections: int = CONNECTIONS) -> Redis:
    """Return a client that never retries by itself; nothing is sent yet.

    The URL is of `redis://`, `rediss://`, `unix://`, or of sentinels (see `SentinelUrl`).
    """
    settings: dict[str, Any] = {
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
    return pool.address if isinstance(pool, SyncSentinelPool) else address_in(pool.connection_kwargs)
