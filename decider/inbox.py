"""The inbox: tables worth looking at, each once, whatever the number of events that named it.

It is bounded by the number of tables and not by the number of events, so a burst costs no memory. It lives in this
process alone: what a crash loses, the sweep finds again.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from shared.errors import LakewrightError
from shared.table import TableId, TableRef

log = structlog.get_logger()

Handle = Callable[[TableRef, int | None], Awaitable[None]]


class Inbox:
    """Hands each named table to `handle`, one call per table at a time, up to `workers` tables at once."""

    def __init__(self, handle: Handle, *, workers: int = 16) -> None:
        self._handle = handle
        self._workers = workers
        self._waiting: dict[TableId, tuple[TableRef, int | None]] = {}
        self._running: set[TableId] = set()
        self._arrived = asyncio.Condition()

    async def put(self, table: TableRef, version: int | None) -> None:
        """Ask for a look at a table; None asks for whatever is newest and wins over any version."""
        async with self._arrived:
            _, before = self._waiting.get(table.id, (table, -1))
            wanted = None if before is None or version is None else max(before, version)
            self._waiting[table.id] = (table, wanted)
            self._arrived.notify()

    @property
    def backlog(self) -> int:
        """Tables that wait or are being looked at."""
        return len(self._waiting) + len(self._running)

    async def drained(self) -> None:
        """Return once nothing waits and nothing runs."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: not self.backlog)

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
                table, version = self._waiting.pop(table_id)
                self._running.add(table_id)
            try:
                await self._handle(table, version)
            except LakewrightError as problem:
                log.warning("table_not_followed", table=table.name, error=str(problem))
            finally:
                async with self._arrived:
                    self._running.discard(table_id)
                    self._arrived.notify_all()

    def _ready(self) -> bool:
        return any(key not in self._running for key in self._waiting)
