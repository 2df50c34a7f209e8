"""Background work keeps to its share of one core, to a tenth of it while others have work, and ends when it must."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from decider.advice.cpu_budget import BUSY_SHARE, CpuBudget, PacedThread, Stopped, run_paced
from tests.support.time_limits import scaled


class Waits:
    """An event that waits no time, and remembers for how long it should have."""

    def __init__(self) -> None:
        self.pauses_s: list[float] = []
        self.is_set = False

    def wait(self, pause_s: float) -> bool:
        self.pauses_s.append(pause_s)
        return self.is_set

    def set(self) -> None:
        self.is_set = True


def paced(budget: CpuBudget, cpu_s: list[float]) -> tuple[PacedThread, Waits]:
    clock, waits = iter(cpu_s), Waits()
    return PacedThread(budget, lambda: next(clock), _stopped=waits), waits  # type: ignore[arg-type]


def test_pauses_keep_the_work_at_its_share() -> None:
    work, waits = paced(CpuBudget(0.25), [0.0, 0.0, 2.0, 2.0, 5.0])
    work.tick()
    work.tick()
    rest_s = work.end()
    assert (waits.pauses_s, rest_s) == ([0.0, 6.0], 9.0)
    assert work.used_s == 5.0
    assert work.used_s / (work.used_s + work.paused_s + rest_s) == 0.25


def test_a_share_of_one_never_pauses() -> None:
    work, waits = paced(CpuBudget(1.0), [0.0, 0.0, 2.0, 2.0])
    work.tick()
    work.tick()
    assert waits.pauses_s == [0.0, 0.0]


def test_while_others_have_work_a_tenth_of_the_share_is_left() -> None:
    is_busy = [True]
    budget = CpuBudget(0.5, lambda: is_busy[0])
    assert budget.current_share == 0.5 * BUSY_SHARE
    assert budget.pause_s(1.0) == 19.0
    is_busy[0] = False
    assert budget.pause_s(1.0) == 1.0


def test_work_that_is_stopped_ends_at_its_next_step() -> None:
    work, _ = paced(CpuBudget(0.5), [0.0, 0.0, 1.0, 1.0])
    work.tick()
    work.stop()
    with pytest.raises(Stopped):
        work.tick()


def test_a_pause_ends_when_the_work_is_stopped() -> None:
    """A decider that ends does not wait for a pause of minutes."""
    work = PacedThread(CpuBudget(0.5), iter([0.0, 0.0, 86_400.0]).__next__)
    work.tick()
    timer = threading.Timer(0.01, work.stop)
    timer.start()
    with pytest.raises(Stopped):
        work.tick()
    timer.join()


def spin(cpu_s: float) -> None:
    """Use so much CPU time of this thread."""
    end_s = time.thread_time() + cpu_s
    while time.thread_time() < end_s:
        sum(range(1_000))


def test_a_thread_that_computes_uses_no_more_than_its_share() -> None:
    def work(tick: Callable[[str], None]) -> float:
        started_s = time.thread_time()
        for _ in range(10):
            tick("step")
            spin(0.01)
        return time.thread_time() - started_s

    async def look() -> None:
        """Nothing is to be seen."""

    started_s = time.monotonic()
    used_s = asyncio.run(run_paced(CpuBudget(0.2), work, look, every_s=1.0))
    assert used_s / (time.monotonic() - started_s) <= 0.2 * 1.01


def test_work_ends_with_the_task_that_waits_for_it() -> None:
    """A decider that ends waits for one step, and not for a pause of an hour."""
    begun = threading.Event()

    def work(tick: Callable[[str], None]) -> None:
        while True:
            tick("step")
            begun.set()
            spin(0.01)

    async def look() -> None:
        """Nothing is to be seen."""

    async def story() -> bool:
        task = asyncio.ensure_future(run_paced(CpuBudget(1e-6), work, look, every_s=0.001))
        await asyncio.to_thread(begun.wait, scaled(60))
        task.cancel()
        await asyncio.wait({task}, timeout=scaled(60))
        return task.cancelled()

    assert asyncio.run(story())


def test_work_ends_when_nothing_can_be_seen_any_more() -> None:
    async def look() -> None:
        raise ValueError("away")

    def work(tick: Callable[[str], None]) -> None:
        while True:
            tick("step")
            spin(0.001)

    with pytest.raises(ValueError, match="away"):
        asyncio.run(run_paced(CpuBudget(0.5), work, look, every_s=0.001))


def test_an_error_of_the_work_is_raised() -> None:
    async def look() -> None:
        """Nothing is to be seen."""

    def work(_tick: Callable[[str], None]) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(run_paced(CpuBudget(0.5), work, look, every_s=1.0))
