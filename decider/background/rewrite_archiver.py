"""Rewrite archive: appends each rewrite of every table exactly once to a Delta table, for SQL.

Source is each table's own log. Progress is stored in the archive's log, as the batch number of each table: the
version up to which its rewrites are archived. Nothing is kept in Redis, so a loss of Redis changes nothing. Rewrites
of the archive itself are excluded: each would lead to another one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from decider.archive.delta_archive import DeltaArchive
from decider.archive.rewrite_rows import optimization_row
from decider.background.runner import Schedule
from decider.decide.funnel import CommitCounter
from decider.events.refresh_queue import RefreshQueue
from decider.formats.rewrites import Rewrite
from decider.formats.table_format import MAX_SCANNED, RewriteReader
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.ingest import CounterReader
from decider.store.tables.table_state import TableState, TableStateStore
from shared.errors import InvalidInput, LakewrightError
from shared.table import TableId, TableRef

APP = "lakewright.optimizations"
"""Name of the archive in the registry, and prefix of its batch series."""

EVERY_S = 60.0
"""Seconds between two runs: a run costs two small reads of Redis per table, and more only after a rewrite."""

PAGE = 500
"""Rewrites read per page."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RewriteSources:
    """Sources of tables, their state, counters and rewrites."""

    registry: TableRegistry
    states: TableStateStore
    counters: CounterReader
    open_rewrites: Callable[[str], RewriteReader]


class RewriteArchiver:
    """Archives the rewrites of all registered tables; any number of deciders may run it."""

    def __init__(
        self, archive: DeltaArchive, sources: RewriteSources, refresh_queue: RefreshQueue, *, own: TableRef
    ) -> None:
        """`own` is the archive as a registered table, refreshed after each append."""
        self.schedule = Schedule(EVERY_S, "rewrite_archive_failed")
        self._archive = archive
        self._from = sources
        self._refresh_queue = refresh_queue
        self._own = own
        self._taken: dict[TableId, tuple[int, int, str]] = {}

    async def run_once(self) -> int:
        """Archive new rewrites; return the number of rewrites that this call wrote."""
        written = 0
        async for table in self._from.registry.all():
            cursor = None if table.id == self._own.id else await self._from.states.state(table.id)
            if cursor is None:
                continue
            counts = await self._from.counters.read(table.id)
            seen = (counts.get(CommitCounter.OWN_COMMITS, 0), cursor.rebuilds, cursor.metadata.table_uuid)
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
            log.info("rewrites_archived", rewrites=written)
            await self._look_after_own()
        return written

    async def _carry(self, table: TableRef, cursor: TableState) -> int | None:
        """Archive one table's rewrites above its archived version; None if another decider did."""
        # A table recreated at its location starts at version 0, with its own batch series.
        app = f"{APP}/{table.id}/{cursor.metadata.table_uuid}"
        done = await self._archive.newest(app)
        events = await self._above(table, done, cursor.version)
        if not events:
            return 0
        rows = [optimization_row(table, event) for event in events]
        is_new = await self._archive.append(rows, app=app, number=events[-1].version, after=done)
        return len(rows) if is_new else None

    async def _above(self, table: TableRef, done: int, until: int) -> list[Rewrite]:
        """Return the rewrites of versions above `done` up to `until`, oldest first."""
        history = self._from.open_rewrites(table.location)
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
        await self._refresh_queue.put(self._own, None)
