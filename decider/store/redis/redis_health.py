"""State of the Redis server, and whether it is safe for a queue.

Jobs must survive a restart and must never be evicted; a server that does not promise both, or takes no writes, is
unsafe, for a reason that is shown, and nothing new is written to it.

When the server's append-only file has to be written again: after each start, and after writes to it failed.

When a power cut has torn a script's transaction in the middle of a command, Redis 7.0 drops the torn command and leaves
the others in the file, open. They take effect with the server's next start only: half of a transition that no caller
knows of. A write that found no room may leave zeros between two commands, and no server starts with such a file. A file
that is rewritten from memory holds the current data only.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from decider.store.redis.redis_errors import translate_redis_errors
from shared.errors import RetryableError
from shared.queue.decode import text
from shared.queue.keys import NO_KEY, KeyType

log = structlog.get_logger()

MIN_MAJOR = 7
"""Scripts declare flags in their first line, which Redis and Valkey know from version 7 on."""

MEMORY_WARNING_RATIO = 0.9
"""Share of `maxmemory` from which on writes are about to be refused."""

STATUS_MAX_AGE_S = 1.0
"""Seconds for which a server that was found safe counts as safe: one round trip a second, however much is written."""

NO_TYPE = "none"
"""Redis' name for the type of a key that does not exist."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The relevant part of the server's INFO; sizes in bytes, 0 for a memory limit means none.

    `refusal` is what the server answers to a write, empty if it takes writes. `is_cluster`: it is a node of a cluster.
    `wrong_keys`: sentences about keys of another type than ours have.
    """

    name: str
    version: str
    aof_enabled: bool
    eviction_policy: str
    used_memory_bytes: int
    max_memory_bytes: int
    uptime_s: int
    is_replica: bool
    refusal: str = ""
    is_cluster: bool = False
    wrong_keys: tuple[str, ...] = ()

    @property
    def issues(self) -> tuple[str, ...]:
        """Problems of this server, each with its remedy; empty if there are none."""
        found = list(self.blockers)
        if self.max_memory_bytes and self.used_memory_bytes >= MEMORY_WARNING_RATIO * self.max_memory_bytes:
            found.append(f"{self.used_memory_bytes} of {self.max_memory_bytes} bytes are in use; raise 'maxmemory'")
        return tuple(found)

    @property
    def blockers(self) -> tuple[str, ...]:
        """Reasons why nothing may be stored on this server, each with its remedy; empty if it is safe.

        A nearly full server is safe: it rejects writes when it is full, and loses nothing.
        """
        found: list[str] = []
        if not self.aof_enabled:
            found.append("the append-only file is off: a restart loses jobs; set 'appendonly yes'")
        if self.eviction_policy != "noeviction":
            found.append(
                f"the eviction policy is {self.eviction_policy}: jobs may vanish under memory pressure; "
                "set 'maxmemory-policy noeviction'"
            )
        if self.is_cluster:
            found.append(
                "the server is a node of a cluster, and the registry's keys are not of one slot: "
                "use one primary, with replicas and Sentinel if it has to be available"
            )
        if self.is_replica:
            found.append("the server is a replica: it takes no writes; connect to the primary")
        if self.refusal and not self.is_replica:
            found.append(f"the server takes no writes, make room on its disk and read its log: {self.refusal}")
        if int(self.version.partition(".")[0]) < MIN_MAJOR:
            found.append(f"version {self.version} is too old for the queue's scripts; use {MIN_MAJOR} or newer")
        found += self.wrong_keys
        return tuple(found)


@translate_redis_errors
async def wrong_keys(redis: Redis, types: Mapping[str, KeyType]) -> tuple[str, ...]:
    """Return a sentence, with the remedy, for each key that has another type than it must have."""
    async with redis.pipeline(transaction=False) as pipe:
        for key in types:
            pipe.type(key)
        return _wrong(types, await pipe.execute())


def _wrong(types: Mapping[str, KeyType], found: Sequence[bytes]) -> tuple[str, ...]:
    pairs = ((key, expected, text(has)) for (key, expected), has in zip(types.items(), found, strict=True))
    return tuple(
        f"the key {key} is a {has} and must be a {expected}: another program writes into this database, or a restore "
        f"mixed two; move it away (RENAME {key} moved-away) and keep the database for Lakewright alone"
        for key, expected, has in pairs
        if has not in (expected, NO_TYPE)
    )


@translate_redis_errors
async def read_server_status(redis: Redis, types: Mapping[str, KeyType]) -> ServerStatus:
    """Ask the server about itself, in one round trip. Raises RetryableError if it does not answer.

    `types`: what the keys that everything depends on must be.
    """
    async with redis.pipeline(transaction=False) as pipe:
        pipe.info("server", "memory", "persistence", "replication")
        # Deleting what never exists changes nothing, and is refused by a server that takes no writes.
        pipe.delete(NO_KEY)
        for key in types:
            pipe.type(key)
        stated, deleted, *found = await pipe.execute(raise_on_error=False)
    if isinstance(stated, Exception):
        raise stated
    info: Mapping[str, Any] = stated
    is_valkey = "valkey_version" in info
    return ServerStatus(
        name="valkey" if is_valkey else "redis",
        version=str(info["valkey_version"] if is_valkey else info["redis_version"]),
        aof_enabled=bool(info["aof_enabled"]),
        eviction_policy=str(info.get("maxmemory_policy", "unknown")),
        used_memory_bytes=int(info["used_memory"]),
        max_memory_bytes=int(info.get("maxmemory", 0)),
        uptime_s=int(info["uptime_in_seconds"]),
        is_replica=info["role"] != "master",
        refusal=_refusal(deleted),
        is_cluster="cluster" in (info.get("server_mode"), info.get("redis_mode")),
        # A user without the right to ask has a server that is healthy as far as we know.
        wrong_keys=() if any(isinstance(one, Exception) for one in found) else _wrong(types, found),
    )


def _refusal(deleted: object) -> str:
    """Return why the server rejects writes; empty if it accepts them."""
    if not isinstance(deleted, Exception):
        return ""
    if not isinstance(deleted, ResponseError):
        raise deleted
    return f"{deleted.status_code or ''} {deleted}".strip()


class RedisSafety:
    """Decides whether anything new may be written to the server; checked before each such write.

    `types`: what the keys that everything depends on must be.
    """

    def __init__(
        self,
        redis: Redis,
        *,
        clock_s: Callable[[], float],
        max_age_s: float = STATUS_MAX_AGE_S,
        types: Mapping[str, KeyType] = MappingProxyType({}),
    ) -> None:
        self.max_age_s = max_age_s
        self._redis = redis
        self._clock_s = clock_s
        self._types = types
        self._safe_at_s = float("-inf")
        self._asked: asyncio.Future[ServerStatus] | None = None

    async def require_safe(self) -> None:
        """Raise RetryableError, with what is wrong and what to do, unless the server is safe."""
        if self._clock_s() - self._safe_at_s < self.max_age_s:
            return
        # One question at a time, whose answer serves all who wait: with a slow server, others would queue for theirs.
        if self._asked is None or self._asked.done():
            self._asked = asyncio.ensure_future(self.read())
            self._asked.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        dangers = (await asyncio.shield(self._asked)).blockers
        if dangers:
            log.warning("redis_unsafe", reasons=dangers)
            raise RetryableError(f"Redis cannot be trusted now, so nothing was taken: {'; '.join(dangers)}")

    async def read(self) -> ServerStatus:
        """Ask the server about itself, and remember whether it is safe. Raises RetryableError if it does not answer."""
        found = await read_server_status(self._redis, self._types)
        self._safe_at_s = float("-inf") if found.blockers else self._clock_s()
        return found


RETRY_AFTER_PASSES = 60
"""Passes until a rewrite that failed is tried again: without room each try only forks the server in vain."""

_BUSY = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")


class AppendOnlyUpkeep:
    """Has one server's file written again; remembers whether a write failed since that was last done."""

    def __init__(self) -> None:
        self._is_suspect = False
        self._is_requested = False
        self._refused_writes = 0
        self._passes_to_wait = 0

    @translate_redis_errors
    async def rewrite(self, redis: Redis) -> bool:
        """Request a rewrite where one is due and possible; returns whether it was requested.

        A failed write is seen by its state, or, where that was too short for it, by the writes that it had refused.
        """
        info: Mapping[str, Any] = await redis.info("persistence", "errorstats")
        if not info["aof_enabled"] or any(info[name] for name in _BUSY):
            return False
        if self._is_requested:
            has_failed = info["aof_last_bgrewrite_status"] != "ok"
            self._is_requested, self._is_suspect = False, has_failed
            self._passes_to_wait = RETRY_AFTER_PASSES if has_failed else 0
        refused = int(info.get("errorstat_MISCONF", {}).get("count", 0))
        is_writing = info["aof_last_write_status"] == "ok"
        self._is_suspect |= not is_writing or refused > self._refused_writes
        self._refused_writes = refused
        is_new = int(info["aof_last_rewrite_time_sec"]) < 0
        self._passes_to_wait -= 1
        if not is_writing or self._passes_to_wait > 0 or not (is_new or self._is_suspect):
            return False
        await redis.bgrewriteaof()
        self._is_requested = True
        return True
