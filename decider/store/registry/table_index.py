"""An index of all tables in this process's memory, for lists of many tables that are searched and sorted.

It is read when a client asks for a list, and then brought up to date with what changed: a sorted set names the tables
whose state moved, a counter shows that registrations changed. Nothing is read while no client asks. The order of a
list may be older than its rows: sorting again waits for twenty times as long as it took, so that clients of a large
installation cost a bounded share of one core.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from decider.state.table_summary import TableSummary
from decider.store.queue.queue_admin import paused_tables
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.registry.table_query import (
    NO_JOBS,
    JobsByState,
    TableQuery,
    TableRow,
    TableSelection,
    select,
)
from decider.store.registry.table_registry import TableRegistry
from decider.store.stored_values import milliseconds
from shared.policy.work_windows import holds_all
from shared.queue import keys
from shared.queue.decode import text
from shared.queue.model import JobId
from shared.table import TableId, TableRef
from shared.typed_json import from_json

READ_EVERY_S = 0.5
"""Shortest time between two counts of all jobs, and between two sorts of one list."""

REST_FACTOR = 20
"""An expensive step rests for this many times its own duration, so that it takes at most 5% of the time."""

RELOAD_EVERY_S = 600.0
"""Seconds after which registrations are read again even if no counter changed, as after a loss of Redis."""

PAGE = 500
"""Tables read per round trip."""

WAIT_S = 0.3
"""Seconds that a client waits for registrations, and then for figures; of a short list, all are read by then."""

LONG_LIST_WAIT_S = 0.03
"""The same for a long list: it is shown as it is known, and the client asks again while anything is being read."""

FIRST_ROWS = 1_000
"""Rows in the order of names that are shown while registrations are read for the first time."""

ASKED_S = 5.0
"""Seconds after the last request for a list during which figures are read on: a page asks again twice a second."""

OVERLAP_MS = 1_000
"""Milliseconds of changes that are read again: the script of a change takes its time before its entry is visible."""

MAX_JOBS = 20_000
"""Jobs per state that are counted by table; beyond, the backlog of some tables is incomplete."""

MAX_SELECTIONS = 64
"""Distinct queries whose order is kept."""


@dataclass(slots=True)
class _KeptSelection:
    """The result of a query, when it was computed, how long that took, and of which state of the index."""

    found: TableSelection
    at_s: float
    took_s: float
    revision: int

    def holds(self, now_s: float, revision: int) -> bool:
        """Return whether it is of this state of the index, or so expensive that it may be older."""
        return self.revision == revision or now_s - self.at_s < max(READ_EVERY_S, REST_FACTOR * self.took_s)


@dataclass(frozen=True, slots=True)
class TableListing:
    """A part of a selection; `is_complete`: the figures of all tables have been read."""

    selection: TableSelection
    rows: tuple[tuple[TableRow, JobsByState], ...]
    matching: int
    total: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class FleetTotals:
    """Sums over all tables; files_needed: files that would do for the same bytes; states: tables by condition."""

    tables: int
    files: int
    files_needed: int
    bytes: int
    states: Mapping[str, int]


class TableIndex:
    """Rows of all tables."""

    def __init__(self, queue: AsyncQueueExecutor, registry: TableRegistry, clock_s: Callable[[], float]) -> None:
        """`clock_s` is a monotonic clock."""
        self._queue = queue
        self._registry = registry
        self._clock_s = clock_s
        self._rows: dict[TableId, TableRow] = {}
        self._jobs: dict[str, JobsByState] = {}
        self._failures: dict[tuple[str, bytes, float], bool] = {}
        self._selections: OrderedDict[TableQuery, _KeptSelection] = OrderedDict()
        self._pending: list[TableId] = []
        self._moved_ms = self._revision = 0
        self._registered = (-1, -1)
        self._reloaded_s = self._counted_s = float("-inf")
        self._reload_took_s = self._count_took_s = 0.0
        self._reading = asyncio.Lock()
        self._reload: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._asked_s = float("-inf")

    async def page(self, query: TableQuery, *, offset: int, limit: int, wait_s: float = WAIT_S) -> TableListing:
        """Return `limit` rows of a query from `offset` on; figures that take longer than `wait_s` come later."""
        self._asked_s = self._clock_s()
        is_first = query == TableQuery() and offset + limit <= FIRST_ROWS
        if not self._is_loaded and is_first and not self._has_ended and await self._registry.count() > FIRST_ROWS:
            first = await self._first_rows(offset, limit)
            self._start_reload()  # only now, so that these rows do not wait for a hundred thousand others
            return first
        if len(self._rows) > FIRST_ROWS:
            wait_s = min(wait_s, LONG_LIST_WAIT_S)
        await self._refresh(wait_s)
        if not self._is_loaded and is_first:
            return await self._first_rows(offset, limit)
        selection = await self._select(query)
        rows = self._rows_of(selection.ids[offset : offset + limit])
        return TableListing(selection, rows, len(selection.ids), len(self._rows), self._is_complete)

    async def totals(self) -> FleetTotals | None:
        """Return the sums over all tables; None while figures are read, which goes on with the next call."""
        self._asked_s = self._clock_s()
        await self._refresh(WAIT_S)
        found = [row.summary for row in self._rows.values() if row.summary is not None]
        if not self._is_complete:
            return None
        return FleetTotals(
            tables=len(self._rows),
            files=sum(one.files for one in found),
            files_needed=sum(one.files_needed for one in found),
            bytes=sum(one.bytes for one in found),
            states=Counter(str(row.condition(self._jobs.get(row.id, NO_JOBS))) for row in self._rows.values()),
        )

    @property
    def _is_loaded(self) -> bool:
        return self._reloaded_s > float("-inf")

    @property
    def _is_complete(self) -> bool:
        """Return whether nothing is being read; otherwise the client asks again."""
        return self._is_loaded and not self._pending and (self._reload is None or self._reload.done())

    @property
    def _has_ended(self) -> bool:
        """Return whether a reading of registrations has ended, maybe by a failure, and no client has seen it yet."""
        return self._reload is not None and self._reload.done()

    def _rows_of(self, ids: Sequence[TableId]) -> tuple[tuple[TableRow, JobsByState], ...]:
        return tuple((self._rows[one], self._jobs.get(one, NO_JOBS)) for one in ids if one in self._rows)

    async def _first_rows(self, offset: int, limit: int) -> TableListing:
        """Return the first rows by name from the registry's own order, while all registrations are being read."""
        page, total, _ = await asyncio.gather(
            self._registry.page(prefix="", after="", limit=offset + limit), self._registry.count(), self._jobs_counted()
        )
        for table in page.tables:
            self._rows.setdefault(table.id, TableRow(table.id, table.name, table.tenant))
        ids = tuple(table.id for table in page.tables)[offset:]
        await self._read_states(ids)
        return TableListing(TableSelection(ids), self._rows_of(ids), total, total, is_complete=False)

    async def _select(self, query: TableQuery) -> TableSelection:
        """Return the kept result of a query, computed and kept if there is none that still holds."""
        started_s, revision = self._clock_s(), self._revision
        kept = self._selections.pop(query, None)
        if kept is None or not kept.holds(started_s, revision):
            found = await asyncio.to_thread(select, list(self._rows.values()), dict(self._jobs), query)
            ended_s = self._clock_s()
            kept = _KeptSelection(found, ended_s, ended_s - started_s, revision)
        self._selections[query] = kept
        while len(self._selections) > MAX_SELECTIONS:
            self._selections.popitem(last=False)
        return kept.found

    async def _refresh(self, wait_s: float) -> None:
        """Read what changed since the last read.

        A client asks because an event named a table, and may not ask again: what it gets has to hold that change.
        """
        await self._reload_ended(wait_s)  # One that goes on may have begun before that change.
        if self._reload is None:
            self._start_reload()
            await self._reload_ended(wait_s)
        async with self._reading:
            await self._read_moved()
            await self._count_jobs()
        await self._read_pending(wait_s)

    async def _reload_ended(self, wait_s: float) -> None:
        """Wait for a reading of registrations, if there is one."""
        reload = self._reload
        if reload is not None:
            await asyncio.wait((reload,), timeout=wait_s)
            if reload.done():
                self._reload = None if self._reload is reload else self._reload
                reload.result()

    async def _read_pending(self, wait_s: float) -> None:
        """Let the figures of changed tables be read, which goes on in the background after `wait_s`."""
        if self._pending and self._reader is None:
            self._reader = asyncio.create_task(self._read_all_pending())
        reader = self._reader
        if reader is not None:
            await asyncio.wait((reader,), timeout=wait_s)
            if reader.done():
                self._reader = None if self._reader is reader else self._reader
                reader.result()

    @translate_redis_errors
    async def _read_all_pending(self) -> None:
        """Read figures until none is missing, or no client has asked for a while."""
        while self._pending and self._clock_s() - self._asked_s < ASKED_S:
            some, self._pending = self._pending[:PAGE], self._pending[PAGE:]
            try:
                await self._read_states(some)
            except BaseException:
                # A failure of Redis, or the end of the process: the next client reads them.
                self._pending = [*some, *self._pending]
                raise

    def _start_reload(self) -> None:
        """Read registrations in the background; a long list not more often than reading it permits."""
        since_s = self._clock_s() - self._reloaded_s
        rest_s = REST_FACTOR * self._reload_took_s if len(self._rows) > FIRST_ROWS else 0
        if self._reload is None and since_s >= rest_s:
            self._reload = asyncio.create_task(self._read_registrations(since_s))

    @translate_redis_errors
    async def _read_registrations(self, since_s: float) -> None:
        """Read all registrations and refusals if any of them changed."""
        started_s = self._clock_s()
        registered = (await self._registry.revision(), await self._registry.count_refused())
        if registered == self._registered and since_s < RELOAD_EVERY_S:
            return
        refused = await self._registry.all_refusals()
        rows: dict[TableId, TableRow] = {}
        async for table in self._registry.all():
            known = self._rows.get(table.id) or TableRow(table.id, table.name, table.tenant)
            rows[table.id] = replace(known, name=table.name, tenant=table.tenant, refusal=refused.get(table.id))
            if not self._is_loaded:
                self._rows[table.id] = rows[table.id]
        new = [table for table in rows if table not in self._rows or not self._is_loaded]
        # In the order of names, so that each sort finds them almost sorted.
        self._rows = {row.id: self._newest(row) for row in sorted(rows.values(), key=attrgetter("name"))}
        self._registered = registered
        self._pending = list(dict.fromkeys((*self._pending, *new)))
        self._revision += 1
        self._reloaded_s = self._clock_s()
        self._reload_took_s = self._reloaded_s - started_s

    def _newest(self, row: TableRow) -> TableRow:
        """Return a row with the figures that were read while registrations were."""
        known = self._rows.get(row.id)
        return (
            row
            if known is None
            else replace(
                row, version=known.version, commit_ms=known.commit_ms, summary=known.summary, group=known.group
            )
        )

    @translate_redis_errors
    async def _read_moved(self) -> None:
        """Queue the tables whose state moved since the last read; of a first read, all are queued already."""
        key = keys.changed_tables(self._queue.name)
        found: Any = await self._queue.redis.zrange(
            key, self._moved_ms - OVERLAP_MS, "+inf", byscore=True, withscores=True
        )
        moved = [TableId(text(table)) for table, _ in found]
        if self._moved_ms:
            self._pending = list(dict.fromkeys((*(one for one in moved if one in self._rows), *self._pending)))
        self._moved_ms = max((int(score) for _, score in found), default=self._moved_ms or 1)

    async def rows(self, tables: Sequence[TableRef]) -> tuple[tuple[TableRow, JobsByState], ...]:
        """Return the rows of these tables as they are now, whether or not the index has been read."""
        await self._jobs_counted()
        refused = await self._registry.refusals([table.id for table in tables])
        rows = [TableRow(table.id, table.name, table.tenant, refusal=refused.get(table.id)) for table in tables]
        return tuple((row, self._jobs.get(row.id, NO_JOBS)) for row in await self._with_states(rows))

    async def _read_states(self, tables: Sequence[TableId]) -> None:
        rows = [self._rows[table] for table in tables if table in self._rows]
        for row, read in zip(rows, await self._with_states(rows), strict=True):
            if read != row and row.id in self._rows:
                self._rows[row.id] = read
                self._revision += 1

    @translate_redis_errors
    async def _with_states(self, rows: Sequence[TableRow]) -> list[TableRow]:
        """Return rows with the figures that their states have now."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            for row in rows:
                pipe.hmget(keys.table_state(self._queue.name, row.id), ["version", "commit_ms", "summary", "group"])
            found = await pipe.execute(raise_on_error=False)
        # A table whose key is damaged has no figures; the others have theirs.
        states = (one if isinstance(one, list) else (None, None, None, None) for one in found)
        return [
            replace(
                row,
                version=None if version is None else int(version),
                commit_ms=int(commit_ms or 0),
                summary=None if summary is None else from_json(TableSummary, summary),
                group="" if version is None else text(group or b"") or self._queue.name,
            )
            for row, (version, commit_ms, summary, group) in zip(rows, states, strict=True)
        ]

    async def _jobs_counted(self) -> None:
        async with self._reading:
            await self._count_jobs()

    async def _count_jobs(self) -> None:
        """Count the jobs of each table, unless that was done just now."""
        started_s = self._clock_s()
        if started_s - self._counted_s >= max(READ_EVERY_S, REST_FACTOR * self._count_took_s):
            await self._read_jobs()
            self._counted_s = self._clock_s()
            self._count_took_s = self._counted_s - started_s

    @translate_redis_errors
    async def _read_jobs(self) -> None:
        """Count the jobs of each table, from the queue's own indexes of jobs by state, and find what is paused."""
        name, names, redis = self._queue.name, self._queue.names, self._queue.redis
        async with redis.pipeline(transaction=False) as pipe:
            for index in (keys.queued, keys.leases, keys.quarantined):
                for group in names:
                    pipe.zrange(index(group), 0, MAX_JOBS - 1)
            for group in names:
                pipe.zrange(keys.delayed(group), 0, MAX_JOBS - 1, withscores=True)
            pipe.hgetall(keys.config(name))
            pipe.hgetall(keys.work_windows(name))
            pipe.zrange(keys.budget_waits(name), 0, -1, withscores=True)
            pipe.time()
            *found, config, windows, waits, clock = await pipe.execute()
        *states, later = (
            [(group, one) for group, jobs in zip(names, part, strict=True) for one in jobs]
            for part in batched_by(found, len(names))
        )
        by_state = [[job for _, job in jobs] for jobs in states]
        by_state += [[job for _, (job, _) in later], await self._failed([(group, *one) for group, one in later])]
        queued, running, quarantined, delayed, failed = (
            Counter(text(job).rsplit(".", 2)[0] for job in jobs) for jobs in by_state
        )
        paused = paused_tables({text(field): text(value) for field, value in config.items()})
        now_ms = milliseconds(clock)
        held = {text(table) for table, window in windows.items() if holds_all(text(window), now_ms)}
        over_budget = {text(table) for table, until_ms in waits if until_ms > now_ms}
        jobs = {
            table: JobsByState(
                *(queued[table], running[table], delayed[table], quarantined[table], failed[table]),
                is_paused=table in paused,
                is_outside_window=table in held,
                is_over_budget=table in over_budget,
            )
            for table in paused.union(queued, running, delayed, quarantined)
        }
        if jobs != self._jobs:
            self._jobs = jobs
            self._revision += 1

    async def _failed(self, delayed: Sequence[tuple[str, bytes, float]]) -> list[bytes]:
        """Return the delayed jobs that failed; the others wait for their time. Each delay in a group is read once."""
        known = self._failures
        unread = [one for one in delayed if one not in known]
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            for group, job, _ in unread:
                pipe.hget(keys.job(group, JobId(text(job))), "attempts")
            attempts = await pipe.execute()
        read = dict(zip(unread, (int(one or 0) > 0 for one in attempts), strict=True))
        self._failures = {one: read[one] if one in read else known[one] for one in delayed}
        return [job for (_, job, _), is_failed in self._failures.items() if is_failed]


def batched_by(found: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Return consecutive parts of so many items each."""
    return [found[first : first + size] for first in range(0, len(found), size)]
