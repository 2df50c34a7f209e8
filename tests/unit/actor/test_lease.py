"""A lease is over at its local deadline, not a moment later, and what was lost stays lost."""

import pytest

from actor.lease import Lease
from shared.errors import LeaseLost
from shared.queue.model import Band, Claim, JobId, JobKey, StopReason, Token
from tests.support.fake_queue import FakeClock

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
