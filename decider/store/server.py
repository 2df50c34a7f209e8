"""What the Redis server says of itself, and whether a queue may be trusted to it.

Jobs must survive a restart and must never be evicted; a server that does not promise both is called unsafe, in words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from decider.store.answers import answered

MIN_MAJOR = 7
"""Scripts declare flags in their first line, which Redis and Valkey know from version 7 on."""

MEMORY_WARNING_RATIO = 0.9
"""Share of `maxmemory` from which on writes are about to be refused."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What matters of the server's INFO; sizes in bytes, 0 for a memory limit means none."""

    name: str
    version: str
    aof_enabled: bool
    eviction_policy: str
    used_memory_bytes: int
    max_memory_bytes: int
    uptime_s: int
    is_replica: bool

    @property
    def issues(self) -> tuple[str, ...]:
        """Why this server is not safe for a queue, each with what to do; empty if it is."""
        found: list[str] = []
        if not self.aof_enabled:
            found.append("the append-only file is off: a restart loses jobs; set 'appendonly yes'")
        if self.eviction_policy != "noeviction":
            found.append(
                f"the eviction policy is {self.eviction_policy}: jobs may vanish under memory pressure; "
                "set 'maxmemory-policy noeviction'"
            )
        if self.is_replica:
            found.append("the server is a replica: it takes no writes; connect to the primary")
        if self.max_memory_bytes and self.used_memory_bytes >= MEMORY_WARNING_RATIO * self.max_memory_bytes:
            found.append(f"{self.used_memory_bytes} of {self.max_memory_bytes} bytes are in use; raise 'maxmemory'")
        if int(self.version.partition(".")[0]) < MIN_MAJOR:
            found.append(f"version {self.version} is too old for the queue's scripts; use {MIN_MAJOR} or newer")
        return tuple(found)


@answered
async def renew_log(redis: Redis) -> bool:
    """Have the server write its append-only file anew if it has not since it started; returns whether it was asked to.

    When a power cut has torn a script's transaction in the middle of a command, Redis 7.0 drops the torn command and
    leaves the others in the file, open. They are not in force then, and are as soon as the server starts once more:
    half of a transition that nobody was told of. A file written anew from memory holds what is in force and no more.
    """
    info: Mapping[str, Any] = await redis.info("persistence")
    was_written = int(info["aof_last_rewrite_time_sec"]) >= 0
    is_busy = any(info[name] for name in ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress"))
    if not info["aof_enabled"] or was_written or is_busy:
        return False
    await redis.bgrewriteaof()
    return True


@answered
async def inspect(redis: Redis) -> ServerFacts:
    """Ask the server about itself. Raises RetryableError if it does not answer."""
    info: Mapping[str, Any] = await redis.info("server", "memory", "persistence", "replication")
    is_valkey = "valkey_version" in info
    return ServerFacts(
        name="valkey" if is_valkey else "redis",
        version=str(info["valkey_version"] if is_valkey else info["redis_version"]),
        aof_enabled=bool(info["aof_enabled"]),
        eviction_policy=str(info.get("maxmemory_policy", "unknown")),
        used_memory_bytes=int(info["used_memory"]),
        max_memory_bytes=int(info.get("maxmemory", 0)),
        uptime_s=int(info["uptime_in_seconds"]),
        is_replica=info["role"] != "master",
    )
