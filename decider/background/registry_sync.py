"""Registry sync: keeps Redis and the saved registry equal, so that a Redis that lost tables gets them back.

A pass merges both, in any state: an empty Redis, one that lost its last second, a backup of yesterday, or a location
without a document. Changes by people are saved before they are answered; a pass saves what discovery found, and what a
decider that died could not save.
"""

from collections.abc import Callable, Collection, Sequence

import structlog

from decider.background.runner import Schedule
from decider.events.refresh_queue import RefreshQueue
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.registry.merge_mark import MergeMark
from decider.store.registry.registry_document import removed_tables
from decider.store.registry.registry_entries import AppliedEntries, RegistryEntries
from decider.store.registry.saved_registry import SavedRegistry
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.cleanup import delete_table
from shared.errors import RetryableError
from shared.table import TableId

EVERY_S = 2.0
"""Seconds between two checks whether the registry in Redis changed or was lost: three small reads."""

FULL_EVERY_S = 300.0
"""Seconds after which both are compared although nothing in Redis changed: as often as the sweep."""

RETRY_S = 10.0
"""Pause after a failure: a store that is away is asked a few times a minute."""

MAX_SHARE = 0.05
"""Largest share of the time for passes while tables are registered all the time, as by discovery."""

log = structlog.get_logger()


class AppliedChanges:
    """Carries out what follows from entries that were restored: new tables are read, removed ones leave nothing."""

    def __init__(self, refresh_queue: RefreshQueue, queue: AsyncQueueExecutor, kinds: Sequence[str]) -> None:
        self._refresh_queue = refresh_queue
        self._queue = queue
        self._kinds = kinds

    async def delete(self, tables: Collection[TableId]) -> None:
        """Delete jobs and state of tables that are to be removed."""
        for table in tables:
            await delete_table(self._queue, table, kinds=self._kinds)

    async def follow(self, applied: AppliedEntries) -> None:
        """Read the restored tables, and delete what a refresh of the removed ones has written meanwhile."""
        await self.delete([table.id for table in applied.removed])
        for table in applied.restored:
            await self._refresh_queue.put(table, None)


class RegistrySync:
    """Merges the registry in Redis with the saved one; any number of deciders may do so."""

    def __init__(
        self,
        registry: TableRegistry,
        saved: SavedRegistry,
        entries: RegistryEntries,
        mark: MergeMark,
        changes: AppliedChanges,
        *,
        clock_s: Callable[[], float],
    ) -> None:
        self.schedule = Schedule(EVERY_S, "registry_sync_failed", retry_s=RETRY_S)
        self._registry = registry
        self._saved = saved
        self._entries = entries
        self._mark = mark
        self._changes = changes
        self._clock_s = clock_s
        self._revision = -1
        self._not_before_s = float("-inf")
        self._full_at_s = float("-inf")

    async def run_once(self) -> AppliedEntries:
        """Merge both if Redis changed since the last pass, or that was long ago; return what changed in Redis."""
        revision, now_s = await self._registry.revision(), self._clock_s()
        # A server that was started again may have lost its last changes, and one that was emptied has no mark.
        is_lost = revision < self._revision or not await self._mark.is_merged()
        is_due = revision != self._revision and now_s >= self._not_before_s
        if not (is_lost or is_due or now_s >= self._full_at_s):
            return AppliedEntries()
        begun = await self._mark.begin()
        applied = await self._merge()
        if not await self._mark.complete(begun):
            raise RetryableError("Redis was emptied while its registry was restored; it is restored again")
        took_s = self._clock_s() - now_s
        self._revision, self._not_before_s = revision, now_s + took_s / MAX_SHARE
        self._full_at_s = now_s + FULL_EVERY_S
        return applied

    async def _merge(self) -> AppliedEntries:
        known = await self._entries.read()
        document = await self._saved.save(known)
        # Before they are removed: after a crash in between, nothing would remember their jobs, which would be run.
        await self._changes.delete(removed_tables(document.entries, known))
        applied = await self._entries.apply(document.entries, known)
        if applied.restored or applied.removed:
            counts = {"restored": len(applied.restored), "removed": len(applied.removed)}
            log.warning("registry_restored", generation=document.generation, **counts)
        await self._changes.follow(applied)
        return applied
