"""Deduplicating refresh queue, keyed by table: each table is queued once, whatever the number of events.

It is bounded by the number of tables, so a burst costs no memory. It is local to the process: the sweep finds what a
crash loses. Tables of the sweep wait behind those that events named, which a sweep of a large fleet would hold up for
minutes. A refresh that fails temporarily, or unexpectedly, is retried with exponential backoff.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import chain

import structlog

from shared import tracing
from shared.errors import LakewrightError, RetryableError
from shared.retry import RetryPolicy
from shared.table import TableId, TableRef
from shared.tracing import Attribute, SpanName

log = structlog.get_logger()

Handle = Callable[[TableRef, int | None], Awaitable[None]]

FAILED_REFRESH = RetryPolicy(max_attempts=8, first_s=1.0, longest_s=60.0)
"""Retries of a failed refresh before the sweep takes over; eight tries cover an outage of about two minutes."""


MAX_SWEPT = 1_000
"""Tables of the sweep that wait at most: the sweep waits for room, and so takes as long as the refreshes do."""

LONG_TURN_S = 0.02
"""Turn of the event loop, in seconds, beyond which fewer tables are refreshed at once: every request waits for it."""

FEWEST_AT_ONCE = 2
"""Tables that are refreshed at once however late the loop is: one table that is slow to read stops no other."""

EVENTS_PER_SWEPT = 8
"""Tables that events named for each one of the sweep, where both wait: no load of events ends the sweep."""


@dataclass(frozen=True, slots=True)
class _QueuedRefresh:
    """A queued table, its expected version (None: the latest), its arrival on the loop's clock, and its traces."""

    table: TableRef
    version: int | None
    since: float
    traces: tuple[str, ...] = ()


