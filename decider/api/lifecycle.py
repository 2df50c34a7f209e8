"""Background tasks run as long as the application; one that ends early makes the liveness probe fail.

A task survives every transient failure. If it ends nevertheless, that is a bug, and a process that looks healthy but
tracks no table would hide it.
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol

import structlog

log = structlog.get_logger()


class BackgroundTask(Protocol):
    """One background task."""

    async def run(self) -> None:
        """Run until cancelled."""


class BackgroundTasks:
    """Runs named background tasks."""

    def __init__(self, wanted: Mapping[str, BackgroundTask]) -> None:
        self._wanted = wanted
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False

    def start(self) -> None:
        """Start every task."""
        for name, task in self._wanted.items():
            self._tasks[name] = asyncio.create_task(self._watched(name, task), name=name)

    async def close(self) -> None:
        """Cancel every task and wait for its end."""
        self._is_closing = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    @property
    def dead(self) -> tuple[str, ...]:
        """Names of the tasks that ended without being cancelled."""
        if self._is_closing:
            return ()
        return tuple(name for name, task in self._tasks.items() if task.done())

    async def _watched(self, name: str, task: BackgroundTask) -> None:
        try:
            await task.run()
            log.error("background_task_ended", task=name)
        except Exception:
            log.exception("background_task_failed", task=name)
            raise
