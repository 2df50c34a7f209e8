"""Deduplicating refresh queue, keyed by table: each table is queued once, whatever the number of events.

It is bounded by the number of tables, so a burst costs no memory. It is local to the process: the sweep finds what a
crash loses. A refresh that fails temporarily is retried with exponential backoff.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

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


@dataclass(frozen=True, slots=True)
class _QueuedRefresh:
    """A queued table, its expected version (None: the latest), its arrival on the loop's clock, and its traces."""

    table: TableRef
    version: int | None
    since: float
    traces: tuple[str, ...] = ()


class RefreshQueue:
    """Calls `handle` for each queued table, one call per table at a time, up to `workers` tables at once."""

    def __init__(self, handle: Handle, *, workers: int = 16, retry_policy: RetryPolicy = FAILED_REFRESH) -> None:
        self._handle = handle
        self.workers = workers
        self._retry_policy = retry_policy
        self._failures: dict[TableId, int] = {}
        self._problems: dict[TableId, str] = {}
        self._returning: set[asyncio.Future[None]] = set()
        self._paused: dict[TableId, asyncio.TimerHandle] = {}
        self._waiting: dict[TableId, _QueuedRefresh] = {}
        self._running: set[TableId] = set()
        self._arrived = asyncio.Condition()
        # Not the condition above: one that waits for an idle queue would take wake-ups of the workers.
        self._idle = asyncio.Event()
        self._idle.set()

    async def put(self, table: TableRef, version: int | None) -> None:
        """Queue a refresh; version None means the latest, takes precedence, and ends a pause."""
        await self._put(_QueuedRefresh(table, version, asyncio.get_running_loop().time(), tracing.current_contexts()))

    async def _put(self, new: _QueuedRefresh) -> None:
        table, version = new.table, new.version
        async with self._arrived:
            if table.id in self._paused:
                if version is not None:
                    return  # The retry requests the newest version; events do not shorten the pause.
                self._paused.pop(table.id).cancel()
            before = self._waiting.get(table.id)
            if before is None:
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
        return len(self._waiting) + len(self._running)

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
        if not self._waiting:
            return 0.0
        return asyncio.get_running_loop().time() - min(waiting.since for waiting in self._waiting.values())

    async def drained(self) -> None:
        """Return once the queue is empty and idle."""
        await self._idle.wait()

    async def refresh_next(self) -> None:
        """Refresh the next queued table, once there is one that is not being refreshed; errors are kept, not raised."""
        async with self._arrived:
            await self._arrived.wait_for(self._ready)
            table_id = next(key for key in self._waiting if key not in self._running)
            waiting = self._waiting.pop(table_id)
            self._running.add(table_id)
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
        except Exception:
            # An unexpected log must not end the refreshes of all other tables; the sweep retries it.
            log.exception("table_refresh_crashed", table=waiting.table.name)
        finally:
            self._running.discard(table_id)
            if not self.backlog:
                self._idle.set()

    async def _refresh(self, waiting: _QueuedRefresh) -> None:
        """Refresh a table; recorded only if events led to it, because the sweep finds nothing new nearly always."""
        if not waiting.traces:
            await self._handle(waiting.table, waiting.version)
            return
        attributes: tracing.Attributes = {Attribute.TABLE: waiting.table.name, Attribute.TABLE_ID: waiting.table.id}
        with tracing.span(SpanName.REFRESH, tracing.origin_of(waiting.traces), attributes):
            await self._handle(waiting.table, waiting.version)

    def _retry_later(self, failed: _QueuedRefresh, problem: RetryableError) -> None:
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
        if table.id in self._waiting:
            return  # Another event has queued it already.
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
        return any(key not in self._running for key in self._waiting)
