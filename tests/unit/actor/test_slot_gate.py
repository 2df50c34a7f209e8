"""The gate of an actor's slots: many beside each other, or one alone, and no one locked out for ever."""

import threading

import pytest

from actor.slot_gate import SlotGate
from shared.errors import LeaseLost
from tests.support.time_limits import scaled
from tests.support.waiting import until


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
