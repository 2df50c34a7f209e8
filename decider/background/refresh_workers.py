"""Refresh workers: take queued tables out of the refresh queue and refresh them, several at once."""

from decider.background.runner import Schedule
from decider.events.refresh_queue import RefreshQueue


class RefreshWorkers:
    """Serves the refresh queue with as many workers as it allows; a pass waits for a table and refreshes it."""

    def __init__(self, refresh_queue: RefreshQueue) -> None:
        self.schedule = Schedule(0.0, "table_refresh_failed", workers=refresh_queue.workers)
        self._refresh_queue = refresh_queue

    async def run_once(self) -> None:
        """Refresh the next queued table, once there is one."""
        await self._refresh_queue.refresh_next()
