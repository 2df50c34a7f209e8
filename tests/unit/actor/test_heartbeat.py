"""Leases and the fence before a commit: asked of the queue each time, never later than the actor's own deadline."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from actor.heartbeat import Heartbeat, LeaseTimes
from actor.lease import Lease
from shared.errors import LeaseLost, PermanentError, RetryableError
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from shared.queue.model import Band, Claim, JobId, JobKey, StopReason, Token
from tests.support.fake_queue import FakeClock, FakeQueue
from tests.support.waiting import until

TIMES = LeaseTimes(lease_s=60.0, interval_s=5.0, margin_s=10.0, stop_grace_s=30.0)


class World:
    """A heartbeat on a queue that answers each beat after `takes_s` with the next of `replies`, the last for ever."""

    def __init__(self, *replies: Any, takes_s: float = 0.0) -> None:
        self.clock = FakeClock()
        self.takes_s = takes_s
        self.replies = list(replies or ["OK"])
        self.queue = FakeQueue(self.answer)
        self.heart = Heartbeat(self.queue, "a-1", TIMES, self.clock)
        self.heart._closing = _Pause(self.clock)

    def answer(self, transition: Command) -> Any:
        self.clock.advance(self.takes_s)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return [reply] * ((len(transition.args) - 1) // 3)


class _Pause:
    """Stands for the event that ends the heartbeat: waiting takes the fake clock's time, not ours."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.is_set = False

    def wait(self, seconds: float) -> bool:
        self.clock.advance(seconds)
        return self.is_set


def test_the_local_deadline_lies_a_margin_before_the_end_of_the_lease() -> None:
    assert World().heart.valid_until_s(100.0) == 150.0


def test_a_claimed_lease_counts_from_the_moment_before_the_claim_was_sent() -> None:
    world = World()
    world.clock.now = 30.0  # The claim was sent at 0 and answered late.
    lease = world.heart.track(CLAIM, sent_at_s=0.0)
    world.clock.now = 49.9
    lease.check()
    world.clock.now = 50.0
    with pytest.raises(LeaseLost):
        lease.check()


def test_a_renewed_lease_counts_from_the_moment_before_the_heartbeat_was_sent() -> None:
    world = World(takes_s=20.0)
    lease = world.heart.track(CLAIM, sent_at_s=0.0)
    world.heart.revalidate(lease)
    world.clock.now = 49.9
    lease.check()
    world.clock.now = 50.0
    with pytest.raises(LeaseLost):
        lease.check()


def test_each_confirmation_asks_the_queue_however_fresh_the_lease_is() -> None:
    world = World()
    lease = world.heart.track(CLAIM, sent_at_s=0.0)
    world.heart.revalidate(lease)
    world.heart.revalidate(lease)
    assert world.queue.scripts() == [ScriptName.HEARTBEAT] * 2
    assert world.queue.sent[0].args == (60_000, 0, "j-1", 7, "{}")


def test_a_job_that_the_queue_has_given_away_may_not_commit_although_the_local_deadline_is_far() -> None:
    world = World("LOST")
    lease = world.heart.track(CLAIM, sent_at_s=0.0)
    with pytest.raises(LeaseLost, match="with another actor"):
        world.heart.revalidate(lease)


def test_past_the_local_deadline_nothing_is_confirmed_although_the_queue_would_renew() -> None:
    world = World("OK")
    lease = world.heart.track(CLAIM, sent_at_s=0.0)
    world.clock.now = 50.0
    with pytest.raises(LeaseLost):
        world.heart.revalidate(lease)
    assert world.queue.sent == []


def test_an_answer_that_took_longer_than_the_lease_confirms_nothing() -> None:
    world = World("OK", takes_s=55.0)
    lease = world.heart.track(CLAIM, sent_at_s=0.0)
    world.clock.now = 40.0
    with pytest.raises(LeaseLost, match=r"ran out 5\.0 s ago"):
        world.heart.revalidate(lease)


def test_a_queue_that_does_not_answer_is_asked_again_until_it_does() -> None:
    world = World(RetryableError("no answer"), RetryableError("no answer"), "OK")
    world.heart.revalidate(world.heart.track(CLAIM, sent_at_s=0.0))
    assert len(world.queue.sent) == 3


