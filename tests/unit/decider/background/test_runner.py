"""Background tasks keep their schedule: pauses, retries, fixed rates, workers; nothing that a pass raises ends one."""

import asyncio
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from decider.background import runner
from decider.background.runner import BackgroundTasks, Schedule, TaskHealth, run_periodically
from shared.errors import InvalidInput, RetryableError
from shared.retry import RetryPolicy
from tests.support.time_limits import scaled


class Clock:
    """The loop's clock and sleep: a sleep is noted and passes at once; the last one ends the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, sleeps: int) -> None:
        self.pauses_s: list[float] = []
        self._left = sleeps
        monkeypatch.setattr(asyncio, "sleep", self._sleep)

    async def _sleep(self, pause_s: float) -> None:
        self.pauses_s.append(pause_s)
        self._left -= 1
        if not self._left:
            raise asyncio.CancelledError


class Passes:
    """Raises what it is given, one pass each, and then nothing."""

    def __init__(self, schedule: Schedule, raised: Sequence[Exception | None] = ()) -> None:
        self.schedule = schedule
        self._raised = list(raised)

    async def run_once(self) -> None:
        if self._raised and (problem := self._raised.pop(0)) is not None:
            raise problem


def pauses_of(task: Passes, clock: Clock) -> list[float]:
    async def story() -> None:
        with pytest.raises(asyncio.CancelledError):
            await run_periodically(task, name="passes")

    asyncio.run(story())
    return clock.pauses_s


@pytest.mark.parametrize(("retry_s", "expected"), [(2.0, [30.0, 2.0, 2.0, 30.0]), (None, [30.0, 30.0, 30.0, 30.0])])
def test_a_failure_is_retried_after_its_own_pause_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, retry_s: float | None, expected: list[float]
) -> None:
    away = [None, RetryableError("away"), InvalidInput("odd"), None]
    task = Passes(Schedule(30.0, "failed", retry_s=retry_s), away)
    assert pauses_of(task, Clock(monkeypatch, sleeps=4)) == expected


@pytest.mark.parametrize(("took_s", "pause_s"), [(100.0, 200.0), (1_000.0, 0.0)], ids=["shorter", "longer"])
def test_a_fixed_rate_counts_from_the_start_of_a_pass(
    took_s: float, pause_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Passes):
        async def run_once(self) -> None:
            now_s = asyncio.get_running_loop().time()
            monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now_s + took_s)

    task = Slow(Schedule(300.0, "failed", is_fixed_rate=True))
    assert pauses_of(task, Clock(monkeypatch, sleeps=1)) == [pytest.approx(pause_s, abs=1.0 if pause_s else 0.0)]


async def test_workers_run_passes_side_by_side() -> None:
    class Together:
        schedule = Schedule(0.0, "failed", workers=3)

        def __init__(self) -> None:
            self.inside, self.all = 0, asyncio.Event()

        async def run_once(self) -> None:
            self.inside += 1
            if self.inside == 3:
                self.all.set()
            await asyncio.Event().wait()

    task = Together()
    running = asyncio.create_task(run_periodically(task, name="together"))
    await asyncio.wait_for(task.all.wait(), scaled(10))
    assert task.inside == 3
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()


UNEXPECTED = (KeyError("a bug"), OSError(24, "Too many open files"), MemoryError(), asyncio.CancelledError())
"""What a pass raised and no one expected; the last one where something that it waited for was cancelled."""


@pytest.mark.parametrize("problem", UNEXPECTED, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("workers", [1, 2])
async def test_no_failure_of_a_pass_ends_its_task(
    monkeypatch: pytest.MonkeyPatch, problem: BaseException, workers: int
) -> None:
    monkeypatch.setattr(runner, "CRASHED", RetryPolicy(None, 0.0))
    served = asyncio.Event()

    class Task:
        schedule = Schedule(3_600.0, "failed", workers=workers)
        passes = 0

        async def run_once(self) -> None:
            self.passes += 1
            if self.passes <= 5 * workers:
                raise problem
            served.set()

    background = BackgroundTasks({"task": Task()})
    with capture_logs():  # To print these failures, each with the ones before it, takes a minute.
        background.start()
        await asyncio.wait_for(served.wait(), scaled(10))
    assert background.dead == ()
    assert background.health["task"].failures == 5 * workers
    await background.close()


async def test_a_task_that_is_to_end_ends_whatever_its_pass_makes_of_it() -> None:
    class Stubborn:
        schedule = Schedule(0.0, "failed")

        async def run_once(self) -> None:
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                raise KeyError("while it was cancelled") from None

    background = BackgroundTasks({"stubborn": Stubborn()})
    background.start()
    await asyncio.sleep(0)
    await asyncio.wait_for(background.close(), scaled(10))


def test_pauses_after_unexpected_failures_double_and_begin_again_after_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    raised = [KeyError("a bug"), KeyError("a bug"), None, KeyError("a bug")]
    task = Passes(Schedule(30.0, "failed"), raised)
    assert pauses_of(task, Clock(monkeypatch, sleeps=4)) == [1.0, 2.0, 30.0, 1.0]


def test_a_task_without_a_pause_does_not_spin_while_its_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Passes(Schedule(0.0, "failed"), [RetryableError("away"), RetryableError("away"), None])
    assert pauses_of(task, Clock(monkeypatch, sleeps=3)) == [1.0, 2.0, 0.0]


def test_a_task_is_stuck_after_three_unexpected_failures_in_a_row_and_never_by_an_outage() -> None:
    health = TaskHealth()
    for problem in (KeyError("a"), KeyError("b"), KeyError("c")):
        assert not health.is_stuck
        health.failed(problem, is_expected=False)
    assert health.is_stuck
    assert health.error == "KeyError: 'c'"
    health.failed(RetryableError("away"), is_expected=True)
    assert not health.is_stuck
    assert (health.failures, health.in_a_row, health.error) == (4, 4, "away")
    health.passed()
    assert (health.failures, health.in_a_row, health.error) == (4, 0, "")


async def test_a_task_that_ends_although_nothing_may_end_it_is_seen_and_reported() -> None:
    ends: list[str] = []
    background = BackgroundTasks(
        {"broken": Passes(Schedule(0.0, "failed")), "sound": Passes(Schedule(0.0, "failed"))},
        lambda: ends.append("reported"),
    )
    background.start()
    (broken,) = (task for task in asyncio.all_tasks() if task.get_name() == "broken")
    broken.cancel()
    await asyncio.wait([broken], timeout=scaled(10))
    await asyncio.sleep(0)
    assert background.dead == ("broken",)
    assert ends == ["reported"]
    await background.close()
    assert background.dead == ()
    assert ends == ["reported"]
