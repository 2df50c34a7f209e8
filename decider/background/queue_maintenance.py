"""The queue is looked after: urgent jobs that wait too long get a slot, and what a torn log left behind is mended.

Both are safe to do from several deciders at once: each step is one script, and a second one finds nothing to do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import structlog

from decider.background.periodic import run_periodically
from shared.queue.admin_commands import Preempted, Preemption
from shared.queue.settings import QueueSettings

PREEMPT_EVERY_S = 2.0
"""Below the patience of a waiting job (3 s); a look costs the server some 30 microseconds."""

AUDIT_EVERY_S = 600.0
"""An audit reads every job; ten minutes is far below what a lost job could cost."""

SLOTS_EVERY_S = 10.0
"""Actors come and go by minutes; a look costs one round trip."""

LOG_EVERY_S = 5.0
"""Well below the time between two crashes of a server; a look costs one round trip."""

FAILED = "queue_maintenance_failed"

log = structlog.get_logger()


class QueueAdminPort(Protocol):
    """The levers that are used here."""

    async def preempt(self, rules: Preemption) -> tuple[Preempted, ...]:
        """Tell running jobs to yield."""

    async def audit(self) -> object:
        """Mend what differs."""

    async def settings(self) -> QueueSettings:
        """Return the queue's settings."""

    async def configure(self, settings: Mapping[str, int]) -> None:
        """Write those settings that are given."""

    async def recheck_throttled(self) -> object:
        """Look again at whom a share of the slots holds back."""

    async def delete_old_libraries(self) -> int:
        """Forget scripts of other releases."""

    async def rewrite_aof(self) -> bool:
        """Have a server that has started write its log anew."""


class QueueMaintenance:
    """Preempts and audits, each in its own rhythm."""

    def __init__(
        self, levers: QueueAdminPort, slots: Callable[[], Awaitable[int]], rules: Preemption | None = None
    ) -> None:
        """`slots` tells how many slots the queue's actors have at the moment: quotas are shares of them."""
        self._levers = levers
        self._slots = slots
        self._rules = rules or Preemption()
        self._slots_seen: int | None = None

    async def run(self) -> None:
        """Look after the queue until cancelled; a Redis that is away is waited for."""
        async with asyncio.TaskGroup() as group:
            group.create_task(run_periodically(self.tidy, every_s=AUDIT_EVERY_S, failed=FAILED, duty="audit"))
            group.create_task(run_periodically(self.tell_slots, every_s=SLOTS_EVERY_S, failed=FAILED, duty="slots"))
            group.create_task(run_periodically(self.rewrite_aof, every_s=LOG_EVERY_S, failed=FAILED, duty="log"))
            group.create_task(run_periodically(self.preempt, every_s=PREEMPT_EVERY_S, failed=FAILED, duty="preempt"))

    async def tell_slots(self) -> None:
        """Tell the queue how many slots there are if it does not know; without actors, the last number stands.

        Whoever told it, a number that is new here lets in again whom a share of the old one held back. The first call
        tells the queue of this release's schema, too.
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
        """Mend what differs, and forget what other releases left."""
        await self._levers.audit()
        await self._levers.delete_old_libraries()

    async def rewrite_aof(self) -> None:
        """Leave nothing in the log of a server that has started but what is in force."""
        if await self._levers.rewrite_aof():
            log.info("redis_aof_rewritten")

    async def preempt(self) -> None:
        """Give each urgent job that has waited for too long the prospect of a slot."""
        for one in await self._levers.preempt(self._rules):
            log.info("job_preempted", job=one.victim, waiting=one.waiting)
