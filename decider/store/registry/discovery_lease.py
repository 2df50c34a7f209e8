"""Progress of the search for tables: one record per root, which all deciders read and continue.

Redis keeps it, so another decider continues where one ended; after a loss of Redis the search starts again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from redis.asyncio import Redis

from decider.store.redis.redis_errors import translate_redis_errors
from shared.queue import keys
from shared.queue.decode import text
from shared.typed_json import from_json, to_json


class DiscoveryState(StrEnum):
    """State of a search."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DiscoveryProgress:
    """One search below a root; `last_path` is the last path read, `folders` how many there were, times in ms.

    `unreadable` counts the skipped folders, `error` is why it failed or the last folder was skipped; `failing_path` is
    the path whose scan failed temporarily, `attempts` how often in a row.
    """

    root: str
    state: DiscoveryState = DiscoveryState.RUNNING
    last_path: str = ""
    folders: int = 0
    tables: int = 0
    new_tables: int = 0
    started_ms: int = 0
    updated_ms: int = 0
    finished_ms: int = 0
    error: str = ""
    unreadable: int = 0
    failing_path: str = ""
    attempts: int = 0


class DiscoveryLeases:
    """The progress records, and the leases of the deciders that are searching."""

    def __init__(self, redis: Redis, holder: str, *, lease_ms: int) -> None:
        self._redis = redis
        self._holder = holder
        self.lease_ms = lease_ms

    @translate_redis_errors
    async def acquire(self, root: str) -> bool:
        """Acquire the lease of a root until `lease_ms` after the last `renew`; False if another decider has it."""
        return bool(await self._redis.set(keys.discovery_lease(root), self._holder, nx=True, px=self.lease_ms))

    @translate_redis_errors
    async def renew(self, root: str) -> bool:
        """Renew the lease of a root, even an expired one that no other took; False if another decider has it."""
        if text(await self._redis.get(keys.discovery_lease(root)) or b"") == self._holder:
            await self._redis.pexpire(keys.discovery_lease(root), self.lease_ms)
            return True
        return await self.acquire(root)

    @translate_redis_errors
    async def save(self, progress: DiscoveryProgress) -> bool:
        """Save a record and renew the lease of its root; False if another decider has taken the root over."""
        if not await self.renew(progress.root):
            return False
        await self._redis.hset(keys.DISCOVERY, progress.root, to_json(progress))
        return True

    @translate_redis_errors
    async def release(self, root: str) -> None:
        """Release a root, unless another decider has taken it over."""
        if text(await self._redis.get(keys.discovery_lease(root)) or b"") == self._holder:
            await self._redis.delete(keys.discovery_lease(root))

    @translate_redis_errors
    async def read(self, roots: Sequence[str]) -> Mapping[str, DiscoveryProgress]:
        """Return the records of these roots."""
        rows = await self._redis.hmget(keys.DISCOVERY, list(roots)) if roots else []
        return {
            root: from_json(DiscoveryProgress, raw) for root, raw in zip(roots, rows, strict=True) if raw is not None
        }

    @translate_redis_errors
    async def request_scan(self, roots: Sequence[str]) -> None:
        """Make every search that is not running due."""
        for root, found in (await self.read(roots)).items():
            if found.state is not DiscoveryState.RUNNING:
                await self._redis.hset(keys.DISCOVERY, root, to_json(replace(found, finished_ms=0)))
