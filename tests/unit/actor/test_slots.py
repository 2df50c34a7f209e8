"""An actor's slots: many beside each other or one alone, and one call that ends a job and claims the next."""

import json
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.engines import EngineSet
from actor.leased_run import LeasedRun
from actor.ports import EngineDied
from actor.slot_gate import NS_PER_MS, SlotGate, SlotTime
from actor.worker import ActorContext, Worker, WorkerSettings
from shared.errors import LeaseLost, RetryableError
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from tests.support.fake_queue import FakeQueue
from tests.support.memory_engine import MemoryEngine
from tests.support.time_limits import scaled
from tests.support.waiting import until
from tests.support.worker_world import PAYLOAD, Heart


def test_while_one_slot_is_alone_no_other_enters() -> None:
    gate = SlotGate()
    assert gate.enter()
    with gate.exclusive(lambda: False) as is_alone:
        assert is_alone
        assert not gate.enter()
    assert gate.enter()


def test_who_wants_to_be_alone_waits_for_those_who_are_at_work() -> None:
    gate, inside = SlotGate(), threading.Event()
    assert gate.enter()
    assert gate.enter()

    def alone() -> None:
        with gate.exclusive(lambda: False) as is_alone:
            assert is_alone
            inside.set()

    thread = threading.Thread(target=alone)
    thread.start()
    until("no one enters any more", lambda: not _could_enter(gate))
    assert not inside.is_set(), "the other one is still at work"
    gate.leave()
    assert inside.wait(scaled(10))
    thread.join(scaled(10))
    assert gate.enter()


def _could_enter(gate: SlotGate) -> bool:
    if gate.enter():
        gate.leave()
        return True
    return False


def test_two_who_want_to_be_alone_are_so_one_after_the_other() -> None:
    gate, lock, inside, most = SlotGate(), threading.Lock(), [0], [0]
    asked = [threading.Event(), threading.Event()]

    def alone(me: int) -> None:
        assert gate.enter()

        def give_up() -> bool:
            asked[me].set()
            return False

        with gate.exclusive(give_up) as is_alone:
            assert is_alone
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            assert asked[1 - me].wait(scaled(10)), "the other one waits to be alone by now"
            with lock:
                inside[0] -= 1
        gate.leave()

    assert gate.enter()
    threads = [threading.Thread(target=alone, args=(me,)) for me in range(2)]
    threads[0].start()
    until("the first one waits", asked[0].is_set)
    # It wants to be alone, so that the second one could not enter: it is let in as one who entered before.
    gate._waiting_for_exclusive -= 1
    threads[1].start()
    until("the second one waits", asked[1].is_set)
    gate._waiting_for_exclusive += 1
    gate.leave()
    for thread in threads:
        thread.join(scaled(10))
        assert not thread.is_alive()
    assert most[0] == 1
    assert gate.enter()


def test_who_gives_up_or_fails_while_waiting_closes_the_gate_to_no_one() -> None:
    gate = SlotGate()
    assert gate.enter()
    assert gate.enter()
    with gate.exclusive(lambda: True) as is_alone:
        assert not is_alone

    def lost() -> bool:
        raise LeaseLost("gone")

    with pytest.raises(LeaseLost), gate.exclusive(lost):
        pytest.fail("a lost lease gives no right to run")
    assert gate.enter()


def test_while_one_is_alone_another_who_wants_to_be_alone_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actor.slot_gate.POLL_S", 0.001)
    gate = SlotGate()
    assert gate.enter()
    checks = [False, False, True]  # The second gives up at its third check.
    with gate.exclusive(lambda: False) as first:
        gate._active += 1  # As if it had entered before the first one wanted to be alone.
        with gate.exclusive(lambda: checks.pop(0)) as second:
            assert (first, second) == (True, False)
    assert checks == []


CLAIM, FINISH, BOTH = ScriptName.CLAIM, ScriptName.FINISH, ScriptName.FINISH_AND_CLAIM


class Slot:
    """A worker, as many jobs as a test wants, and what was called."""

    def __init__(self, jobs: int) -> None:
        self.jobs, self.given = jobs, 0
        self.engine = MemoryEngine([100_000] * 8)
        self.heart = Heart()
        self.stopping = threading.Event()
        self.actor = ActorContext("a-1", self.heart, self.stopping)  # type: ignore[arg-type]
        self.queue = FakeQueue(self.answer)
        self.during_job: Callable[[], object] = lambda: None
        self.outcome = "deleted"
        self.lost_replies: list[float] = []
        self.losing = 0
        self.engine.before_commit = lambda: self.during_job()

    def answer(self, command: Command) -> Any:
        if command.script is BOTH:
            if self.losing:
                self.losing -= 1
                self.lost_replies.append(time.monotonic())
                raise RetryableError("no answer")
            claims = "[]" if self.outcome == "STALE" else self.claims()
            outcome, self.outcome = self.outcome, "deleted"
            return f"{outcome} {claims}"
        return self.claims() if command.script is CLAIM else self.outcome

    def claims(self) -> str:
        if self.given == self.jobs:
            self.stopping.set()  # Nothing is ready any more: the test is over.
            return "[]"
        self.given += 1
        self.engine.append([100_000] * 8)
        job = [f"j-{self.given}", "t-1", "{}", "compact", "default", "1", "5", str(self.given), "", "0", "1", "1"]
        return json.dumps([[*job, "0", "0", PAYLOAD.encode(), "0", "0", "0", ""]])

    def run(self) -> list[ScriptName]:
        Worker(EngineSet([self.engine]), self.queue, self.actor, WorkerSettings(idle_s=0.001)).run()  # type: ignore[arg-type]
        return self.queue.scripts()


