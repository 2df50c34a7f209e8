"""The care of the queue outlasts a Redis that is away, and does both of its duties."""

import asyncio

import pytest

from decider.duties import queue_care
from decider.duties.queue_care import QueueCare
from shared.errors import RetryableError
from shared.queue.model import JobId, QueueSettings
from shared.queue.steering import Preemption, Revoked


class Levers:
    """Fails at first, then notes what is asked of it, and ends the test."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.both = asyncio.Event()

    async def preempt(self, rules: Preemption) -> tuple[Revoked, ...]:
        self._note("preempt")
        return (Revoked(JobId("waits"), JobId("runs")),)

    async def audit(self) -> object:
        self._note("audit")
        return None

    async def slots(self) -> int:
        return 3

    async def configure(self, settings: QueueSettings) -> None:
        assert settings.slots == 3
        self.asked.append("configure")

    async def drop_old_scripts(self) -> int:
        self.asked.append("drop")
        return 0

    def _note(self, name: str) -> None:
        self.asked.append(name)
        if self.asked.count(name) == 1:
            raise RetryableError("away")
        if {one for one in self.asked if self.asked.count(one) > 1} - {"configure", "drop"} == {"audit", "preempt"}:
            self.both.set()


def test_a_redis_that_is_away_ends_neither_duty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_care, "PREEMPT_EVERY_S", 0.001)
    monkeypatch.setattr(queue_care, "AUDIT_EVERY_S", 0.001)
    monkeypatch.setattr(queue_care, "SLOTS_EVERY_S", 0.001)

    async def live() -> None:
        levers = Levers()
        task = asyncio.create_task(QueueCare(levers, levers.slots).run())
        await asyncio.wait_for(levers.both.wait(), 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert "configure" in levers.asked
        assert "drop" in levers.asked

    asyncio.run(live())
