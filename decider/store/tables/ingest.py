"""The one step in which a table's state moves: partitions, cursor, jobs, timers and ledger together, or nothing.

The script compares the cursor first, so of two deciders that applied the same commits one writes and the other tries
again. A script carries a bounded number of jobs; the others are queued before it moves the cursor, so that a crash in
between repeats the work instead of losing it. The partitions of a large table are staged under a separate key first,
and replace the old ones in the step.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from decider.store.queue.traced_jobs import enqueuing
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.tables.table_state import TableState
from shared.queue import commands, keys
from shared.queue.decode import text
from shared.queue.limits import LEDGER_KEPT
from shared.queue.model import NO_TABLE_STATE, ExpectedTableState, JobRequest, RefusalsChange, StagedState, Timer
from shared.table import TableId

JOBS_PER_INGEST = 100
"""Jobs one ingest may carry (the script's bound)."""

PARTITIONS_INLINE = 1_000
"""Maximum partitions of a rebuild in the step itself; more are staged, so that no script takes longer for them."""

STAGED_TTL_S = 600
"""Time to live of staged partitions. Their step follows at once; after a crash they expire in ten minutes."""


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """Changes to write: encoded partitions (None: delete), jobs, ledger lines with the index of their job, counters.

    refusals: what is remembered of refused files and has changed.
    reset: all partitions and timers of the table are dropped first. ledger_kept: maximum records kept per table.
    """

    partitions: Mapping[str, str | None]
    jobs: Sequence[JobRequest] = ()
    ledger: Sequence[tuple[str, int]] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    reset: bool = False
    ledger_kept: int = LEDGER_KEPT
    timers: Sequence[Timer] = ()
    refusals: Sequence[RefusalsChange] = ()


async def ingest(
    queue: AsyncQueueExecutor, table: TableId, *, old: TableState | None, new: TableState, update: StateUpdate
) -> bool:
    """Move a table from one cursor to the next; False if another caller moved it first, and nothing was written.

    Raises RetryableError where Redis does not answer; whether it was done is then seen by the cursor.
    """
    with enqueuing(queue.name, update.jobs) as jobs:
        return await _ingest(queue, table, old=old, new=new, update=replace(update, jobs=jobs))


async def _ingest(
    queue: AsyncQueueExecutor, table: TableId, *, old: TableState | None, new: TableState, update: StateUpdate
) -> bool:
    for spec in update.jobs[JOBS_PER_INGEST:]:
        await queue.run(commands.enqueue(queue.name, spec))
    reset: bool | StagedState = update.reset
    if update.reset and len(update.partitions) > PARTITIONS_INLINE:
        reset = await _stage(queue, update)
        update = replace(update, partitions={}, timers=())
    result = await queue.run(
        commands.ingest(
            queue.name,
            table=table,
            expected_version=old.version if old else -1,
            expected_state=_expected(old),
            state_fields=new.encode(None if update.reset else old),
            partitions=update.partitions,
            reset=reset,
            jobs=update.jobs[:JOBS_PER_INGEST],
            ledger=[(line, index if index < JOBS_PER_INGEST else -1) for line, index in update.ledger],
            counters=update.counters,
            ledger_kept=update.ledger_kept,
            timers=update.timers,
            refusals=update.refusals,
        )
    )
    return result.applied


def _expected(old: TableState | None) -> ExpectedTableState:
    return ExpectedTableState(old.policy, str(old.rebuilds), old.digest, old.queue_limits) if old else NO_TABLE_STATE


@translate_redis_errors
async def _stage(queue: AsyncQueueExecutor, update: StateUpdate) -> StagedState:
    """Write the partitions and timers of a rebuild beside the old ones; return what the step will find there."""
    name = secrets.token_hex(16)
    partitions, timers = keys.staged_partitions(queue.name, name), keys.staged_timers(queue.name, name)
    states = [(partition, state) for partition, state in update.partitions.items() if state is not None]
    for start in range(0, len(states), PARTITIONS_INLINE):
        async with queue.redis.pipeline(transaction=True) as pipe:
            pipe.hset(partitions, mapping=dict(states[start : start + PARTITIONS_INLINE]))
            pipe.expire(partitions, STAGED_TTL_S)
            await pipe.execute()
    for start in range(0, len(update.timers), PARTITIONS_INLINE):
        some = update.timers[start : start + PARTITIONS_INLINE]
        async with queue.redis.pipeline(transaction=True) as pipe:
            pipe.zadd(timers, {timer.name: timer.fires_at_ms for timer in some})
            pipe.expire(timers, STAGED_TTL_S)
            await pipe.execute()
    return StagedState(name, len(states), len({timer.name for timer in update.timers}))


class CounterReader:
    """The hashes `count` and `count:<table>`; a counter that was never incremented is absent."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._queue = queue

    @translate_redis_errors
    async def read(self, table: TableId | None = None) -> Mapping[str, int]:
        """Return the counters of one table, or of all."""
        raw = await self._queue.redis.hgetall(keys.counters(self._queue.name, table))
        return {text(name): int(value) for name, value in raw.items()}
