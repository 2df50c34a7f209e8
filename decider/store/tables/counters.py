"""Reads the counters that ingest and finish keep: the funnel from commits to rewrites, per table and overall."""

from collections.abc import Mapping

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from shared.queue import keys
from shared.queue.decode import text
from shared.table import TableId


class CounterReader:
    """The hashes `count` and `count:<table>`; a counter that was never incremented is absent."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._queue = queue

    @translate_redis_errors
    async def read(self, table: TableId | None = None) -> Mapping[str, int]:
        """Return the counters of one table, or of all."""
        raw = await self._queue.redis.hgetall(keys.counters(self._queue.name, table))
        return {text(name): int(value) for name, value in raw.items()}
