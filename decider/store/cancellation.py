"""A task that is cancelled during a call to Redis ends, although the client library may lose the cancellation.

The library sends within `asyncio.wait_for`, which before Python 3.12 returns normally if what it waits for has just
been done when the cancellation comes (https://github.com/python/cpython/issues/86296). A background task would then go
on for ever, and the decider would not stop. A task knows how often it was asked to end, so what was lost is noticed.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cancellation_kept() -> Iterator[None]:
    """Raise CancelledError if the task was cancelled inside the block, which ended in another way."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    except Exception as problem:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError from problem
        raise
    if task and task.cancelling() > before:
        raise asyncio.CancelledError
