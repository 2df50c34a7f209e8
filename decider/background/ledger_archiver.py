"""Ledger archive: appends every decision exactly once to a Delta table that any engine can read.

The archive is itself registered, tracked and compacted. Its own decisions would each lead to another append, so they
are archived only together with others.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import structlog

from decider.archive.delta_archive import DeltaArchive
from decider.archive.ledger_batches import LedgerBatch, LedgerBatches
from decider.archive.ledger_rows import FURTHEST, ledger_row
from decider.background.runner import Schedule
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.events.refresh_queue import RefreshQueue
from decider.store.registry.table_registry import TableRegistry
from shared.errors import InvalidInput
from shared.table import TableId, TableRef

APP = "lakewright.ledger"
"""Batch series in the archive's log, and name of the archive in the registry."""

TENANT = "lakewright"
"""Tenant of Lakewright's own tables, which share the actors fairly with others."""

EVERY_S = 60.0
"""Seconds between two runs: the lag of the archive, at one small commit per run."""

BATCH_RECORDS = 10_000
"""Maximum records per commit of the archive: about 10 MB in memory, some hundred KB in the table."""

TABLES_AT_ONCE = 200
"""Tables read for new records per round trip."""

KEPT_MS = 7 * 86_400_000
"""Retention of archived records in Redis, from which queries are answered: a week."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """Result of one run."""

    records: int = 0
    batches: int = 0


class LedgerArchiver:
    """Archives the ledgers of all registered tables; any number of deciders may run it."""

    def __init__(
        self,
        archive: DeltaArchive,
        batches: LedgerBatches,
        registry: TableRegistry,
        refresh_queue: RefreshQueue,
        *,
        own: TableRef,
        actions: ActionRegistry = ACTIONS,
    ) -> None:
        """`own` is the archive as a registered table, refreshed after each append."""
        self.schedule = Schedule(EVERY_S, "ledger_archive_failed")
        self._archive = archive
        self._batches = batches
        self._registry = registry
        self._refresh_queue = refresh_queue
        self._own = own
        self._actions = actions

    async def run_once(self, *, batch_records: int = BATCH_RECORDS) -> ArchiveResult:
        """Archive all current records in batches of about `batch_records`, and register the archive."""
        done = await self._take_up()
        until_ms = await self._batches.now_ms()
        oldest_ms = until_ms - KEPT_MS
        async for tables in self._all_others():
            done = await self._carry(tables, done, until_ms, batch_records)
            await self._batches.trim(tables, before_ms=oldest_ms)
        if done.batches:
            done = await self._carry([self._own.id], done, until_ms, batch_records)
            await self._look_after_archive()
        if done.records:
            log.info("ledger_archived", records=done.records, batches=done.batches)
        return done

    async def _take_up(self) -> ArchiveResult:
        """Complete a pending batch, and restore progress from an archive that is ahead of Redis."""
        done = ArchiveResult()
        progress = await self._batches.progress()
        if progress.pending is not None:
            done = await self._write(progress.pending, done)
            progress = await self._batches.progress()
        if await self._archive.newest(APP) > progress.number:
            await self._believe_archive(progress.number)
        return done

    async def _believe_archive(self, number: int) -> None:
        """Restore progress above `number` from the archive: Redis was restored to an older state."""
        newest = await self._archive.newest(APP)
        notes = await self._archive.notes(APP, above=number)
        ends: dict[TableId, str] = {}
        for note in reversed(notes or ()):
            ends |= {TableId(table): end for table, end in note["ends"].items()}
        if notes is None:
            # The log no longer has these commits; the rows do, and all of them have to be read.
            ends = {TableId(row["table_id"]): row["entry"] for row in await self._archive.ask(FURTHEST)}
        await self._batches.note(newest, ends)
        log.warning("archive_progress_restored", noted=number, archived=newest, from_rows=notes is None)

    async def _carry(
        self, tables: list[TableId], done: ArchiveResult, until_ms: int, batch_records: int
    ) -> ArchiveResult:
        """Archive the records of these tables in as many batches as needed."""
        while True:
            ahead = await self._batches.ahead(tables, until_ms=until_ms, limit=batch_records)
            if not ahead:
                return done
            number = (await self._batches.progress()).number + 1
            batch = await self._batches.plan(number, {table: entries[-1] for table, entries in ahead.items()})
            if batch is None:
                # Another decider archives; the next run takes the rest.
                return done
            done = await self._write(batch, done)

    async def _write(self, batch: LedgerBatch, done: ArchiveResult) -> ArchiveResult:
        rows = []
        for table_id, records in (await self._batches.read(batch)).items():
            # An unregistered table has no name; its records keep its id.
            table = await self._registry.get(table_id) or TableRef(table_id, table_id, "")
            rows += [ledger_row(table, *record, self._actions) for record in records]
        is_new = bool(rows) and await self._archive.append(
            rows, app=APP, number=batch.number, note={"ends": batch.ends}
        )
        if rows and not is_new and not await self._holds(batch):
            # The number was used for other records: note those, and archive the remaining ones under the next number.
            await self._believe_archive(batch.number - 1)
            return done
        unreadable = sum(row.get("decision") is None for row in rows)
        await self._batches.note(batch.number, batch.ends, unreadable=unreadable)
        return ArchiveResult(done.records + is_new * len(rows), done.batches + is_new)

    async def _holds(self, batch: LedgerBatch) -> bool:
        notes = await self._archive.notes(APP, above=batch.number - 1)
        return any(note["number"] == batch.number and note["ends"] == batch.ends for note in notes or ())

    async def _look_after_archive(self) -> None:
        try:
            if await self._registry.register(self._own):
                log.info("archive_registered", table=self._own.name, location=self._own.location)
        except InvalidInput as problem:
            log.warning("archive_registration_failed", error=str(problem))
            return
        await self._refresh_queue.put(self._own, None)

    async def _all_others(self) -> AsyncIterator[list[TableId]]:
        """Yield the ids of all tables except the archive, in chunks."""
        some: list[TableId] = []
        async for table in self._registry.all():
            if table.id != self._own.id:
                some.append(table.id)
            if len(some) == TABLES_AT_ONCE:
                yield some
                some = []
        if some:
            yield some
