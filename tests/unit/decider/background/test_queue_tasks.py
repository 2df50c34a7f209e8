"""The care of the queue outlasts a Redis that is away; advice that was applied is judged once."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from decider.background.applied_advice import CANCELLED_WAITING, ENDED_WITHOUT, after_cancel, after_run
from decider.background.queue_upkeep import AofRewrite, JobPreemption, LibraryCleanup, SlotCount
from decider.background.runner import BackgroundTasks, PeriodicCall
from decider.store.queue.queue_admin import QueueAdmin
from decider.store.tables.advice_records import Advice, AdviceStatus, Evidence, ReplayedCost
from services.decider.build_background import AUDIT
from shared.errors import RetryableError
from shared.queue.admin_commands import Preempted, Preemption
from shared.queue.model import JobId
from shared.queue.settings import QueueSettings
from shared.table import TableId
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
        "queue_audit": PeriodicCall(AUDIT, admin.audit),
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


COST = ReplayedCost(1.0, 1.0, 1.0, 1)
APPLYING = Advice(
    *(TableId("t"), 5, {"lakewright.fan-in": "4"}, "", "Set it.", Evidence(0, 9, 10, 2.0, 1.0, COST, COST, 0.5)),
    status=AdviceStatus.APPLYING,
    job="t.set_properties",
)


@pytest.mark.parametrize(
    ("run", "version"),
    [
        ({"outcome": "deleted", "result": {"measured": {"changed": 2}, "versions": [81], "seen_version": 80}}, 81),
        # A request that joined the running job brings it back: the table is altered all the same.
        ({"outcome": "requeued", "result": {"measured": {"changed": 2}, "versions": [81], "seen_version": 80}}, 81),
        ({"outcome": "deleted", "result": {"measured": {"changed": 0}, "versions": [], "seen_version": 80}}, 80),
        ({"outcome": "deleted", "result": {"measured": {"changed": 0}}}, -1),
    ],
)
def test_a_run_after_which_the_table_has_the_properties_applies_the_advice(run: dict, version: int) -> None:
    now = after_run(APPLYING, run | {"result": json.dumps(run["result"])}, 77)
    assert now is not None
    assert (now.status, now.applied_version, now.changed_ms, now.problem) == (AdviceStatus.APPLIED, version, 77, "")


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        ({"outcome": "quarantined", "result": "", "error": "no permission"}, "no permission"),
        ({"outcome": "deleted", "result": json.dumps({"measured": {}, "left_out": "changed"}), "error": ""}, "changed"),
        ({"outcome": "deleted", "result": "{"}, ENDED_WITHOUT),
        ({"outcome": "deleted", "result": "[]"}, ENDED_WITHOUT),
    ],
)
def test_a_run_that_ended_without_leaves_the_advice_open_with_the_reason(run: dict, problem: str) -> None:
    now = after_run(APPLYING, run, 77)
    assert now is not None
    assert (now.status, now.job, now.problem, now.changed_ms) == (AdviceStatus.OPEN, "", problem, 0)


@pytest.mark.parametrize("outcome", ["requeued", "delayed"])
def test_a_run_that_is_tried_again_decides_nothing(outcome: str) -> None:
    assert after_run(APPLYING, {"outcome": outcome, "result": "", "error": "throttled"}, 77) is None


def test_a_cancelled_job_opens_the_advice_that_waited_for_it_and_no_other() -> None:
    opened = after_cancel(APPLYING, APPLYING.job)
    assert opened is not None
    assert (opened.status, opened.job, opened.problem, opened.changed_ms) == (
        AdviceStatus.OPEN,
        "",
        CANCELLED_WAITING,
        0,
    )
    assert after_cancel(APPLYING, "t.another.set_properties") is None
    assert after_cancel(replace(APPLYING, status=AdviceStatus.APPLIED), APPLYING.job) is None
