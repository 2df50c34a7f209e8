"""A task that is cancelled during a call to Redis ends, although the client library may lose the cancellation.

The library sends within `asyncio.wait_for`, which before Python 3.12 returns normally if the awaited call completes at
the moment of the cancellation (https://github.com/python/cpython/issues/86296). A background task would then run
forever, and the decider would not stop. A task counts its cancellations, so a lost one is noticed.
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
