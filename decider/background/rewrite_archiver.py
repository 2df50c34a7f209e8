"""The table of optimizations: each rewrite of every table lands in a Delta table once, for whoever asks in SQL.

It is made from the tables' own logs, and how far it has come stands in its own log, as the number of each table's
newest batch: the version up to which that table's history was taken. So nothing of it is kept in Redis, and losing that
changes nothing. Rewrites of the table of optimizations itself are not taken: they would follow one another for ever.
"""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from decider.archive.delta_archive import DeltaArchive
from decider.archive.rewrite_rows import optimization_row
from decider.background.periodic import run_periodically
from decider.events.refresh_queue import RefreshQueue
from decider.formats.rewrites import Rewrite
from decider.formats.table_format import MAX_SCANNED, RewriteReader
from decider.store.counters import CounterReader
from decider.store.table_registry import TableRegistry
from decider.store.table_state import TableState, TableStateStore
from shared.errors import InvalidInput, LakewrightError
from shared.table import TableId, TableRef

APP = "lakewright.optimizations"
"""Name of the table in the registry, and what the rows of batches begin with."""

EVERY_S = 60.0
"""Seconds between two ticks: a tick costs two small reads of Redis per table, and more only where something landed."""

PAGE = 500
"""Events read at once."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RewriteSources:
    """Where a table's history and what is known of it come from."""

    registry: TableRegistry
    states: TableStateStore
    counters: CounterReader
    open_history: Callable[[str], RewriteReader]


class RewriteArchiver:
    """Carries the history of all registered tables into one; any number of deciders may run it."""

    def __init__(self, archive: DeltaArchive, sources: RewriteSources, inbox: RefreshQueue, *, own: TableRef) -> None:
        """`own` is the table of optimizations as one of the registry; its commits are told to the inbox."""
        self._archive = archive
        self._from = sources
        self._inbox = inbox
        self._own = own
        self._taken: dict[TableId, tuple[int, int, str]] = {}

    async def run_once(self) -> int:
        """Take what has landed since the last time; returns the number of rewrites that this call wrote."""
        written = 0
        async for table in self._from.registry.all():
            cursor = None if table.id == self._own.id else await self._from.states.state(table.id)
            if cursor is None:
                continue
            counts = await self._from.counters.read(table.id)
            seen = (counts.get("own_commits", 0), cursor.rebuilds, cursor.metadata.table_uuid)
            if self._taken.get(table.id) == seen:
                continue
            try:
                taken = await self._carry(table, cursor)
            except LakewrightError as problem:
                log.warning("rewrite_archive_failed", table=table.name, error=str(problem))
                continue
            if taken is not None:
                written += taken
                self._taken[table.id] = seen
        if written:
            await self._look_after_own()
        return written

    async def run(self) -> None:
        """Take until cancelled; a store that is away is waited for."""
        await run_periodically(self._tick, every_s=EVERY_S, failed="rewrite_archive_failed")

    async def _tick(self) -> None:
        if written := await self.run_once():
            log.info("rewrites_archived", rewrites=written)

    async def _carry(self, table: TableRef, cursor: TableState) -> int | None:
        """Take one table's rewrites above the version that its newest batch came to; None if another was faster."""
        # A table made anew at its place counts its versions from 0, and is another row of batches.
        app = f"{APP}/{table.id}/{cursor.metadata.table_uuid}"
        done = await self._archive.newest(app)
        events = await self._above(table, done, cursor.version)
        if not events:
            return 0
        rows = [optimization_row(table, event) for event in events]
        is_new = await self._archive.append(rows, app=app, number=events[-1].version, after=done)
        return len(rows) if is_new else None

    async def _above(self, table: TableRef, done: int, until: int) -> list[Rewrite]:
        """Return the rewrites of versions from `done` (not with it) to `until`, oldest first."""
        history = self._from.open_history(table.location)
        found: list[Rewrite] = []
        before: int | None = until + 1
        while before is not None and before > done + 1:
            page = await history.page(limit=PAGE, before=before, max_scanned=min(MAX_SCANNED, before - done - 1))
            found += page.events
            before = page.before
        return [event for event in reversed(found) if event.version > done]

    async def _look_after_own(self) -> None:
        try:
            await self._from.registry.register(self._own)
        except InvalidInput as problem:
            log.warning("rewrite_archive_registration_failed", error=str(problem))
            return
        await self._inbox.put(self._own, None)
