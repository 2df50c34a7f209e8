"""Preemption: a job of a better band that has waited too long makes a running job yield its slot."""

import structlog

from decider.background.runner import Schedule
from decider.store.queue.queue_admin import QueueAdmin
from shared.queue.admin_commands import Preemption

EVERY_S = 2.0
"""Below the longest wait of an urgent job (3 s); a check costs the server some 30 microseconds."""

log = structlog.get_logger()


class JobPreemption:
    """Preempts running jobs by the queue's rules; each pass is one script, so several deciders do no harm."""

    def __init__(self, admin: QueueAdmin, rules: Preemption | None = None) -> None:
        self.schedule = Schedule(EVERY_S, "queue_maintenance_failed")
        self._admin = admin
        self._rules = rules or Preemption()

    async def run_once(self) -> None:
        """Preempt a running job for each job of a better band that has waited too long."""
        for one in await self._admin.preempt(self._rules):
            log.info("job_preempted", job=one.victim, waiting=one.waiting)
