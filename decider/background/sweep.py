"""Sweep: refreshes every table once per interval, to find commits of lost events.

It alone reads the log of an idle table, and it spreads the refreshes over the interval, so that a hundred thousand
tables are no burst.
"""

import asyncio
from dataclasses import dataclass

import structlog

from decider.events.refresh_queue import RefreshQueue
from decider.store.table_registry import TableRegistry
from shared.errors import RetryableError

SPREAD = 0.8
"""Share of the interval over which one sweep is spread; the rest is slack for slow stores."""

RETRY_S = 2.0
"""Pause after a failed sweep: an unavailable Redis is retried every two seconds."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Number of tables of one sweep."""

    tables: int


class Sweep:
    """Queues a refresh of every registered table once per `interval_s` seconds."""

    def __init__(self, registry: TableRegistry, inbox: RefreshQueue, *, interval_s: float) -> None:
        self._registry = registry
        self._inbox = inbox
        self._interval_s = interval_s

    async def run_once(self, *, spread_s: float = 0.0) -> SweepResult:
        """Queue a refresh of every table, spread over `spread_s` seconds."""
        count = await self._registry.count()
        pause_s = spread_s / count if count else 0.0
        tables = 0
        async for table in self._registry.all():
            await self._inbox.put(table, None)
            tables += 1
            if pause_s:
                await asyncio.sleep(pause_s)
        return SweepResult(tables)

    async def run(self) -> None:
        """Sweep until cancelled; the first sweep starts at once, without spread. An unavailable Redis is retried."""
        spread_s = 0.0
        while True:
            started = asyncio.get_running_loop().time()
            try:
                await self.run_once(spread_s=spread_s)
            except RetryableError as problem:
                log.warning("sweep_failed", error=str(problem))
                await asyncio.sleep(RETRY_S)
                continue
            elapsed = asyncio.get_running_loop().time() - started
            await asyncio.sleep(max(0.0, self._interval_s - elapsed))
            spread_s = self._interval_s * SPREAD