def test_a_queue_that_never_answers_is_asked_until_the_local_deadline_and_no_commit_follows() -> None:
    world = World(RetryableError("no answer"))
    lease = world.heart.track(CLAIM, sent_at_s=0.0)
    with pytest.raises(LeaseLost, match="no heartbeat was answered in time"):
        world.heart.revalidate(lease)
    assert 50.0 <= world.clock.now < 51.0


def test_an_actor_that_ends_while_the_queue_is_silent_does_not_commit() -> None:
    world = World(RetryableError("no answer"))
    world.heart._closing.is_set = True
    with pytest.raises(LeaseLost, match="cannot prove its lease"):
        world.heart.revalidate(world.heart.track(CLAIM, sent_at_s=0.0))


def test_a_queue_that_refuses_us_confirms_nothing() -> None:
    world = World(PermanentError("another schema"))
    with pytest.raises(PermanentError):
        world.heart.revalidate(world.heart.track(CLAIM, sent_at_s=0.0))


def test_a_word_to_stop_is_passed_on_and_the_lease_is_renewed_until_the_job_has_stopped() -> None:
    world = World("STOP:cancel")
    lease = world.heart.track(CLAIM, sent_at_s=0.0)
    world.clock.now = 40.0
    world.heart.revalidate(lease)
    assert lease.stop_reason == "cancel"
    world.clock.now = 89.9
    lease.check()


def test_a_released_lease_is_beaten_for_no_more_and_only_by_its_own_holder() -> None:
    heart = World().heart
    old = heart.track(CLAIM, sent_at_s=0.0)
    new = heart.track(CLAIM, sent_at_s=1.0)
    heart.release(old)
    assert list(heart._leases.values()) == [new]
    heart.release(new)
    assert not heart._leases


def beating(queue: FakeQueue, clock: Callable[[], float], **more: Any) -> Heartbeat:
    return Heartbeat(queue, "a-1", LeaseTimes(interval_s=0.005), clock, **more)


def test_all_held_leases_are_beaten_for_in_one_call_and_a_failure_does_not_end_the_beating() -> None:
    """No failure, not even one that no one expects: the thread is what keeps each commit possible."""
    world = World(RetryableError("no answer"), PermanentError("refused"), OSError(24, "no descriptor"), "OK")
    heart = beating(world.queue, world.clock)
    heart.track(CLAIM, sent_at_s=0.0)
    heart.start()
    try:
        until("the heartbeat to go on after failures", lambda: len(world.queue.sent) > 3)
    finally:
        heart.close()
    assert set(world.queue.scripts()) == {ScriptName.HEARTBEAT}


def test_the_rewrite_of_a_job_that_did_not_stop_in_time_is_cancelled_and_that_of_others_is_not() -> None:
    cancelled: list[str] = []
    world = World("STOP:preempt")
    heart = beating(world.queue, world.clock, cancel=cancelled.append)
    lease = heart.track(CLAIM, sent_at_s=0.0)
    heart.start()
    try:
        until("the word to stop", lambda: lease.stop_reason is not None)
        beats = len(world.queue.sent)
        until("a beat within the grace", lambda: len(world.queue.sent) > beats + 1)
        assert cancelled == []
        world.clock.advance(30.0)
        until("the cancellation", lambda: bool(cancelled))
    finally:
        heart.close()
    assert set(cancelled) == {"j-1"}


def test_an_actor_without_jobs_announces_itself_and_beats_for_nothing() -> None:
    """A failure to announce is logged; nothing depends on it."""
    world, announced = World(), list[Any]()

    def announce(jobs: Any, busy_slots: int) -> None:
        announced.append((*jobs, busy_slots))
        if len(announced) == 1:
            raise RetryableError("no answer")

    heart = beating(world.queue, world.clock, announce=announce)
    heart.start()
    try:
        until("the announcements to go on after a failure", lambda: len(announced) > 3)
    finally:
        heart.close()
    assert set(announced) == {(0,)}
    assert world.queue.sent == []


