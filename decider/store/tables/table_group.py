"""Moves a table to another group of the queue, with its jobs that wait; what runs ends where it runs.

The table's state names its group, and the scripts hand over each job that they meet in a group which its table left.
So a call that dies leaves nothing to repair: the rest follows with claims of the old group, and with its next audit.
"""

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.tables.state_field import replace_field
from shared.queue import audit, keys
from shared.queue.decode import text
from shared.table import TableId

SCAN_COUNT = 1_000
"""Jobs that one ZSCAN reads: below a millisecond of the server."""


async def move_table(queue: AsyncQueueExecutor, table: TableId, *, before: str, after: str) -> bool:
    """Note a table's group in its state and have its jobs follow; False if it has another than `before` meanwhile."""
    is_noted, _ = await replace_field(queue, table, "group", before=before, after=after)
    if not is_noted:
        return False
    await hand_over_jobs(queue, table, before=before, after=after)
    return True


@translate_redis_errors
async def hand_over_jobs(queue: AsyncQueueExecutor, table: TableId, *, before: str, after: str) -> int:
    """Have the jobs of a table that wait in the group `before` follow it; return how many did."""
    if before == after:
        return 0
    old, moved = keys.in_group(queue.name, before), 0
    for index in (keys.queued(old), keys.delayed(old), keys.quarantined(old)):
        scan = queue.redis.zscan_iter(index, match=f"{table}.*", count=SCAN_COUNT)
        jobs = [text(job) async for job, _ in scan]
        for first in range(0, len(jobs), audit.PAGE):
            moved += await queue.run(audit.jobs(old, jobs[first : first + audit.PAGE]))
    return moved
