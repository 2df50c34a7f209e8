"""The one owner of loops: runs each background task on its schedule for as long as the application runs.

A task survives every transient failure. If its loop ends nevertheless, that is a bug, and a process that looks healthy
but tracks no table would hide it; so the liveness probe fails.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from shared.errors import LakewrightError

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a task runs.

    every_s: pause between two passes, or with `is_fixed_rate` the time from the start of one to that of the next.
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

    async def run_once(self) -> object:
        """Do one pass. A LakewrightError, such as that of a store that is away, is logged and retried."""


async def run_periodically(task: BackgroundTask, *, name: str) -> None:
    """Run passes of a task until cancelled; an error that is no LakewrightError ends it."""
    if task.schedule.workers == 1:
        await _loop(task, name)
        return
    async with asyncio.TaskGroup() as group:
        for _ in range(task.schedule.workers):
            group.create_task(_loop(task, name))


async def _loop(task: BackgroundTask, name: str) -> None:
    loop = asyncio.get_running_loop()
    while True:
        schedule, started_s = task.schedule, loop.time()
        pause_s = schedule.every_s
        try:
            await task.run_once()
        except LakewrightError as problem:
            log.warning(schedule.failure_event, task=name, error=str(problem))
            pause_s = schedule.every_s if schedule.retry_s is None else schedule.retry_s
        else:
            if schedule.is_fixed_rate:
                pause_s = max(0.0, pause_s - (loop.time() - started_s))
        await asyncio.sleep(pause_s)


class BackgroundTasks:
    """Runs named background tasks."""

    def __init__(self, wanted: Mapping[str, BackgroundTask]) -> None:
        self._wanted = wanted
        self._running: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False

    def start(self) -> None:
        """Start every task."""
        for name, task in self._wanted.items():
            self._running[name] = asyncio.create_task(self._watched(name, task), name=name)

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

    async def _watched(self, name: str, task: BackgroundTask) -> None:
        try:
            await run_periodically(task, name=name)
            log.error("background_task_ended", task=name)
        except Exception:
            log.exception("background_task_failed", task=name)
            raise
