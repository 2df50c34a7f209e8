"""Queue maintenance: preemption for urgent jobs, audit and repair, slot count, and the Redis log.

All of it is safe to run in several deciders at once: each step is one script, and a second run finds nothing to do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import structlog

from decider.background.periodic import run_periodically
from shared.queue.admin_commands import Preempted, Preemption
from shared.queue.settings import QueueSettings

PREEMPT_EVERY_S = 2.0
"""Below the patience of a waiting job (3 s); a check costs the server some 30 microseconds."""

AUDIT_EVERY_S = 600.0
"""An audit reads every job; ten minutes is far below what a lost job could cost."""

SLOTS_EVERY_S = 10.0
"""Actors change within minutes; a check costs one round trip."""

LOG_EVERY_S = 5.0
"""Well below the time between two crashes of a server; a check costs one round trip."""

FAILED = "queue_maintenance_failed"

log = structlog.get_logger()


class QueueAdminPort(Protocol):
    """Queue administration, as used here."""

    async def preempt(self, rules: Preemption) -> tuple[Preempted, ...]:
        """Ask running jobs to yield."""

    async def audit(self) -> object:
        """Repair inconsistencies."""

    async def settings(self) -> QueueSettings:
        """Return the queue's settings."""

    async def configure(self, settings: Mapping[str, int]) -> None:
        """Write the given settings."""

    async def recheck_throttled(self) -> object:
        """Re-evaluate tables that a quota throttles."""

    async def delete_old_libraries(self) -> int:
        """Drop scripts of other releases."""

    async def rewrite_aof(self) -> bool:
        """Rewrite the append-only file of a restarted server."""


class QueueMaintenance:
    """Runs preemption, audit, slot count and log rewrite, each at its own interval."""

    def __init__(
        self, levers: QueueAdminPort, slots: Callable[[], Awaitable[int]], rules: Preemption | None = None
    ) -> None:
        """`slots` returns the current slots of all actors, the base of quotas."""
        self._levers = levers
        self._slots = slots
        self._rules = rules or Preemption()
        self._slots_seen: int | None = None

    async def run(self) -> None:
        """Run until cancelled; an unavailable Redis is retried."""
        async with asyncio.TaskGroup() as group:
            group.create_task(run_periodically(self.tidy, every_s=AUDIT_EVERY_S, failed=FAILED, task="audit"))
            group.create_task(run_periodically(self.tell_slots, every_s=SLOTS_EVERY_S, failed=FAILED, task="slots"))
            group.create_task(run_periodically(self.rewrite_aof, every_s=LOG_EVERY_S, failed=FAILED, task="log"))
            group.create_task(run_periodically(self.preempt, every_s=PREEMPT_EVERY_S, failed=FAILED, task="preempt"))

    async def tell_slots(self) -> None:
        """Write the slot count to the queue if it changed; without actors, the last count stays.

        A count that is new to this decider readmits tables that a quota of the old one throttled. The first call also
        writes the schema version.
        """
        slots, told = await self._slots(), (await self._levers.settings()).slots
        given = {"slots": slots} if slots not in (0, told) else {}
        if given or self._slots_seen is None:
            await self._levers.configure(given)
        known = slots or told
        if known != self._slots_seen:
            await self._levers.recheck_throttled()
            self._slots_seen = known

    async def tidy(self) -> None:
        """Audit the queue, and drop scripts of other releases."""
        await self._levers.audit()
        await self._levers.delete_old_libraries()

    async def rewrite_aof(self) -> None:
        """Rewrite the append-only file of a restarted server, so that it holds current data only."""
        if await self._levers.rewrite_aof():
            log.info("redis_aof_rewritten")

    async def preempt(self) -> None:
        """Preempt a running job for each urgent job that has waited too long."""
        for one in await self._levers.preempt(self._rules):
            log.info("job_preempted", job=one.victim, waiting=one.waiting)
