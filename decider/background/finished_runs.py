"""A finished run refreshes its table at once: its commit may cause no event, and the sweep would find it late.

Every decider reads the history of runs from its own position on; if two refresh one table, one retries. The sweep finds
what is lost while Redis is unavailable.
"""

import json

import structlog

from decider.background.runner import Schedule
from decider.events.refresh_queue import RefreshQueue
from decider.store.queue.stream_reader import RUNS, StreamEntry, StreamPosition, StreamReader
from decider.store.registry.table_registry import TableRegistry
from shared.table import TableId

POLL_EVERY_S = 1.0
"""Soon enough for a person who watches the job; a poll costs Redis one read of a stream."""

log = structlog.get_logger()


class FinishedRuns:
    """Puts the tables of finished runs that committed into the refresh queue."""

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