def test_jobs_that_share_a_slot_are_announced_as_one_busy_slot() -> None:
    world, announced = World(), list[Any]()
    heart = beating(world.queue, world.clock, announce=lambda jobs, busy_slots: announced.append((*jobs, busy_slots)))
    claims = [replace(CLAIM, id=JobId(f"j-{number}"), token=Token(number)) for number in range(3)]
    leases = [heart.track(claim, sent_at_s=0.0) for claim in claims]
    for lease in leases[:2]:
        lease.share_slot(leases[:2])
    heart.start()
    try:
        until("the jobs are announced", lambda: announced and announced[-1] == ("j-0", "j-1", "j-2", 2))
        heart.release(leases[0])
        until("one of them has ended", lambda: announced[-1] == ("j-1", "j-2", 2))
        heart.release(leases[1])
        until("its slot is free", lambda: announced[-1] == ("j-2", 1))
    finally:
        heart.close()


def test_leases_are_claimed_for_the_length_that_is_kept() -> None:
    assert World().heart.lease_ms == 60_000


CLAIM = Claim(
    JobId("j-1"), JobKey("t-1", "{}", "compact"), "default", Band.NORMAL, 5, Token(7), None, 0, 1, 1, 0, 0, "{}", 0, 0
)


def lease(clock: FakeClock, until: float = 50.0) -> Lease:
    return Lease(CLAIM, valid_until_s=until, clock=clock)


def test_a_lease_holds_until_just_before_its_deadline() -> None:
    lease(FakeClock(49.999)).check()


def test_a_lease_is_over_at_its_deadline() -> None:
    with pytest.raises(LeaseLost, match=r"ran out 0\.0 s ago"):
        lease(FakeClock(50.0)).check()


def test_an_answered_heartbeat_moves_the_deadline_onwards_only() -> None:
    clock = FakeClock(55.0)
    held = lease(clock)
    held.extend(60.0)
    held.extend(40.0)  # The reply to an earlier heartbeat, come late.
    held.check()
    clock.now = 60.0
    with pytest.raises(LeaseLost):
        held.check()


def test_a_lost_lease_stays_lost_whatever_is_answered_later() -> None:
    held = lease(FakeClock())
    held.mark_lost("another actor has it")
    held.extend(1e9)
    held.mark_lost("something else")
    with pytest.raises(LeaseLost, match="another actor has it"):
        held.check()


def test_a_job_asked_to_stop_is_overdue_when_its_grace_is_over_and_not_before() -> None:
    clock = FakeClock(10.0)
    held = lease(clock)
    assert not held.is_overdue(0.0), "no one told it to stop"
    held.request_stop("preempt")
    clock.now = 39.9
    assert not held.is_overdue(30.0)
    clock.now = 40.0
    assert held.is_overdue(30.0)


def test_telling_again_neither_changes_the_reason_nor_prolongs_the_grace() -> None:
    clock = FakeClock(10.0)
    held = lease(clock)
    held.request_stop("preempt")
    clock.now = 30.0
    held.request_stop("cancel")
    clock.now = 40.0
    assert held.stop_reason == "preempt"
    assert held.is_overdue(30.0)


def test_a_window_that_has_closed_lets_the_group_end_and_a_cancel_after_it_does_not() -> None:
    clock = FakeClock()
    held = lease(clock)
    held.request_stop(StopReason.WINDOW)
    clock.now = 40.0
    assert held.stop_reason == StopReason.WINDOW
    assert not held.is_overdue(30.0)
    held.request_stop(StopReason.CANCEL)
    assert not held.is_overdue(30.0)
    assert held.is_overdue(0.0)


def test_a_preemption_stops_all_jobs_of_the_slot_and_a_cancel_only_its_own() -> None:
    clock = FakeClock(10.0)
    first, second, other = (lease(clock) for _ in range(3))
    for one in (first, second):
        one.share_slot((first, second))
    first.request_stop(StopReason.CANCEL)
    assert (first.stop_reason, second.stop_reason) == (StopReason.CANCEL, None)
    second.request_stop(StopReason.PREEMPT)
    assert (first.stop_reason, second.stop_reason, other.stop_reason) == (StopReason.CANCEL, StopReason.PREEMPT, None)
    assert second.is_overdue(0.0)


def test_a_preempted_job_of_a_slot_makes_the_rewrite_of_the_others_overdue() -> None:
    clock = FakeClock(10.0)
    wanted, running = lease(clock), lease(clock)
    for one in (wanted, running):
        one.share_slot((wanted, running))
    wanted.request_stop(StopReason.PREEMPT)
    clock.now = 40.0
    assert running.is_overdue(30.0)
