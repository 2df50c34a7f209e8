"""Background tasks keep their schedule: pauses, retries, fixed rates, workers; a bug ends one of them and is seen."""

import asyncio
from collections.abc import Sequence

import pytest

from decider.background.runner import BackgroundTasks, Schedule, run_periodically
from shared.errors import InvalidInput, RetryableError
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


def test_a_fixed_rate_counts_from_the_start_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Passes):
        async def run_once(self) -> None:
            now_s = asyncio.get_running_loop().time()
            monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now_s + 100.0)

    task = Slow(Schedule(300.0, "failed", is_fixed_rate=True))
    (pause_s,) = pauses_of(task, Clock(monkeypatch, sleeps=1))
    assert pause_s == pytest.approx(200.0, abs=1.0)


def test_a_pass_longer_than_a_fixed_rate_is_followed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Passes):
        async def run_once(self) -> None:
            now_s = asyncio.get_running_loop().time()
            monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now_s + 1_000.0)

    task = Slow(Schedule(300.0, "failed", is_fixed_rate=True))
    assert pauses_of(task, Clock(monkeypatch, sleeps=1)) == [0.0]


def test_workers_run_passes_side_by_side() -> None:
    class Together:
        schedule = Schedule(0.0, "failed", workers=3)

        def __init__(self) -> None:
            self.inside, self.all = 0, asyncio.Event()

        async def run_once(self) -> None:
            self.inside += 1
            if self.inside == 3:
                self.all.set()
            await asyncio.Event().wait()

    async def story() -> None:
        task = Together()
        running = asyncio.create_task(run_periodically(task, name="together"))
        await asyncio.wait_for(task.all.wait(), scaled(10))
        assert task.inside == 3
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert running.cancelled()

    asyncio.run(story())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bug_ends_its_own_task_only_and_is_seen(workers: int) -> None:
    async def story() -> None:
        background = BackgroundTasks(
            {
                "broken": Passes(Schedule(0.0, "failed", workers=workers), [KeyError("a bug")]),
                "sound": Passes(Schedule(0.0, "failed")),
            }
        )
        background.start()
        (broken,) = (task for task in asyncio.all_tasks() if task.get_name() == "broken")
        await asyncio.wait([broken], timeout=scaled(10))
        assert background.dead == ("broken",)
        await background.close()
        assert background.dead == ()

    asyncio.run(story())
