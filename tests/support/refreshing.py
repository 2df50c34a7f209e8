"""Runs the workers of a refresh queue as the decider does."""

from decider.background.refresh_workers import RefreshWorkers
from decider.background.runner import run_periodically
from decider.events.refresh_queue import RefreshQueue


async def refreshing(refresh_queue: RefreshQueue) -> None:
    """Refresh what is queued until cancelled."""
    await run_periodically(RefreshWorkers(refresh_queue), name="refresh_queue")
