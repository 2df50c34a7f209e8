"""Reads timers: the tables that have a due one, and their due timers; and takes one together with its consequences.

Timers are set by the ingest step, in the same script that changes the partitions they belong to; so a crash loses none,
and a timer that has changed since it was read is not taken.
"""

import secrets
from collections.abc import Mapping
from typing import Any

from decider.store.queue.traced_jobs import enqueuing
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from shared.queue import commands, keys
from shared.queue.decode import text
from shared.queue.limits import LEDGER_KEPT
from shared.queue.model import DecideOutcome, JobRequest, Timer
from shared.table import TableId


class TimerStore:
    """The timers of all tables of one queue: `due` orders the tables, `due:<table>` the timers of one."""

    def __init__(self, queue: AsyncQueueExecutor, *, ledger_kept: int = LEDGER_KEPT) -> None:
        self._queue = queue
        self._ledger_kept = ledger_kept

    @translate_redis_errors
    async def due_tables(self, now_ms: int, *, limit: int) -> tuple[TableId, ...]:
        """Return up to `limit` tables that have a timer which fires by now, the longest due first."""
        found: Any = await self._queue.redis.zrange(
            keys.due_tables(self._queue.name), "-inf", now_ms, byscore=True, offset=0, num=limit
        )
        return tuple(TableId(text(table)) for table in found)

    @translate_redis_errors
    async def due(self, table: TableId, now_ms: int, *, limit: int) -> tuple[Timer, ...]:
        """Return up to `limit` timers of a table that are due, the longest due first."""
        found: Any = await self._queue.redis.zrange(
            keys.timers(self._queue.name, table), "-inf", now_ms, byscore=True, offset=0, num=limit, withscores=True
        )
        return tuple(Timer(text(name), int(at)) for name, at in found)

    @translate_redis_errors
    async def all(self, table: TableId) -> dict[str, int]:
        """Return every timer of a table by name, with the time at which it fires."""
        found: Any = await self._queue.redis.zrange(keys.timers(self._queue.name, table), 0, -1, withscores=True)
        return {text(name): int(at) for name, at in found}

    @translate_redis_errors
    async def postpone(self, table: TableId, until_ms: int) -> None:
        """Defer a table's due timers; the next step of the table puts it back to its first timer."""
        await self._queue.redis.zadd(keys.due_tables(self._queue.name), {table: until_ms}, xx=True)

    @translate_redis_errors
    async def delete(self, table: TableId) -> None:
        """Delete the timers of a table that is no longer registered."""
        await self._queue.redis.unlink(keys.timers(self._queue.name, table))
        await self._queue.redis.zrem(keys.due_tables(self._queue.name), table)

    async def fire(
        self,
        table: TableId,
        timer: Timer,
        *,
        rearm_at_ms: int,
        job: JobRequest | None,
        decision: tuple[str, Mapping[str, int]],
    ) -> DecideOutcome:
        """Take a timer that fired, with its job and the decision's record and counters, in one step.

        It fires again at `rearm_at_ms` if the partition has a job already, or if no job is given (0: it does not fire
        again then). Nothing is written if it changed since it was read.
        """
        record, counters = decision
        with enqueuing(self._queue.name, (job,) if job else ()) as jobs:
            return await self._queue.run(
                commands.decide(
                    self._queue.name,
                    nonce=secrets.token_hex(16),
                    table=table,
                    timer=timer,
                    rearm_at_ms=rearm_at_ms,
                    job=next(iter(jobs), None),
                    record=record,
                    counters=counters,
                    ledger_kept=self._ledger_kept,
                )
            )
