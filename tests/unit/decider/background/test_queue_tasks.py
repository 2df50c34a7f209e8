"""The care of the queue outlasts a Redis that is away, does all of its duties, and tells only what is new."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from decider.background.preemption import JobPreemption
from decider.background.queue_audit import QueueAudit
from decider.background.redis_upkeep import AofRewrite, LibraryCleanup
from decider.background.runner import BackgroundTasks
from decider.background.slot_count import SlotCount
from decider.store.queue.queue_admin import QueueAdmin
from shared.errors import RetryableError
from shared.queue.admin_commands import Preempted, Preemption
from shared.queue.model import JobId
from shared.queue.settings import QueueSettings
from tests.support.time_limits import scaled


class FakeAdmin:
    """Fails at first, then notes what is asked of it, and ends the test."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.all = asyncio.Event()

    async def preempt(self, rules: Preemption) -> tuple[Preempted, ...]:
        self._note("preempt")
        return (Preempted(JobId("waits"), JobId("runs")),)

    async def audit(self) -> object:
        self._note("audit")
        return None

    async def slots(self) -> int:
        return 3

    async def settings(self) -> QueueSettings:
        return QueueSettings()

    async def configure(self, given: Mapping[str, int]) -> None:
        assert given == {"slots": 3}
        self._note("configure")

    async def recheck_throttled(self) -> object:
        return None

    async def rewrite_aof(self) -> bool:
        self._note("log")
        return True

    async def delete_old_libraries(self) -> int:
        self._note("drop")
        return 0

    def _note(self, name: str) -> None:
        self.asked.append(name)
        if self.asked.count(name) == 1:
            raise RetryableError("away")
        if {one for one in self.asked if self.asked.count(one) > 1} >= {"audit", "preempt", "configure", "log", "drop"}:
            self.all.set()


async def test_a_redis_that_is_away_ends_no_duty() -> None:
    admin: Any = FakeAdmin()
    tasks: dict[str, Any] = {
        "preemption": JobPreemption(admin),
        "queue_audit": QueueAudit(admin),
        "slot_count": SlotCount(admin, admin.slots),
        "aof_rewrite": AofRewrite(admin),
        "library_cleanup": LibraryCleanup(admin),
    }
    for task in tasks.values():
        task.schedule = replace(task.schedule, every_s=0.001)
    background = BackgroundTasks(tasks)
    background.start()
    await asyncio.wait_for(admin.all.wait(), scaled(10))
    assert background.dead == ()
    await background.close()
    assert "drop" in admin.asked


class ReportedEvent(FakeAdmin):
    """A queue that keeps what it is told; `there` slots are those of the actors, `fails` the next reads shares."""

    def __init__(self, reported: int) -> None:
        super().__init__()
        self.reported, self.there, self.fails = reported, 0, 0

    async def slots(self) -> int:
        return self.there

    async def settings(self) -> QueueSettings:
        return QueueSettings(slots=self.reported)

    async def configure(self, given: Mapping[str, int]) -> None:
        self.asked.append(f"configure {dict(given)}")
        self.reported = given.get("slots", self.reported)

    async def recheck_throttled(self) -> object:
        self.asked.append("recheck_throttled")
        if self.fails:
            self.fails -= 1
            raise RetryableError("away")
        return None

    async def asked_by(self, admin: SlotCount) -> list[str]:
        self.asked.clear()
        await admin.run_once()
        return list(self.asked)


async def test_slots_are_reported_when_they_are_new_and_shares_read_whoever_told_them() -> None:
    queue = ReportedEvent(reported=4)
    admin = SlotCount(cast("QueueAdmin", queue), queue.slots)
    assert await queue.asked_by(admin) == ["configure {}", "recheck_throttled"], "the schema is told once, and no slots"
    assert await queue.asked_by(admin) == []
    queue.there = 4
    assert await queue.asked_by(admin) == []
    queue.there = 6
    assert await queue.asked_by(admin) == ["configure {'slots': 6}", "recheck_throttled"]
    queue.there = queue.reported = 7
    assert await queue.asked_by(admin) == ["recheck_throttled"], "another decider has told it"
    queue.there = 0
    assert await queue.asked_by(admin) == [], "the last number stands"


async def test_shares_that_could_not_be_read_are_read_again() -> None:
    queue = ReportedEvent(reported=0)
    queue.there, queue.fails = 6, 1
    admin = SlotCount(cast("QueueAdmin", queue), queue.slots)
    with pytest.raises(RetryableError):
        await admin.run_once()
    assert "recheck_throttled" in await queue.asked_by(admin)
    assert await queue.asked_by(admin) == []