class RefreshQueue:
    """Calls `handle` for each queued table, one call per table at a time, up to `workers` tables at once.

    While turns of the event loop are long, fewer: tables that wait cost freshness, requests that wait cost senders.
    """

    def __init__(self, handle: Handle, *, workers: int = 16, retry_policy: RetryPolicy = FAILED_REFRESH) -> None:
        self._handle = handle
        self.workers = workers
        self._at_once = workers
        self._retry_policy = retry_policy
        self._failures: dict[TableId, int] = {}
        self._problems: dict[TableId, str] = {}
        self._returning: set[asyncio.Future[None]] = set()
        self._paused: dict[TableId, asyncio.TimerHandle] = {}
        self._waiting: dict[TableId, _QueuedRefresh] = {}
        self._swept: dict[TableId, _QueuedRefresh] = {}
        self._room = asyncio.Semaphore(MAX_SWEPT)
        self._turns = 0
        self._running: set[TableId] = set()
        self._arrived = asyncio.Condition()
        # Not the condition above: one that waits for an idle queue would take wake-ups of the workers.
        self._idle = asyncio.Event()
        self._idle.set()

    async def put(self, table: TableRef, version: int | None) -> None:
        """Queue a refresh; version None means the latest, takes precedence, and ends a pause."""
        await self._put(_QueuedRefresh(table, version, asyncio.get_running_loop().time(), tracing.current_contexts()))

    async def put_swept(self, table: TableRef) -> None:
        """Queue a refresh that no event led to, to the latest version, behind those that one did; waits for room."""
        await self._room.acquire()
        async with self._arrived:
            line = self._waiting if table.id in self._waiting else self._swept
            if table.id in line:
                self._room.release()
                line[table.id] = replace(line[table.id], table=table, version=None)
                return
            if table.id in self._paused:
                self._paused.pop(table.id).cancel()
            self._swept[table.id] = _QueuedRefresh(table, None, asyncio.get_running_loop().time())
            self._idle.clear()
            self._arrived.notify()

    async def _put(self, new: _QueuedRefresh) -> None:
        table, version = new.table, new.version
        async with self._arrived:
            if table.id in self._paused:
                if version is not None:
                    return  # The retry requests the newest version; events do not shorten the pause.
                self._paused.pop(table.id).cancel()
            before = self._waiting.get(table.id)
            if self._swept.pop(table.id, None) is not None:
                self._room.release()
                self._waiting[table.id] = replace(new, version=None)
            elif before is None:
                self._waiting[table.id] = new
            else:
                unbounded = before.version is None or version is None
                wanted = None if unbounded else max(before.version or 0, version or 0)
                traces = tracing.joined(before.traces, new.traces)
                self._waiting[table.id] = replace(before, table=table, version=wanted, traces=traces)
            self._idle.clear()
            self._arrived.notify()

    @property
    def backlog(self) -> int:
        """Number of tables queued or being refreshed."""
        return len(self._waiting) + len(self._swept) + len(self._running)

    @property
    def retrying(self) -> int:
        """Number of tables whose refresh failed and is retried."""
        return len(self._paused)

    def problem(self, table: TableId) -> str:
        """Return why the last refresh of a table by this decider failed; empty if it did not."""
        return self._problems.get(table, "")

    @property
    def oldest_wait_s(self) -> float:
        """Wait of the oldest queued table in seconds; 0 if none is queued."""
        queued = [waiting.since for waiting in chain(self._waiting.values(), self._swept.values())]
        return asyncio.get_running_loop().time() - min(queued) if queued else 0.0

    async def drained(self) -> None:
        """Return once the queue is empty and idle."""
        await self._idle.wait()

    async def refresh_next(self) -> None:
        """Refresh the next queued table, once there is one that is not being refreshed; errors are kept, not raised."""
        await self._adapt()
        async with self._arrived:
            await self._arrived.wait_for(self._ready)
            waiting = self._take()
            table_id = waiting.table.id
            self._running.add(table_id)
            self._arrived.notify()  # There may be room for another now.
        try:
            await self._refresh(waiting)
            self._failures.pop(table_id, None)
            self._problems.pop(table_id, None)
        except RetryableError as problem:
            self._problems[table_id] = str(problem)
            self._retry_later(waiting, problem)
        except LakewrightError as problem:
            self._problems[table_id] = str(problem)
            log.warning("table_refresh_failed", table=waiting.table.name, error=str(problem))
        except Exception as problem:
            # It must not end the refreshes of other tables; what a full disk or too many open files did may be over.
            self._problems[table_id] = f"{type(problem).__name__}: {problem}"
            log.exception("table_refresh_crashed", table=waiting.table.name)
            self._retry_later(waiting, problem)
        finally:
            self._running.discard(table_id)
            if not self.backlog:
                self._idle.set()

    async def _adapt(self) -> None:
        """Halve the tables at once after a long turn of the loop, and allow one more after a short one."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await asyncio.sleep(0)
        is_long = loop.time() - began_s > LONG_TURN_S
        self._at_once = max(FEWEST_AT_ONCE, self._at_once // 2) if is_long else self._at_once + 1
        self._at_once = min(self._at_once, self.workers)

    async def _refresh(self, waiting: _QueuedRefresh) -> None:
        """Refresh a table; recorded only if events led to it, because the sweep finds nothing new nearly always."""
        if not waiting.traces:
            await self._handle(waiting.table, waiting.version)
            return
        attributes: tracing.Attributes = {Attribute.TABLE: waiting.table.name, Attribute.TABLE_ID: waiting.table.id}
        with tracing.span(SpanName.REFRESH, tracing.origin_of(waiting.traces), attributes):
            await self._handle(waiting.table, waiting.version)

    def _retry_later(self, failed: _QueuedRefresh, problem: Exception) -> None:
        """Queue a table again after a pause; after too many failures leave it to the sweep."""
        table = failed.table
        failures = self._failures.get(table.id, 0) + 1
        if self._retry_policy.is_exhausted(failures):
            self._failures.pop(table.id, None)
            log.warning("table_refresh_abandoned", table=table.name, failures=failures, error=str(problem))
            return
        self._failures[table.id] = failures
        pause_s = self._pause_s(failures)
        log.warning("table_refresh_failed", table=table.name, retry_in_s=round(pause_s, 1), error=str(problem))
        if table.id in self._waiting or table.id in self._swept:
            return  # It is queued again already.
        loop = asyncio.get_running_loop()
        self._paused[table.id] = loop.call_later(pause_s, self._again, failed)

    def _pause_s(self, failures: int) -> float:
        # Tables of one store fail together; nothing secret depends on when each is read again.
        return self._retry_policy.pause_s(failures, draw=random.random())  # noqa: S311

    def _again(self, failed: _QueuedRefresh) -> None:
        again = replace(failed, version=None, since=asyncio.get_running_loop().time())
        # A timer cannot await, and the loop holds its tasks by weak references only.
        self._returning.add(task := asyncio.ensure_future(self._put(again)))
        task.add_done_callback(self._returning.discard)

    def _ready(self) -> bool:
        if len(self._running) >= self._at_once:
            return False
        return any(key not in self._running for key in chain(self._waiting, self._swept))

    def _take(self) -> _QueuedRefresh:
        """Take the next table that is not being refreshed; there is one."""
        self._turns += 1
        is_turn_of_sweep = self._turns % (EVENTS_PER_SWEPT + 1) == 0
        lines = (self._swept, self._waiting) if is_turn_of_sweep else (self._waiting, self._swept)
        line, table_id = next((line, key) for line in lines for key in line if key not in self._running)
        if line is self._swept:
            self._room.release()
        return line.pop(table_id)
