"""The history of all tables together: one sample a minute for a day, and one an hour for 30 days.

A sample holds the sums at its time and the counters since the queue was created, so rates are differences of two. One
decider at a time takes samples, also of single tables (`tables/table_history`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from decider.decide.funnel import CommitCounter
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.samples import SampleStep, add_sample, is_new, read_samples
from decider.store.tables.table_history import TableHistory
from shared.prices import NOTHING_USED, Usage
from shared.queue import keys
from shared.queue.decode import text
from shared.typed_json import from_json, to_json

LEASE_MS = 180_000
"""Time after which another decider takes the samples of one that does no more: two of them are missed."""


@dataclass(frozen=True, slots=True)
class FleetSample:
    """Sums over all tables and jobs at a time, and counters of what had been done until then.

    files_needed: files that would do for the same bytes. states: tables by condition. waiting, running: jobs. The other
    figures are counters.
    """

    at_ms: int
    tables: int = 0
    files: int = 0
    files_needed: int = 0
    bytes: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    running: int = 0
    oldest_wait_s: int = 0
    events_received: int = 0
    commits: int = 0
    rewrites: int = 0
    jobs_failed: int = 0
    bytes_added: int = 0
    bytes_replaced: int = 0
    files_replaced: int = 0
    files_written: int = 0
    backlog_bytes_done: int = 0
    usage: Usage = NOTHING_USED


class FleetHistory:
    """Samples of all tables of one queue, and of each of them (`tables`)."""

    def __init__(self, queue: AsyncQueueExecutor, holder: str) -> None:
        """`holder` names this process."""
        self._queue = queue
        self._holder = holder
        self.tables = TableHistory(queue)

    @translate_redis_errors
    async def acquire(self) -> bool:
        """Return whether this process takes the samples from now on, and another one does not."""
        key, redis = keys.history_lease(self._queue.name), self._queue.redis
        if text(await redis.get(key) or b"") == self._holder:
            return bool(await redis.pexpire(key, LEASE_MS))
        return bool(await redis.set(key, self._holder, nx=True, px=LEASE_MS))

    @translate_redis_errors
    async def count_events(self, received: int) -> None:
        """Add events that this process has received to the counter of all deciders."""
        await self._queue.redis.hincrby(keys.counters(self._queue.name), CommitCounter.EVENTS_RECEIVED, received)

    @translate_redis_errors
    async def record(self, sample: FleetSample) -> frozenset[SampleStep]:
        """Keep the first sample of each minute and of each hour; return the steps of which this is the first."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            pipe.set(keys.newest_sample(self._queue.name), to_json(sample), px=LEASE_MS)
            for step in SampleStep:
                add_sample(pipe, keys.history(self._queue.name, int(step)), step, sample)
            _, *added = await pipe.execute(raise_on_error=False)
        return frozenset(step for step, answer in zip(SampleStep, added, strict=True) if is_new(answer))

    @translate_redis_errors
    async def newest(self) -> FleetSample | None:
        """Return the newest sample; None if none was taken for three minutes."""
        raw = await self._queue.redis.get(keys.newest_sample(self._queue.name))
        return None if raw is None else from_json(FleetSample, raw)

    @translate_redis_errors
    async def samples(self, step: SampleStep, since_ms: int) -> tuple[FleetSample, ...]:
        """Return the samples of a step from a time on, the oldest first."""
        key = keys.history(self._queue.name, int(step))
        return await read_samples(self._queue.redis, key, step, FleetSample, since_ms)
