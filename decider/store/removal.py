"""Forgetting a table leaves nothing behind: its jobs are cancelled, then its state, ledger and counters are dropped."""

from uuid import uuid4

from decider.store.answers import answered
from decider.store.queue import AsyncQueue
from shared.queue import keys, transitions
from shared.queue.decode import text
from shared.queue.model import JobKey, job_id
from shared.table import TableId


@answered
async def forget(queue: AsyncQueue, table: TableId, *, kind: str) -> int:
    """Cancel the jobs of this kind for every cell of a table and drop its keys; return how many cells it had.

    A job that runs is told to stop with its next heartbeat and does not come back.
    """
    cells = [text(cell) for cell in await queue.redis.hkeys(keys.cells(queue.name, table))]
    for cell in cells:
        await queue.run(transitions.cancel(queue.name, job_id(JobKey(table, cell, kind)), nonce=uuid4().hex))
    await queue.redis.unlink(
        keys.cursor(queue.name, table),
        keys.cells(queue.name, table),
        keys.ledger(queue.name, table),
        keys.counters(queue.name, table),
    )
    return len(cells)
