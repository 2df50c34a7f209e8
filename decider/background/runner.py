"""The one owner of loops: runs each background task on its schedule for as long as the application runs.

A task survives every failure: an expected one (a store that is away) is retried on the task's schedule, an unexpected
one after a pause that doubles. Both are counted and shown. If its loop ends nevertheless, that is a bug, and a process
that looks healthy but tracks no table would hide it; so the process ends, and its supervisor starts it again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from shared.errors import LakewrightError
from shared.retry import RetryPolicy

CRASHED = RetryPolicy(max_attempts=None, first_s=1.0, longest_s=60.0)
"""Pauses after unexpected failures in a row: soon after the first, and no load where every pass fails."""

STUCK_AFTER = 3
"""Unexpected failures in a row from which on a task counts as stuck: no outage explains them."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a task runs.

    every_s: pause between two passes, or with `is_fixed_rate` the time between the starts of two.
    retry_s: pause after a failure; None is `every_s`. failure_event: name of the log event of a failure. workers:
    loops that run passes side by side.
    """

    every_s: float
    failure_event: str
    retry_s: float | None = None
    is_fixed_rate: bool = False
    workers: int = 1


class BackgroundTask(Protocol):
    """One background task; it is idempotent, so that any number of deciders may run it."""

    schedule: Schedule

    def run_once(self) -> Awaitable[object]:
        """Do one pass; whatever it raises is logged, counted and retried."""


@dataclass(slots=True)
class PeriodicCall:
    """A background task whose pass is one call."""

    schedule: Schedule
    run_once: Callable[[], Awaitable[object]]


@dataclass(slots=True)
class TaskHealth:
    """Failures of one task: since the start, in a row, unexpected ones in a row, and the last; empty if none counts."""

    failures: int = 0
    in_a_row: int = 0
    crashes_in_a_row: int = 0
    error: str = ""

    @property
    def is_stuck(self) -> bool:
        """True if its passes fail again and again for a reason that is no outage."""
        return self.crashes_in_a_row >= STUCK_AFTER

    def passed(self) -> None:
        """Record a pass without failure."""
        self.in_a_row = self.crashes_in_a_row = 0
        self.error = ""

    def failed(self, problem: BaseException, *, is_expected: bool) -> None:
        """Record a failed pass."""
        self.failures += 1
        self.in_a_row += 1
        self.crashes_in_a_row = 0 if is_expected else self.crashes_in_a_row + 1
        self.error = str(problem) if is_expected else f"{type(problem).__name__}: {problem}"


async def run_periodically(task: BackgroundTask, *, name: str, health: TaskHealth | None = None) -> None:
    """Run passes of a task until cancelled, and record in `health` how they end."""
    health = health or TaskHealth()
    if task.schedule.workers == 1:
        await _loop(task, name, health)
        return
    async with asyncio.TaskGroup() as group:
        for _ in range(task.schedule.workers):
            group.create_task(_loop(task, name, health))


async def _loop(task: BackgroundTask, name: str, health: TaskHealth) -> None:
    loop = asyncio.get_running_loop()
    while True:
        schedule, started_s = task.schedule, loop.time()
        pause_s = schedule.every_s
        try:
            await task.run_once()
        except LakewrightError as problem:
            health.failed(problem, is_expected=True)
            log.warning(schedule.failure_event, task=name, error=str(problem))
            # A task without a pause, such as a worker of a queue, must not spin.
            pause_s = (pause_s if schedule.retry_s is None else schedule.retry_s) or CRASHED.pause_s(health.in_a_row)
        except OSError as problem:
            # No descriptor, no disk: an outage of this machine, which passes like an outage of a store.
            health.failed(problem, is_expected=True)
            log.warning(schedule.failure_event, task=name, error=f"{type(problem).__name__}: {problem}")
            pause_s = CRASHED.pause_s(health.in_a_row)
        except (Exception, asyncio.CancelledError) as problem:
            if _is_cancelled():
                raise
            health.failed(problem, is_expected=False)
            log.exception("background_task_crashed", task=name, in_a_row=health.crashes_in_a_row)
            pause_s = CRASHED.pause_s(health.crashes_in_a_row)
        else:
            health.passed()
            if schedule.is_fixed_rate:
                pause_s = max(0.0, pause_s - (loop.time() - started_s))
        await asyncio.sleep(pause_s)


def _is_cancelled() -> bool:
    """Return whether this task is to end, and not only something that it waited for."""
    running = asyncio.current_task()
    return running is not None and running.cancelling() > 0


class BackgroundTasks:
    """Runs named background tasks; `on_end` is called if one of them ends without being asked to."""

    def __init__(self, wanted: Mapping[str, BackgroundTask], on_end: Callable[[], None] = lambda: None) -> None:
        self._wanted = wanted
        self._on_end = on_end
        self._running: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False
        self.health = {name: TaskHealth() for name in wanted}

    def start(self) -> None:
        """Start every task."""
        for name, task in self._wanted.items():
            running = asyncio.create_task(run_periodically(task, name=name, health=self.health[name]), name=name)
            running.add_done_callback(self._ended)
            self._running[name] = running

    async def close(self) -> None:
        """Cancel every task and wait for its end."""
        self._is_closing = True
        for running in self._running.values():
            running.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    @property
    def dead(self) -> tuple[str, ...]:
        """Names of the tasks that ended without being cancelled."""
        if self._is_closing:
            return ()
        return tuple(name for name, running in self._running.items() if running.done())

    @property
    def stuck(self) -> Mapping[str, str]:
        """Errors of the tasks whose passes fail again and again, by name."""
        return {name: found.error for name, found in self.health.items() if found.is_stuck}

    def _ended(self, running: asyncio.Task[None]) -> None:
        if self._is_closing:
            return
        problem = None if running.cancelled() else running.exception()
        log.error("background_task_ended", task=running.get_name(), error=repr(problem))
        self._on_end()
