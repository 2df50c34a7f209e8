"""Whatever the network does, a lease ends on the actor before it ends on the server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actor.heartbeat import Heartbeat, LeaseTimes
from actor.lease import Lease
from shared.errors import LeaseLost
from shared.queue.model import Band, Claim, JobId, JobKey, Token
from tests.support.fake_queue import FakeClock, FakeQueue

TIMES = LeaseTimes(lease_s=60.0, interval_s=5.0, margin_s=10.0, stop_grace_s=30.0)
CLAIM = Claim(
    JobId("j-1"), JobKey("t-1", "{}", "compact"), "default", Band.NORMAL, 5, Token(7), None, 0, 1, 1, 0, 0, "{}", 0, 0
)


@given(st.lists(st.floats(0, 100)), st.floats(0, 100), st.booleans())
def test_a_lease_holds_exactly_while_no_answered_deadline_has_passed(
    answered: list[float], now: float, is_lost: bool
) -> None:
    clock = FakeClock(now)
    held = Lease(CLAIM, valid_until_s=50.0, clock=clock)
    for until in answered:
        held.extend(until)
    if is_lost:
        held.mark_lost("lost")
    if now < max([50.0, *answered]) and not is_lost:
        held.check()
    else:
        with pytest.raises(LeaseLost):
            held.check()


@given(st.floats(0, 1e6), st.floats(0, 100), st.floats(0, 100))
def test_whatever_the_network_does_the_local_deadline_lies_a_margin_before_the_servers(
    sent: float, to_server_s: float, pause_s: float
) -> None:
    server_until = sent + to_server_s + TIMES.lease_s
    heart = Heartbeat(FakeQueue(lambda _: ["OK"]), "a-1", TIMES, FakeClock())
    lease = heart.track(CLAIM, sent_at_s=sent)
    lease._clock = FakeClock(server_until - TIMES.margin_s + pause_s)
    with pytest.raises(LeaseLost):
        lease.check()
