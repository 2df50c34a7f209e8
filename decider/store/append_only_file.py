"""When the server's append-only file has to be written again: after each start, and after writes to it failed.

When a power cut has torn a script's transaction in the middle of a command, Redis 7.0 drops the torn command and leaves
the others in the file, open. They take effect with the server's next start only: half of a transition that no caller
knows of. A write that found no room may leave zeros between two commands, and no server starts with such a file. A file
that is rewritten from memory holds the current data only.
"""

from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis

from decider.store.redis.redis_errors import translate_redis_errors

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
