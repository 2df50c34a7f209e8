"""Slot count: the queue knows how many slots all actors have together, which quotas are shares of."""

from collections.abc import Awaitable, Callable

from decider.background.runner import Schedule
from decider.store.queue.queue_admin import QueueAdmin

EVERY_S = 10.0
"""Actors change within minutes; a check costs one round trip."""


class SlotCount:
    """Writes the slot count to the queue when it changes; without actors, the last count stays."""

    def __init__(self, admin: QueueAdmin, slots: Callable[[], Awaitable[int]]) -> None:
        """`slots` returns the current slots of all actors."""
        self.schedule = Schedule(EVERY_S, "queue_maintenance_failed")
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
