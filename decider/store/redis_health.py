"""State of the Redis server, and whether it is safe for a queue.

Jobs must survive a restart and must never be evicted; a server that does not promise both, or takes no writes, is
unsafe, for a reason that is shown, and nothing new is written to it.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from decider.store.redis_errors import translate_redis_errors
from shared.errors import RetryableError
from shared.queue.keys import NO_KEY

log = structlog.get_logger()

MIN_MAJOR = 7
"""Scripts declare flags in their first line, which Redis and Valkey know from version 7 on."""

MEMORY_WARNING_RATIO = 0.9
"""Share of `maxmemory` from which on writes are about to be refused."""

STATUS_MAX_AGE_S = 1.0
"""Seconds for which a server that was found safe counts as safe: two small calls a second, however much is written."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The relevant part of the server's INFO; sizes in bytes, 0 for a memory limit means none.

    `refusal` is what the server answers to a write, empty if it takes writes. `is_cluster`: it is a node of a cluster.
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
        return tuple(found)


@translate_redis_errors
async def rewrite_aof(redis: Redis) -> bool:
    """Have the server rewrite its append-only file, once after each of its starts; returns whether it was requested.

    When a power cut has torn a script's transaction in the middle of a command, Redis 7.0 drops the torn command and
    leaves the others in the file, open. They take effect with the server's next start only: half of a transition that
    no caller knows of. A file that is rewritten from memory holds only the current data.
    """
    info: Mapping[str, Any] = await redis.info("persistence")
    was_written = int(info["aof_last_rewrite_time_sec"]) >= 0
    is_busy = any(info[name] for name in ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress"))
    if not info["aof_enabled"] or was_written or is_busy:
        return False
    await redis.bgrewriteaof()
    return True


@translate_redis_errors
async def read_server_status(redis: Redis) -> ServerStatus:
    """Ask the server about itself. Raises RetryableError if it does not answer."""
    info: Mapping[str, Any] = await redis.info("server", "memory", "persistence", "replication")
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
        refusal=await _refusal(redis),
        is_cluster="cluster" in (info.get("server_mode"), info.get("redis_mode")),
    )


async def _refusal(redis: Redis) -> str:
    """Return why the server rejects writes, without writing; empty if it accepts them."""
    try:
        await redis.delete(NO_KEY)
    except ResponseError as problem:
        return f"{problem.status_code or ''} {problem}".strip()
    return ""


class RedisSafety:
    """Decides whether anything new may be written to the server; checked before each such write."""

    def __init__(self, redis: Redis, *, clock_s: Callable[[], float], max_age_s: float = STATUS_MAX_AGE_S) -> None:
        self.max_age_s = max_age_s
        self._redis = redis
        self._clock_s = clock_s
        self._safe_at_s = float("-inf")
        self._asking = asyncio.Lock()

    async def require_safe(self) -> None:
        """Raise RetryableError, with what is wrong and what to do, unless the server is safe."""
        if self._clock_s() - self._safe_at_s < self.max_age_s:
            return
        async with self._asking:
            if self._clock_s() - self._safe_at_s < self.max_age_s:
                return
            dangers = (await self.read()).blockers
            if dangers:
                log.warning("redis_unsafe", reasons=dangers)
                raise RetryableError(f"Redis cannot be trusted now, so nothing was taken: {'; '.join(dangers)}")

    async def read(self) -> ServerStatus:
        """Ask the server about itself, and remember whether it is safe. Raises RetryableError if it does not answer."""
        asked_at_s, self._safe_at_s = self._clock_s(), float("-inf")
        found = await read_server_status(self._redis)
        if not found.blockers:
            self._safe_at_s = asked_at_s
        return found
