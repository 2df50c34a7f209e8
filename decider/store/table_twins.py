"""One table under several names: whose snapshots are live under one of them, the metadata of another do not show.

A catalog may have two entries of one table, or a catalog and a folder; each has its own metadata from then on, and
what expires by one of them may be current by the other. Equal ids of tables show it, as their states keep these.
"""

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.registry.table_registry import decode_table
from shared.queue import keys
from shared.queue.decode import text
from shared.table import TableId

_READ_AT_ONCE = 1_000
"""Ids of tables that one round trip reads: a few milliseconds of Redis."""


class TableTwins:
    """Finds the registered tables with the id of another one, as the newest states have them."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._queue = queue

    @translate_redis_errors
    async def names(self, table: TableId, table_uuid: str) -> tuple[str, ...]:
        """Return the names of the other registered tables that are this one, in order."""
        others = [name for raw in await self._queue.redis.hkeys(keys.TABLES) if (name := TableId(text(raw))) != table]
        found: list[TableId] = []
        for start in range(0, len(others), _READ_AT_ONCE):
            some = others[start : start + _READ_AT_ONCE]
            async with self._queue.redis.pipeline(transaction=False) as pipe:
                for one in some:
                    pipe.hget(keys.table_state(self._queue.name, one), "table_uuid")
                ids = await pipe.execute()
            found += [one for one, raw in zip(some, ids, strict=True) if raw is not None and text(raw) == table_uuid]
        if not found:
            return ()
        registered = await self._queue.redis.hmget(keys.TABLES, found)
        return tuple(sorted(decode_table(raw).name for raw in registered if raw is not None))
