"""History sampler: keeps what all tables and jobs are once a minute, and each table that changed once an hour."""

from collections.abc import Callable

from decider.background.runner import Schedule
from decider.decide.funnel import CommitCounter
from decider.store.fleet_history import FleetHistory, FleetSample
from decider.store.queue.queue_admin import QueueAdmin
from decider.store.registry.table_index import TableIndex
from decider.store.samples import SampleStep
from decider.store.tables.ingest import CounterReader
from decider.store.tables.table_history import STEP
from shared.prices import Usage
from shared.queue.model import JobState
from shared.run_counters import RunCounter

EVERY_S = 15.0
"""Four passes a minute, of which one keeps a sample: a late pass misses no minute."""


class HistorySampler:
    """Takes the samples; the figures of tables are read from this process's index, which reads what changed."""

    def __init__(
        self,
        history: FleetHistory,
        index: TableIndex,
        admin: QueueAdmin,
        counters: CounterReader,
        *,
        events_received: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        """`events_received`: how many this process has received; those since its last pass are lost when it ends."""
        self.schedule = Schedule(EVERY_S, "history_sample_failed")
        self._history = history
        self._index = index
        self._admin = admin
        self._counters = counters
        self._events_received = events_received
        self._events_counted = 0
        self._now_ms = now_ms
        self._minute = -1

    async def run_once(self) -> FleetSample | None:
        """Keep a sample of this minute; None where there is one, another decider takes them, or figures are read."""
        await self._count_events()
        at_ms = self._now_ms()
        if at_ms // SampleStep.MINUTE == self._minute or not await self._history.acquire():
            return None
        totals = await self._index.totals()
        if totals is None:
            return None
        depth, counted = await self._admin.depth_of_all(), await self._counters.read()
        sample = FleetSample(
            at_ms=at_ms,
            tables=totals.tables,
            files=totals.files,
            files_needed=totals.files_needed,
            bytes=totals.bytes,
            states=totals.states,
            waiting=depth.depth[JobState.QUEUED] + depth.depth[JobState.DELAYED],
            running=depth.depth[JobState.LEASED],
            oldest_wait_s=depth.oldest_wait_ms // 1000,
            events_received=counted.get(CommitCounter.EVENTS_RECEIVED, 0),
            commits=counted.get(CommitCounter.COMMITS, 0),
            rewrites=counted.get(RunCounter.REWRITES, 0),
            jobs_failed=counted.get(RunCounter.JOBS_FAILED, 0),
            bytes_added=counted.get(CommitCounter.BYTES_ADDED, 0),
            bytes_replaced=counted.get(RunCounter.BYTES_REPLACED, 0),
            files_replaced=counted.get(RunCounter.FILES_REPLACED, 0),
            files_written=counted.get(RunCounter.FILES_WRITTEN, 0),
            backlog_bytes_done=counted.get(CommitCounter.BACKLOG_BYTES_DONE, 0),
            usage=Usage.of_counters(counted),
        )
        if STEP in await self._history.record(sample):
            await self._history.tables.record_changed(at_ms)
        self._minute = at_ms // SampleStep.MINUTE
        return sample

    async def _count_events(self) -> None:
        """Each decider adds its own, whichever takes the samples."""
        received = self._events_received()
        if received > self._events_counted:
            await self._history.count_events(received - self._events_counted)
            self._events_counted = received
