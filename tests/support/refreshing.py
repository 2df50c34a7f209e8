"""Runs the workers of a refresh queue as the decider does, and records what they read."""

import asyncio

from decider.background.runner import PeriodicCall, Schedule, run_periodically
from decider.events.refresh_queue import RefreshQueue
from shared.table import TableRef
from tests.support.time_limits import scaled


async def refreshing(refresh_queue: RefreshQueue) -> None:
    """Refresh what is queued until cancelled."""
    schedule = Schedule(0.0, "table_refresh_failed", workers=refresh_queue.workers)
    await run_periodically(PeriodicCall(schedule, refresh_queue.refresh_next), name="refresh_queue")


def in_time() -> asyncio.Timeout:
    return asyncio.timeout(scaled(20))


class RecordedRefreshes:
    """What is read, in order; a refresh waits for `open` and fails as `fails` says."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int | None]] = []
        self.running: list[str] = []
        self.most: dict[str, int] = {}
        self.open = asyncio.Event()
        self.begun = asyncio.Event()
        self.fails: list[Exception] = []
        self.awaited = (0, asyncio.Event())

    async def times(self, count: int) -> None:
        """Return once there were so many refreshes."""
        if len(self.seen) < count:
            self.awaited = (count, asyncio.Event())
            await self.awaited[1].wait()

    async def __call__(self, table: TableRef, version: int | None) -> None:
        self.seen.append((table.name, version))
        self.running.append(table.name)
        self.most[table.name] = max(self.most.get(table.name, 0), self.running.count(table.name))
        self.begun.set()
        if len(self.seen) == self.awaited[0]:
            self.awaited[1].set()
        try:
            await self.open.wait()
            if self.fails:
                raise self.fails.pop(0)
        finally:
            self.running.remove(table.name)
