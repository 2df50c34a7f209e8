"""Limits of clients hold for any sequence of requests: how many at once, and how many in any stretch of time."""

from hypothesis import given
from hypothesis import strategies as st

from decider.gateway.concurrency import PerClientLimit
from decider.gateway.rate_limit import BURST_S, Rate


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
