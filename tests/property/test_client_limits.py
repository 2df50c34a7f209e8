"""Limits of clients hold for any sequence of requests; a lease ends on the actor before it ends on the server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actor.heartbeat import Heartbeat, LeaseTimes
from actor.lease import Lease
from decider.gateway.concurrency import PerClientLimit
from decider.gateway.rate_limit import BURST_S, Rate
from shared.errors import LeaseLost
from shared.queue.model import Band, Claim, JobId, JobKey, Token
from tests.support.fake_queue import FakeClock, FakeQueue


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=100))
def test_a_room_never_holds_more_than_its_places_in_all_and_of_one_client(steps: list[tuple[bool, str]]) -> None:
    room = PerClientLimit(limit=4, per_client=2)
    inside: list[str] = []
    for enters, client in steps:
        if enters:
            fits = len(inside) < 4 and inside.count(client) < 2
            assert room.take(client) is fits
            inside += [client] * fits
        elif client in inside:
            room.leave(client)
            inside.remove(client)
        assert room.taken == len(inside)


@given(st.lists(st.floats(0, 0.5), min_size=1, max_size=200), st.sampled_from([0.5, 5.0, 100.0]))
def test_a_client_never_gets_more_than_its_burst_and_its_rate(pauses_s: list[float], per_s: float) -> None:
    """Whatever the rhythm, in any stretch of time no more calls pass than a burst and the rate times that time."""
    rate = Rate(per_s)
    now_s, passed = 0.0, 0
    for pause_s in pauses_s:
        now_s += pause_s
        wait_s = rate.wait_s("a", now_s)
        assert wait_s >= 0
        if not wait_s:
            passed += 1
        else:
            assert Rate(per_s).wait_s("a", now_s) == 0, "another client is not held up"
    assert passed <= max(1.0, per_s * BURST_S) + per_s * now_s + 1e-6


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
