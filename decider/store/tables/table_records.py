"""All that is stored of a table and needed before its log is read, in one round trip."""

from dataclasses import dataclass

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.registry.manual_runs import ManualRunRecord, decode_manual_run
from decider.store.registry.table_registry import StoredRefusal, decode_refusal, decode_table
from decider.store.tables.table_state import TableState
from shared.queue import keys
from shared.table import TableId, TableRef


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A registered table: why it is not optimized, how far its log was read, and its last request by a property."""

    table: TableRef
    refusal: StoredRefusal | None
    state: TableState | None
    manual_run: ManualRunRecord | None


class TableRecords:
    """Reads records; each part is written by the store that it belongs to."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._queue = queue

    @translate_redis_errors
    async def read(self, table: TableId) -> TableRecord | None:
        """Return the record of a table, None if it is not registered."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            pipe.hget(keys.TABLES, table)
            pipe.hget(keys.REFUSED_TABLES, table)
            pipe.hgetall(keys.table_state(self._queue.name, table))
            pipe.get(keys.manual_run(table))
            registered, refusal, state, manual_run = await pipe.execute()
        if registered is None:
            return None
        return TableRecord(
            decode_table(registered),
            None if refusal is None else decode_refusal(refusal),
            TableState.decode(state) if state else None,
            None if manual_run is None else decode_manual_run(manual_run),
        )
