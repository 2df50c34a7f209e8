"""The one step in which a table's state moves: cells, cursor, jobs, timers and ledger together, or nothing.

The script compares the cursor first, so of two deciders that folded the same commits one writes and the other tries
again. A script carries a bounded number of jobs; the others are queued before it moves the cursor, so that a crash in
between repeats the work instead of losing it. The cells of a large table are staged under a name of their own before,
and take the place of the old ones in the step.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from decider.store.queue_executor import AsyncQueueExecutor
from decider.store.redis_errors import translate_redis_errors
from decider.store.table_state import TableState
from shared.queue import commands, keys
from shared.queue.commands import LEDGER_KEPT
from shared.queue.model import NO_TABLE_STATE, ExpectedTableState, JobRequest, StagedState, Timer
from shared.table import TableId

JOBS_PER_INGEST = 100
"""Jobs one ingest may carry (the script's bound)."""

CELLS_INLINE = 1_000
"""Cells of a recount that travel with the step itself; more are staged, so that no script lasts longer for them."""

STAGED_TTL_S = 600
"""How long staged cells wait for their step, which follows at once; what a crash leaves is gone after ten minutes."""


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """What is written: encoded cells (None: to be deleted), jobs, ledger lines with the index of their job, counters.

    reset: all cells and timers of the table are dropped first. ledger_kept: records of the table that stay at most.
    """

    cells: Mapping[str, str | None]
    jobs: Sequence[JobRequest] = ()
    ledger: Sequence[tuple[str, int]] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    reset: bool = False
    ledger_kept: int = LEDGER_KEPT
    timers: Sequence[Timer] = ()


async def ingest(
    queue: AsyncQueueExecutor, table: TableId, *, old: TableState | None, new: TableState, update: StateUpdate
) -> bool:
    """Move a table from one cursor to the next; False if somebody else moved it first, and nothing was written.

    Raises RetryableError where Redis does not answer; whether it was done is then seen by the cursor.
    """
    for spec in update.jobs[JOBS_PER_INGEST:]:
        await queue.run(commands.enqueue(queue.name, spec))
    reset: bool | StagedState = update.reset
    if update.reset and len(update.cells) > CELLS_INLINE:
        reset = await _stage(queue, update)
        update = replace(update, cells={}, timers=())
    result = await queue.run(
        commands.ingest(
            queue.name,
            table=table,
            expected_version=old.version if old else -1,
            expected_state=ExpectedTableState(old.policy, str(old.rebuilds), old.digest) if old else NO_TABLE_STATE,
            state_fields=new.encode(),
            cells=update.cells,
            reset=reset,
            jobs=update.jobs[:JOBS_PER_INGEST],
            ledger=[(line, index if index < JOBS_PER_INGEST else -1) for line, index in update.ledger],
            counters=update.counters,
            ledger_kept=update.ledger_kept,
            timers=update.timers,
        )
    )
    return result.applied


@translate_redis_errors
async def _stage(queue: AsyncQueueExecutor, update: StateUpdate) -> StagedState:
    """Write the cells and timers of a recount beside the old ones; return what the step will find there."""
    name = secrets.token_hex(16)
    cells, timers = keys.staged_cells(queue.name, name), keys.staged_timers(queue.name, name)
    states = [(cell, state) for cell, state in update.cells.items() if state is not None]
    for start in range(0, len(states), CELLS_INLINE):
        async with queue.redis.pipeline(transaction=True) as pipe:
            pipe.hset(cells, mapping=dict(states[start : start + CELLS_INLINE]))
            pipe.expire(cells, STAGED_TTL_S)
            await pipe.execute()
    for start in range(0, len(update.timers), CELLS_INLINE):
        some = update.timers[start : start + CELLS_INLINE]
        async with queue.redis.pipeline(transaction=True) as pipe:
            pipe.zadd(timers, {timer.name: timer.fires_at_ms for timer in some})
            pipe.expire(timers, STAGED_TTL_S)
            await pipe.execute()
    return StagedState(name, len(states), len({timer.name for timer in update.timers}))