def test_a_slot_that_goes_on_ends_a_job_and_claims_the_next_one_in_one_call() -> None:
    assert Slot(3).run() == [CLAIM, BOTH, BOTH, BOTH]


def test_a_slot_that_stops_or_drains_claims_nothing_with_the_end_of_its_job() -> None:
    stopped, drained = Slot(2), Slot(2)
    stopped.during_job = stopped.stopping.set
    assert stopped.run() == [CLAIM, FINISH]

    def drain() -> None:
        drained.actor.draining.set()
        threading.Timer(0.01, drained.stopping.set).start()

    drained.during_job = drain
    assert drained.run() == [CLAIM, FINISH]


def test_a_slot_leaves_its_place_to_a_job_that_has_to_run_alone() -> None:
    """It would otherwise never be alone where slots always find another job."""
    slot, is_alone = Slot(2), threading.Event()
    waits = threading.Thread(target=lambda: wait_alone(slot, is_alone))

    def begin_to_wait() -> None:
        if not waits.ident:
            waits.start()
            until("the other slot waits", lambda: slot.actor.gate.is_exclusive_awaited)

    slot.during_job = begin_to_wait
    scripts = slot.run()
    waits.join()
    assert is_alone.is_set()
    assert scripts[:2] == [CLAIM, FINISH]


def wait_alone(slot: Slot, is_alone: threading.Event) -> None:
    assert slot.actor.gate.enter()
    with slot.actor.gate.exclusive(lambda: False) as alone:
        assert alone
        is_alone.set()
    slot.actor.gate.leave()


def test_a_dead_engine_claims_nothing_with_the_end_of_its_last_job() -> None:
    slot = Slot(2)

    def die() -> None:
        slot.engine.alive = False

    slot.engine.after_commit = die
    with pytest.raises(EngineDied):
        slot.run()
    assert slot.queue.scripts() == [CLAIM, FINISH]


def test_the_next_lease_counts_from_before_the_first_try() -> None:
    """Any try may have claimed the job: a deadline that counts from the last one would lie behind the server's."""
    slot = Slot(2)
    slot.losing = 2
    slot.run()
    _, (_, second) = slot.heart.held
    assert second <= slot.lost_replies[0]
    tries = [one for one in slot.queue.sent if one.script is BOTH][:3]
    assert tries[0].args == tries[1].args == tries[2].args, "a repetition is recognized by its nonce"


def test_after_a_refused_end_the_slot_asks_for_itself() -> None:
    slot = Slot(2)
    slot.outcome = "STALE"
    assert slot.run() == [CLAIM, BOTH, CLAIM, BOTH]


def test_where_nothing_is_ready_the_slot_waits_before_it_asks_again() -> None:
    slot = Slot(1)
    waited: list[float | None] = []
    wait = slot.stopping.wait

    def note(timeout: float | None = None) -> bool:
        waited.append(timeout)
        return wait(timeout)

    slot.stopping.wait = note  # type: ignore[method-assign]
    assert slot.run() == [CLAIM, BOTH]
    assert waited == [0.001]


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def runs(count: int) -> list[LeasedRun]:
    return [cast(LeasedRun, SimpleNamespace(core_ms=0)) for _ in range(count)]


def test_each_millisecond_of_the_slots_cores_is_one_jobs() -> None:
    clock, three = Clock(), runs(3)
    slot_time = SlotTime(Fraction(3, 2), clock)

    for step_ns in (7 * NS_PER_MS, 5 * NS_PER_MS + 333_333, NS_PER_MS // 3):
        with slot_time.shared_by(three):
            clock.ns += step_ns

    assert sum(run.core_ms for run in three) == clock.ns * 3 // 2 // NS_PER_MS
    assert max(run.core_ms for run in three) - min(run.core_ms for run in three) <= 3


def test_a_job_that_is_over_gets_no_more_and_time_between_steps_counts() -> None:
    clock, two = Clock(), runs(2)
    slot_time = SlotTime(Fraction(2), clock)
    clock.ns = NS_PER_MS
    with slot_time.shared_by(two):
        clock.ns += NS_PER_MS
    clock.ns += NS_PER_MS
    with slot_time.shared_by(two[1:]):
        pass

    assert [run.core_ms for run in two] == [2, 4]


def test_a_step_that_fails_is_paid_for_too() -> None:
    clock, (run,) = Clock(), runs(1)
    slot_time = SlotTime(Fraction(1), clock)

    def fail() -> None:
        with slot_time.shared_by([run]):
            clock.ns += 9 * NS_PER_MS
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert run.core_ms == 9
