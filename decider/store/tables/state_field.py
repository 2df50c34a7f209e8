"""Replaces one field of a table's state, if it is still what the caller knows; the scripts read these fields."""

from typing import Any

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.redis.watched_transaction import watched_transaction
from shared.queue import keys
from shared.queue.decode import text
from shared.table import TableId


@translate_redis_errors
async def replace_field(
    queue: AsyncQueueExecutor, table: TableId, name: str, *, before: str, after: str
) -> tuple[bool, str]:
    """Replace a field if it is `before`; return whether it was, and its value now, empty without a state."""
    key = keys.table_state(queue.name, table)

    async def replace(pipe: Any) -> tuple[bool, str]:
        found = text(await pipe.hget(key, name) or b"")
        if found != before or not await pipe.exists(key):
            return False, found
        pipe.multi()
        pipe.hset(key, name, after)
        return True, after

    return await watched_transaction(queue.redis, (key,), replace)
