"""Upkeep of the queue: its file, its scripts, its slots, preemption, the times of work windows, prices of budgets.

Each pass is one script, or repeats safely, so several deciders do no harm.
"""

from collections.abc import Awaitable, Callable

import structlog

from decider.background.runner import Schedule
from decider.store.queue.queue_admin import QueueAdmin
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import CommandRefused, translate_redis_errors
from decider.store.stored_values import milliseconds
from shared.policy.budgets import encode_prices
from shared.policy.work_windows import HeldWork
from shared.prices import Prices
from shared.queue import admin_commands, keys
from shared.queue.admin_commands import Preemption
from shared.queue.decode import text

AOF_EVERY_S = 1.0
"""A full disk may have room again after seconds; a check costs one round trip."""

LIBRARIES_EVERY_S = 600.0
"""A library of another release costs some memory and no time."""

log = structlog.get_logger()


class AofRewrite:
    """Rewrites the append-only file of a server that restarted or had no room, so that it holds current data only."""

    def __init__(self, admin: QueueAdmin) -> None:
        self.schedule = Schedule(AOF_EVERY_S, "queue_maintenance_failed")
        self._admin = admin
        self._refused = ""

    async def run_once(self) -> None:
        """Rewrite the file if that is due; a server may not allow it."""
        try:
            if await self._admin.rewrite_aof():
                log.info("redis_aof_rewritten")
        except CommandRefused as problem:
            self._refused = _reported(self._refused, problem, "the file is left as it is")


class LibraryCleanup:
    """Deletes the script libraries of releases that do not run any more."""

    def __init__(self, admin: QueueAdmin) -> None:
        self.schedule = Schedule(LIBRARIES_EVERY_S, "queue_maintenance_failed")
        self._admin = admin
        self._refused = ""

    async def run_once(self) -> None:
        """Delete the libraries of other releases that are no longer used; a server may not allow it."""
        try:
            await self._admin.delete_old_libraries()
        except CommandRefused as problem:
            self._refused = _reported(self._refused, problem, "old libraries stay")


def _reported(before: str, problem: CommandRefused, effect: str) -> str:
    """Log a refusal once, with its effect; return it."""
    if str(problem) != before:
        log.warning("redis_command_refused", error=str(problem), effect=effect)
    return str(problem)


SLOTS_EVERY_S = 10.0
"""Actors change within minutes; a check costs one round trip."""


class SlotCount:
    """Writes the slot count, which quotas are shares of, when it changes; without actors, the last count stays."""

    def __init__(self, admin: QueueAdmin, slots: Callable[[], Awaitable[int]]) -> None:
        """`slots` returns the current slots of all actors."""
        self.schedule = Schedule(SLOTS_EVERY_S, "queue_maintenance_failed")
        self._admin = admin
        self._slots = slots
        self._last: int | None = None

    async def run_once(self) -> None:
        """Write the slot count if it changed; the first pass also writes the schema version.

        A count that is new to this decider readmits tables that a quota of the old one throttled.
        """
        slots, stored = await self._slots(), (await self._admin.settings()).slots
        change = {"slots": slots} if slots not in (0, stored) else {}
        if change or self._last is None:
            await self._admin.configure(change)
        current = slots or stored
        if current != self._last:
            await self._admin.recheck_throttled()
            self._last = current


PREEMPTION_EVERY_S = 2.0
"""Below the longest wait of an urgent job (3 s); a check costs the server some 30 microseconds."""


class JobPreemption:
    """Has a running job yield its slot to one of a better band that has waited too long."""

    def __init__(self, admin: QueueAdmin) -> None:
        self.schedule = Schedule(PREEMPTION_EVERY_S, "queue_maintenance_failed")
        self._admin = admin

    async def run_once(self) -> None:
        """Preempt a running job for each job of a better band that has waited too long."""
        for one in await self._admin.preempt(Preemption()):
            log.info("job_preempted", job=one.victim, waiting=one.waiting)


WINDOWS_EVERY_S = 6 * 3_600.0
"""The queue knows the times of two weeks; new ones are needed before the last of them."""


class WorkWindowTimes:
    """Renews in the queue, whose scripts know no zones, when work windows open and close, and the prices of budgets.

    A window that changes meanwhile is left alone.
    """

    def __init__(self, queue: AsyncQueueExecutor, prices: Prices | None = None) -> None:
        self.schedule = Schedule(WINDOWS_EVERY_S, "work_windows_failed")
        self._queue = queue
        self._prices = prices

    @translate_redis_errors
    async def run_once(self) -> int:
        """Set the prices of budgets, and renew the times of each table; return how many have a window."""
        queue, tables = self._queue, 0
        await queue.run(admin_commands.set_prices(queue.name, encode_prices(self._prices)))
        now_ms = milliseconds(await queue.redis.time())
        async for table, found in queue.redis.hscan_iter(keys.work_windows(queue.name)):
            tables += 1
            before = text(found)
            after = HeldWork.of_queue(before).in_queue(now_ms)
            if after != before:
                await queue.run(admin_commands.set_window(queue.name, text(table), after, expected=before))
        return tables
