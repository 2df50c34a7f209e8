"""Runs a background task periodically until it is cancelled; a transient failure is logged and retried."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from shared.errors import LakewrightError

log = structlog.get_logger()


async def run_periodically(act: Callable[[], Awaitable[object]], *, every_s: float, failed: str, **about: str) -> None:
    """Act until cancelled, with a pause of `every_s` seconds after each time.

    failed: name of the event that is logged, with `about`, when acting raises a LakewrightError, such as that of a
    store that is away. Any other exception ends the task.
    """
    while True:
        try:
            await act()
        except LakewrightError as problem:
            log.warning(failed, **about, error=str(problem))
        await asyncio.sleep(every_s)
