"""Writes are rejected while Redis is not durable, before any part of them is done."""

from starlette.types import ASGIApp, Receive, Scope, Send

from decider.store.redis.redis_health import RedisSafety
from decider.web.errors import try_later
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
