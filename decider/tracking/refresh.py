"""A refresh of a table ends in one of three ways: up to date, refused with a reason, or missing without jobs.

A refused table stays registered and is read again; one that is missing, or that may not be read, leaves no job behind
that an actor would run, and is treated as new if it returns. No event decides this: only the log does.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import structlog

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_health import wrong_keys
from decider.store.registry.table_registry import StoredRefusal, TableRegistry
from decider.store.tables.cleanup import delete_state, delete_table
from decider.store.tables.table_records import TableRecord, TableRecords
from decider.tracking.table_tracking import TrackResult
from decider.tracking.tracker import TableTracker
from shared import refusals
from shared.errors import Corrupt, InvalidInput, LakewrightError, NoTable, PermanentError, RetryableError, Unsupported
from shared.queue import keys
from shared.queue.command import WrongKey
from shared.table import TableId, TableRef

DAY_MS = 86_400_000

UNREADABLE = "unreadable_log"
"""Code of the refusal of a table whose log needs more than this release understands."""

VANISHED_DAYS = 7.0
"""Days after which a missing table is unregistered: a disk that was not mounted is back sooner."""

REMEDIES: Mapping[type[LakewrightError], str] = {
    NoTable: f"Restore or recreate the table; after {VANISHED_DAYS:g} days it is unregistered",
    Corrupt: "Restore the files that are missing or damaged",
}
"""Remedies for people where the reader of a table has none, by the kind of its error."""

After = Callable[[TableRecord, TrackResult], Awaitable[None]]
"""Called with a table, as it was before, in which something new was found."""

log = structlog.get_logger()


class TableRefresher:
    """Follows tables for the refresh queue and keeps the registry's refusals true."""

    def __init__(
        self,
        tracker: TableTracker,
        registry: TableRegistry,
        queue: AsyncQueueExecutor,
        now_ms: Callable[[], int],
        *,
        after: After | None = None,
    ) -> None:
        self._tracker = tracker
        self._registry = registry
        self._records = TableRecords(queue)
        self._queue = queue
        self._now_ms = now_ms
        self._after = after
        self._unfinished: set[TableId] = set()

    async def refresh(self, table: TableRef, version: int | None) -> None:
        """Bring one table up to date; a log that cannot or must not be read leads to a refusal and a later retry.

        `table` is only the id: its registration is read here, because the caller may have read it long ago.
        """
        try:
            await self._refresh(table, version)
        except WrongKey as problem:
            found = await wrong_keys(self._queue.redis, keys.table_types(self._queue.name, table.id))
            raise RetryableError("; ".join(found) or str(problem)) from problem

    async def _refresh(self, table: TableRef, version: int | None) -> None:
        record = await self._records.read(table.id)
        if record is None:
            await delete_table(self._queue, table.id, kinds=self._tracker.actions.kinds)
            return
        table = record.table
        try:
            followed = await self._tracker.follow(table, version, known=record.state)
        except NoTable as problem:
            await self._gone(table, _with_remedy(problem))
            return
        except Unsupported as problem:
            # Nothing can be decided, and earlier decisions are void; once the table can be read, all is decided again.
            partitions = await delete_state(self._queue, table.id, kinds=self._tracker.actions.kinds)
            await self._refuse(table, StoredRefusal(self._now_ms(), str(problem), code=UNREADABLE))
            log.warning("table_refused", table=table.name, reason=str(problem), partitions=partitions)
            return
        except (InvalidInput, PermanentError) as problem:
            await self._refuse(table, StoredRefusal(self._now_ms(), _with_remedy(problem)))
            log.warning("table_refused", table=table.name, reason=str(problem))
            return
        if followed.rescan and await self._registry.get(table.id) is None:
            # It was removed during the refresh, which has just brought its state back.
            await delete_table(self._queue, table.id, kinds=self._tracker.actions.kinds)
            return
        await self._note(table, record.refusal, self._tracker.effective(table, followed.state).refusal)
        if self._after is not None and (followed.commits or followed.rescan or table.id in self._unfinished):
            # After a temporary failure here, the next refresh finds no new commits and must run this all the same.
            self._unfinished.add(table.id)
            await self._after(record, followed)
            self._unfinished.discard(table.id)

    async def _gone(self, table: TableRef, why: str) -> None:
        """Delete jobs and state of a table that is missing; unregister it when it has been missing for long.

        A declared one stays: its entry would register it again.
        """
        now_ms = self._now_ms()
        before = await self._registry.refusal(table.id)
        partitions = await delete_state(self._queue, table.id, kinds=self._tracker.actions.kinds)
        since_ms = before.since_ms if before is not None and before.is_missing else now_ms
        if now_ms - since_ms > VANISHED_DAYS * DAY_MS and not table.is_declared:
            await self._registry.remove(table, may_return=True)
            await delete_table(self._queue, table.id, kinds=self._tracker.actions.kinds)
            log.warning("table_unregistered", table=table.name, reason=why, missing_days=VANISHED_DAYS)
            return
        await self._refuse(table, StoredRefusal(now_ms, why, since_ms, is_missing=True))
        log.warning("table_missing", table=table.name, reason=why, partitions=partitions)

    async def _note(self, table: TableRef, before: StoredRefusal | None, found: refusals.Refusal | None) -> None:
        """Store whether a table that could be read may be rewritten; its state already decides so."""
        if found is None:
            if before is not None:
                await self._registry.clear_refusal(table.id)
            return
        if before is None or before.code != found.code or before.reason != found.message:
            await self._refuse(table, StoredRefusal(self._now_ms(), found.message, code=found.code))
            log.warning("table_refused", table=table.name, reason=found.message)

    async def _refuse(self, table: TableRef, refusal: StoredRefusal) -> None:
        before = await self._registry.refusal(table.id)
        if before is not None and (before.is_missing, before.code) == (refusal.is_missing, refusal.code):
            refusal = replace(refusal, since_ms=before.since_ms)
        if await self._registry.get(table.id) is not None:
            await self._registry.set_refusal(table.id, refusal)


def _with_remedy(problem: LakewrightError) -> str:
    remedy = REMEDIES.get(type(problem))
    return str(problem) if remedy is None else f"{problem}. {remedy}."
