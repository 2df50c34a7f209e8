"""Background tasks run as long as the application; one that ends early makes the liveness probe fail.

A task survives every transient failure. If it ends nevertheless, that is a bug, and a process that seems healthy but
tracks no table would hide it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

log = structlog.get_logger()


class BackgroundTasks:
    """Runs named background tasks."""

    def __init__(self, duties: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
        self._duties = duties
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False

    def start(self) -> None:
        """Start every task."""
        for name, run in self._duties.items():
            self._tasks[name] = asyncio.create_task(self._watched(name, run), name=name)

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

    async def _watched(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
            log.error("background_task_ended", task=name)
        except Exception:
            log.exception("background_task_failed", task=name)
            raise
