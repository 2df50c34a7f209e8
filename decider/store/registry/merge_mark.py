"""Knows whether the registry in Redis was merged with the saved one since the server started and was emptied last.

A change that was made on a registry that lost entries would be later than what is saved, and would win: a table that
was renamed in an old backup would lose its overrides of today. So changes by people wait for the merge.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.redis.watched_transaction import watched_transaction
from decider.store.registry.registry_document import Entries
from decider.store.registry.saved_registry import SavedRegistry
from shared.errors import LakewrightError, RetryableError
from shared.queue import keys
from shared.queue.decode import text

WAIT_S = 5.0
"""Longest wait of a change for the merge: it takes far below a second for 10,000 tables, and callers wait longer."""

POLL_S = 0.05
"""Pause between two checks whether the merge is done: two small reads each."""

PASS_MS = 3_600_000
"""Time after which a begun merge is forgotten: its decider died."""

NO_RUN_ID = "unknown"
"""Id of the process where the server reports none, as some managed ones."""


@dataclass(frozen=True, slots=True)
class BegunMerge:
    """A merge that has begun: in which run of the server, and the key that vanishes if the server is emptied."""

    run: str
    key: str


class MergeMark:
    """The mark of a completed merge, which neither a restart of the server nor its emptying survives."""

    def __init__(self, redis: Redis, *, wait_s: float = WAIT_S) -> None:
        self._redis = redis
        self._wait_s = wait_s

    @translate_redis_errors
    async def is_merged(self) -> bool:
        """Return whether the registry was merged in this run of the server, and not lost since."""
        return text(await self._redis.get(keys.MERGED_REGISTRY) or b"") == await self._run()

    @translate_redis_errors
    async def begin(self) -> BegunMerge:
        """Note that a merge begins, before anything is read for it."""
        begun = BegunMerge(await self._run(), keys.registry_merge(secrets.token_hex(8)))
        await self._redis.set(begun.key, begun.run, px=PASS_MS)
        return begun

    @translate_redis_errors
    async def complete(self, begun: BegunMerge) -> bool:
        """Set the mark; False if the server was emptied since the merge began: what it had is lost again."""

        async def write(pipe: Any) -> bool:
            if await pipe.get(begun.key) is None:
                return False
            pipe.multi()
            pipe.set(keys.MERGED_REGISTRY, begun.run)
            pipe.delete(begun.key)
            return True

        return await watched_transaction(self._redis, (begun.key,), write)

    async def require(self) -> None:
        """Wait for a moment until the registry is merged. Raises RetryableError if it is not."""
        until_s = time.monotonic() + self._wait_s
        while not await self.is_merged():
            if time.monotonic() >= until_s:
                raise RetryableError(
                    "Redis was restarted or emptied, and its registry is not yet restored from the saved one; try "
                    "again in a moment, and see registry_sync_failed in the decider's log if this persists"
                )
            await asyncio.sleep(POLL_S)

    async def _run(self) -> str:
        """Return the id of the server's process: each start of a server, and each server, has another."""
        found: Mapping[str, Any] = await self._redis.info("server")
        return str(found.get("run_id") or NO_RUN_ID)


class RegistrySaver:
    """Saves the changes of one call: they begin on a merged registry, and end when the saved one contains them."""

    def __init__(self, saved: SavedRegistry, mark: MergeMark) -> None:
        self.saved = saved
        self._mark = mark

    async def begin(self) -> None:
        """Wait until the registry may be changed, and can be saved. Raises LakewrightError if it is not or cannot."""
        await self._mark.require()
        await self.saved.require_writable()

    async def save(self, changes: Entries) -> None:
        """Return once the changes are saved. Raises RetryableError if they could not be; a repetition is safe."""
        try:
            await self.saved.save(changes)
        except LakewrightError as problem:
            raise RetryableError(f"the change is in force but not yet saved; repeat it: {problem}") from problem
