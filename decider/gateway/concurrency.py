"""Concurrency limits: requests beyond them get 503 with Retry-After instead of an unbounded wait."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from decider.gateway.roles import OPEN
from decider.web.errors import RETRY_AFTER_S, ApiError, respond

MAX_CALLS = 512
"""Calls in progress at once: with bodies of the largest size half a gigabyte, and more than the fastest service needs,
which answers in milliseconds. Idle connections do not count, nor do probes, or a crowd would have us restarted."""


@dataclass(slots=True)
class PerClientLimit:
    """Concurrency limit in total and per client."""

    limit: int
    per_client: int
    _taken: Counter[str] = field(default_factory=Counter)

    @property
    def taken(self) -> int:
        """Slots in use."""
        return self._taken.total()

    def take(self, client: str) -> bool:
        """Take a slot; False if none is free."""
        if self.taken >= self.limit or self._taken[client] >= self.per_client:
            return False
        self._taken[client] += 1
        return True

    def leave(self, client: str) -> None:
        """Release a slot."""
        self._taken[client] -= 1
        self._taken += Counter()


class BoundedSemaphore:
    """Lets `at_once` requests run and `waiting` wait; others get 503."""

    def __init__(self, what: str, *, at_once: int, waiting: int) -> None:
        self._what = what
        self._most = at_once + waiting
        self._present = 0
        self._work = asyncio.Semaphore(at_once)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold a slot; raises ApiError if the queue is full."""
        if self._present >= self._most:
            raise ApiError(503, f"Too many concurrent {self._what} requests; retry later")
        self._present += 1
        try:
            async with self._work:
                yield
        finally:
            self._present -= 1


class ConcurrencyLimit:
    """Returns 503 for requests beyond the limit."""

    def __init__(self, app: ASGIApp, *, limit: int = MAX_CALLS) -> None:
        self._app = app
        self._limit = limit
        self._present = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http" or (scope["method"], scope["path"]) in OPEN:
            await self._app(scope, receive, send)
            return
        if self._present >= self._limit:
            await busy("Too many concurrent requests; retry later")(scope, receive, send)
            return
        self._present += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._present -= 1


def busy(detail: str) -> ASGIApp:
    """Return a 503 response with Retry-After."""
    return respond(503, detail, headers={"retry-after": str(RETRY_AFTER_S), "connection": "close"})
