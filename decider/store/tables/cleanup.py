"""Unregistering a table leaves nothing behind: its jobs are cancelled, its queue limits and its keys are deleted."""

from collections.abc import Sequence
from uuid import uuid4

from decider.decide.funnel import CommitCounter
from decider.state.table_summary import TableSummary
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.tables.table_history import STEP
from decider.store.tables.table_queue_limits import apply_queue_limits
from shared.partitions import WHOLE_TABLE
from shared.queue import commands, keys
from shared.queue.decode import text
from shared.queue.model import JobKey, job_id
from shared.table import TableId
from shared.typed_json import from_json


@translate_redis_errors
async def delete_table(queue: AsyncQueueExecutor, table: TableId, *, kinds: Sequence[str]) -> int:
    """Cancel the jobs of these kinds for every partition of a table and drop its keys; return the number of partitions.

    A running job is asked to stop with its next heartbeat and is not queued again.
    """
    partitions = await cancel_jobs(queue, table, kinds=kinds)
    await apply_queue_limits(queue, table, "")
    await _count_backlog_as_done(queue, table)
    await queue.redis.unlink(
        keys.table_state(queue.name, table),
        keys.partitions(queue.name, table),
        keys.ledger(queue.name, table),
        keys.counters(queue.name, table),
        keys.timers(queue.name, table),
        keys.measures(queue.name, table),
        keys.rates(queue.name, table),
        keys.refusals(queue.name, table),
        keys.marks(queue.name, table),
    )
    await queue.redis.hdel(keys.refusing_tables(queue.name), table)
    await queue.redis.zrem(keys.due_tables(queue.name), table)
    await queue.redis.zrem(keys.changed_tables(queue.name), table)
    await queue.redis.hdel(keys.archived_up_to(queue.name), table)
    samples = keys.history(queue.name, int(STEP), table)
    await queue.redis.unlink(samples, keys.manual_run(table), keys.reads(table), keys.read_filters(table))
    for advice in (keys.ADVICE, keys.ANALYZED_TABLES, keys.DISMISSED_ADVICE):
        await queue.redis.hdel(advice, table)
    return partitions


@translate_redis_errors
async def delete_state(queue: AsyncQueueExecutor, table: TableId, *, kinds: Sequence[str]) -> int:
    """Delete jobs, queue limits and state of a table that no longer exists; its ledger stays."""
    partitions = await cancel_jobs(queue, table, kinds=kinds)
    await apply_queue_limits(queue, table, "")
    await _count_backlog_as_done(queue, table)
    await queue.redis.unlink(
        *(keys.table_state(queue.name, table), keys.partitions(queue.name, table), keys.timers(queue.name, table)),
        keys.refusals(queue.name, table),
    )
    await queue.redis.hdel(keys.refusing_tables(queue.name), table)
    await queue.redis.zrem(keys.due_tables(queue.name), table)
    return partitions


async def _count_backlog_as_done(queue: AsyncQueueExecutor, table: TableId) -> None:
    """Take what was left to rewrite of a table out of the backlog of all tables."""
    raw = await queue.redis.hget(keys.table_state(queue.name, table), "summary")
    left_bytes = 0 if raw is None else from_json(TableSummary, raw).backlog_bytes
    if left_bytes:
        await queue.redis.hincrby(keys.counters(queue.name), CommitCounter.BACKLOG_BYTES_DONE, left_bytes)


@translate_redis_errors
async def cancel_jobs(queue: AsyncQueueExecutor, table: TableId, *, kinds: Sequence[str]) -> int:
    """Cancel the jobs of these kinds for every partition of a table, and return how many partitions it has."""
    partitions = [text(partition) for partition in await queue.redis.hkeys(keys.partitions(queue.name, table))]
    for partition in {WHOLE_TABLE, *partitions}:
        for kind in kinds:
            await queue.run(commands.cancel(queue.name, job_id(JobKey(table, partition, kind)), nonce=uuid4().hex))
    return len(partitions)
