"""Sweep: refreshes every table once per interval, to find commits of lost events.

It alone reads the log of an idle table, and it spreads the refreshes over the interval, in bursts of a second, so that
reads of a hundred thousand tables do not come at once.
"""

import asyncio
from dataclasses import dataclass

from decider.background.runner import Schedule
from decider.events.refresh_queue import RefreshQueue
from decider.store.registry.table_registry import TableRegistry

SPREAD = 0.8
"""Share of the interval over which one sweep is spread; the rest is slack for slow stores."""

BURST_S = 1.0
"""The tables of one second are queued at once: to wake up for each takes nearly twice the CPU seconds."""

RETRY_S = 2.0
"""Pause after a failed sweep: an unavailable Redis is retried every two seconds."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Number of tables of one sweep."""

    tables: int


class Sweep:
    """Queues a refresh of every registered table once per `interval_s` seconds."""

    def __init__(self, registry: TableRegistry, refresh_queue: RefreshQueue, *, interval_s: float) -> None:
        self._registry = registry
        self._refresh_queue = refresh_queue
        self.schedule = Schedule(interval_s, "sweep_failed", retry_s=RETRY_S, is_fixed_rate=True)
        self._next_spread_s = 0.0

    async def run_once(self, *, spread_s: float | None = None) -> SweepResult:
        """Queue a refresh of every table, spread over `spread_s` seconds.

        None: at once until a sweep has succeeded, because a new process knows nothing; then over most of the interval.
        """
        if spread_s is None:
            spread_s = self._next_spread_s
        count = await self._registry.count()
        pause_s = spread_s / count if count else 0.0
        burst = max(1, round(BURST_S / pause_s)) if pause_s else 0
        tables = 0
        async for table in self._registry.all():
            await self._refresh_queue.put_swept(table)
            tables += 1
            if burst and tables % burst == 0:
                await asyncio.sleep(burst * pause_s)
        self._next_spread_s = self.schedule.every_s * SPREAD
        return SweepResult(tables)
