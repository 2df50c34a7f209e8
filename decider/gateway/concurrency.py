"""Concurrency limits: requests beyond them get 503 with Retry-After instead of an unbounded wait.

Writes are rejected while Redis is not durable, before any part of them is done.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from starlette.types import ASGIApp, Receive, Scope, Send

from decider.gateway.call_deadline import STREAM
from decider.gateway.rate_limit import client_of
from decider.gateway.roles import needed, takes_events
from decider.store.redis.redis_health import RedisSafety
from decider.web.errors import RETRY_AFTER_S, ApiError, respond, try_later
from shared.errors import RetryableError

READS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing; reads stay available."""


class SafeWrites:
    """Returns 503 with the reason and Retry-After for writes while Redis is not durable."""

    def __init__(self, app: ASGIApp, *, safety: RedisSafety) -> None:
        self._app = app
        self._safety = safety

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] == "http" and _writes(scope["method"], scope["path"]):
            try:
                await self._safety.require_safe()
            except RetryableError as problem:
                await try_later(str(problem))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _writes(method: str, path: str) -> bool:
    """Return whether a request may write; what-if is a POST that only reads."""
    return method not in READS and path.startswith("/v1/") and not path.endswith("/what-if")


class CallKind(StrEnum):
    """Purpose of a call: a crowd of one kind leaves room for the others."""

    EVENTS = "events"
    READS = "reads"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class CallSlots:
    """Calls in progress at once, of all clients and of one."""

    limit: int
    per_client: int


SLOTS: Mapping[CallKind, CallSlots] = {
    CallKind.EVENTS: CallSlots(256, 128),
    CallKind.READS: CallSlots(256, 64),
    CallKind.CHANGES: CallSlots(64, 32),
}
"""Whole bodies of the largest size are half a gigabyte, and a service that answers in milliseconds needs fewer. Idle
connections do not count, nor do bodies that arrive, nor probes, or a crowd would have us restarted."""


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
    """Returns 503 for requests beyond the limits of their kind; the stream of events has limits of its own."""

    def __init__(self, app: ASGIApp, *, slots: Mapping[CallKind, CallSlots] = SLOTS) -> None:
        self._app = app
        self._kinds = {kind: PerClientLimit(one.limit, one.per_client) for kind, one in slots.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call, whose body is there."""
        if scope["type"] != "http" or scope["path"] == STREAM or needed(scope["method"], scope["path"]) is None:
            await self._app(scope, receive, send)
            return
        kind, client = kind_of(scope), client_of(scope)
        slots = self._kinds[kind]
        if not slots.take(client):
            await busy(f"Too many concurrent requests ({kind}); retry later")(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            slots.leave(client)


def kind_of(scope: Scope) -> CallKind:
    """Return the kind of a call."""
    if takes_events(scope["path"]):
        return CallKind.EVENTS
    return CallKind.READS if scope["method"] in READS else CallKind.CHANGES


def busy(detail: str) -> ASGIApp:
    """Return a 503 response with Retry-After."""
    return respond(503, detail, headers={"retry-after": str(RETRY_AFTER_S), "connection": "close"})


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits per request and client.

    max_body_bytes: 1 MiB fits thousands of events and bounds memory per request. body_timeout_s: time to receive a
    body. events_per_s, calls_per_s: requests per client. max_connections: connections of all clients; fewer where the
    limit of descriptors is lower. request_timeout_s: time for a response, after which it is given up.
    """

    max_body_bytes: int = 1_048_576
    body_timeout_s: float = 10.0
    events_per_s: float = 1_000.0
    calls_per_s: float = 200.0
    max_connections: int = 2_048
    request_timeout_s: float = 30.0
