"""Refreshes without events: of every table once per interval, and of a table at once whose run has finished.

The sweep finds the commits of lost events. It alone reads the log of an idle table, and it spreads the refreshes over
the interval, in bursts of a second, so that reads of a hundred thousand tables do not come at once.
"""

import asyncio
import json
from dataclasses import dataclass

import structlog

from decider.background.runner import Schedule
from decider.events.refresh_queue import RefreshQueue
from decider.store.queue.stream_reader import RUNS, StreamEntry, StreamPosition, StreamReader
from decider.store.registry.table_registry import TableRegistry
from shared.table import TableId

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


POLL_EVERY_S = 1.0
"""Soon enough for a person who watches the job; a poll costs Redis one read of a stream."""

log = structlog.get_logger()


class FinishedRuns:
    """Puts the tables of finished runs that committed into the refresh queue: the commit may cause no event.

    Every decider reads the history of runs from its own position on; if two refresh one table, one retries. The sweep
    finds what is lost while Redis is unavailable.
    """

    def __init__(self, runs: StreamReader, registry: TableRegistry, refresh_queue: RefreshQueue) -> None:
        self.schedule = Schedule(POLL_EVERY_S, "finished_runs_not_read")
        self._runs = runs
        self._registry = registry
        self._refresh_queue = refresh_queue
        self._position: StreamPosition | None = None

    async def run_once(self) -> None:
        """Refresh the tables of the runs that finished since the last call; the first call only notes where it is."""
        if self._position is None:
            self._position = await self._runs.now()
            return
        entries = await self._runs.read(self._position, [RUNS])
        for table_id in dict.fromkeys(TableId(one.fields["table"]) for one in entries if _committed(one)):
            table = await self._registry.get(table_id)
            if table is not None:
                await self._refresh_queue.put(table, None)


def _committed(run: StreamEntry) -> bool:
    """Return whether a run may have committed: also one that ended without a report, or whose report cannot be read."""
    try:
        report = json.loads(run.fields.get("result") or "{}")
        return not report or bool(report.get("versions")) or report.get("recovered_version") is not None
    except (ValueError, AttributeError):
        return True
