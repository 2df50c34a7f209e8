"""Costly reads of the queue are made once for all who wait for them, one at a time, and for half of the time at most.

A client gets an answer that was read after its request, so none sees an older state than without sharing.
"""

import asyncio
from collections.abc import Awaitable, Callable

from fastapi import Response
from pydantic import BaseModel

from decider.web.errors import ApiError

MAX_WAITING = 32
"""Different reads that wait; their parameters distinguish them."""


class SharedReads:
    """Makes reads and shares their answers."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[bytes]] = {}
        self._turn = asyncio.Semaphore(1)

    async def get(self, key: str, make: Callable[[], Awaitable[BaseModel]]) -> Response:
        """Return the answer of the next read of this name. Raises ApiError if too many others wait."""
        asked = self._waiting.get(key)
        if asked is None:
            if len(self._waiting) >= MAX_WAITING:
                raise ApiError(503, "Too many concurrent reads of the queue; retry later")
            asked = self._waiting[key] = asyncio.ensure_future(self._read(key, make))
            # Those who asked may all have left.
            asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        return Response(await asyncio.shield(asked), media_type="application/json")

    async def _read(self, key: str, make: Callable[[], Awaitable[BaseModel]]) -> bytes:
        await self._turn.acquire()
        del self._waiting[key]
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            return (await make()).model_dump_json().encode()
        finally:
            # The next read waits as long as this one took, so that events have the other half of the time.
            loop.call_later(loop.time() - began_s, self._turn.release)
