"""The inbox: tables worth looking at, each once, whatever the number of events that named it.

It is bounded by the number of tables and not by the number of events, so a burst costs no memory. It lives in this
process alone: what a crash loses, the sweep finds again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog

from shared.errors import LakewrightError
from shared.table import TableId, TableRef

log = structlog.get_logger()

Handle = Callable[[TableRef, int | None], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A table that waits, the version that is wanted (None: the newest), and since when, on the loop's clock."""

    table: TableRef
    version: int | None
    since: float


class Inbox:
    """Hands each named table to `handle`, one call per table at a time, up to `workers` tables at once."""

    def __init__(self, handle: Handle, *, workers: int = 16) -> None:
        self._handle = handle
        self._workers = workers
        self._waiting: dict[TableId, _Waiting] = {}
        self._running: set[TableId] = set()
        self._arrived = asyncio.Condition()
        # Not the condition above: a waiter for silence among the workers would swallow their wake-ups.
        self._idle = asyncio.Event()
        self._idle.set()

    async def put(self, table: TableRef, version: int | None) -> None:
        """Ask for a look at a table; None asks for whatever is newest and wins over any version."""
        async with self._arrived:
            before = self._waiting.get(table.id)
            if before is None:
                self._waiting[table.id] = _Waiting(table, version, asyncio.get_running_loop().time())
            else:
                unbounded = before.version is None or version is None
                wanted = None if unbounded else max(before.version or 0, version or 0)
                self._waiting[table.id] = replace(before, version=wanted)
            self._idle.clear()
            self._arrived.notify()

    @property
    def backlog(self) -> int:
        """Tables that wait or are being looked at."""
        return len(self._waiting) + len(self._running)

    @property
    def oldest_wait_s(self) -> float:
        """Seconds that the table that waits longest has been waiting; 0 if none does."""
        if not self._waiting:
            return 0.0
        return asyncio.get_running_loop().time() - min(waiting.since for waiting in self._waiting.values())

    async def drained(self) -> None:
        """Return once nothing waits and nothing runs."""
        await self._idle.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            async with self._arrived:
                await self._arrived.wait_for(self._ready)
                table_id = next(key for key in self._waiting if key not in self._running)
                waiting = self._waiting.pop(table_id)
                self._running.add(table_id)
            try:
                await self._handle(waiting.table, waiting.version)
            except LakewrightError as problem:
                log.warning("table_not_followed", table=waiting.table.name, error=str(problem))
            except Exception:
                # A log that nobody foresaw must not end the following of all other tables; the sweep comes back to it.
                log.exception("table_crashed", table=waiting.table.name)
            finally:
                self._running.discard(table_id)
                if not self.backlog:
                    self._idle.set()

    def _ready(self) -> bool:
        return any(key not in self._running for key in self._waiting)
