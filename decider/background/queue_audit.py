"""Queue audit: recomputes the queue's indexes from its jobs and repairs what differs."""

from decider.background.runner import Schedule
from decider.store.queue.queue_admin import QueueAdmin

EVERY_S = 600.0
"""An audit reads every job; ten minutes is far below what a lost job could cost."""


class QueueAudit:
    """Audits the queue; the scripts repair atomically, so several deciders do no harm."""

    def __init__(self, admin: QueueAdmin) -> None:
        self.schedule = Schedule(EVERY_S, "queue_maintenance_failed")
        self._admin = admin

    async def run_once(self) -> None:
        """Audit the whole queue once."""
        await self._admin.audit()
