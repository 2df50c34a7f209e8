"""No client may call faster than its bucket is filled, so that one that runs wild is slowed and the others are not.

A bucket per client holds tokens for two seconds of its rate, a burst; each call takes one. The number of buckets is
bounded, and the one that was used least recently is forgotten: it had time to fill again. Storages of the library
`limits` have no such bound (docs/adr/0007).
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from decider.gateway.roles import takes_events
from decider.web.errors import respond

BURST_S = 2.0
"""Burst size in seconds of the rate."""

MAX_CLIENTS = 10_000
"""Maximum number of token buckets; a few hundred bytes each."""


@dataclass(slots=True)
class _TokenBucket:
    """Tokens at a moment, in seconds of a monotonic clock."""

    tokens: float
    at_s: float


class Rate:
    """Token bucket rate limit per client."""

    def __init__(self, per_s: float, *, max_clients: int = MAX_CLIENTS) -> None:
        self._per_s = per_s
        self._size = max(1.0, per_s * BURST_S)
        self._max_clients = max_clients
        self._buckets: OrderedDict[str, _TokenBucket] = OrderedDict()

    def wait_s(self, client: str, now_s: float) -> float:
        """Take a token and return 0, or take none and return the seconds until there is one."""
        bucket = self._buckets.pop(client, None) or _TokenBucket(self._size, now_s)
        bucket.tokens = min(self._size, bucket.tokens + (now_s - bucket.at_s) * self._per_s)
        bucket.at_s = now_s
        self._buckets[client] = bucket
        if len(self._buckets) > self._max_clients:
            self._buckets.popitem(last=False)
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0.0
        return (1 - bucket.tokens) / self._per_s


class RateLimit:
    """Returns 429 for a client above its rate; events and other requests have separate limits."""

    def __init__(self, app: ASGIApp, *, events_per_s: float, calls_per_s: float, clock_s: Callable[[], float]) -> None:
        self._app = app
        self._events = Rate(events_per_s)
        self._calls = Rate(calls_per_s)
        self._clock_s = clock_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http" or not scope["path"].startswith("/v1/"):
            await self._app(scope, receive, send)
            return
        is_event = takes_events(scope["path"])
        rate = self._events if is_event else self._calls
        wait_s = rate.wait_s(client_of(scope), self._clock_s())
        if not wait_s:
            await self._app(scope, receive, send)
            return
        variable = "LAKEWRIGHT_EVENTS_PER_S" if is_event else "LAKEWRIGHT_CALLS_PER_S"
        await too_fast(f"Rate limit per client exceeded ({variable})", wait_s)(scope, receive, send)


def address(scope: Scope) -> str:
    """Return the client address of the connection, or the one that a trusted proxy names."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def client_of(scope: Scope) -> str:
    """Return by what a call's client is limited: its token and address, or its address."""
    return str(scope.get("lakewright.client") or address(scope))


def too_fast(detail: str, wait_s: float) -> ASGIApp:
    """Return a 429 response with Retry-After."""
    headers = {"retry-after": str(math.ceil(wait_s)), "connection": "close"}
    return respond(429, f"{detail}; retry later or batch events", headers=headers)
