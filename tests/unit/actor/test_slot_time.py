"""Time of a slot, divided among its jobs."""

from fractions import Fraction
from types import SimpleNamespace
from typing import cast

import pytest

from actor.leased_run import LeasedRun
from actor.slot_time import NS_PER_MS, SlotTime


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
