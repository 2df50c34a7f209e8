"""A call that changes something is refused as a whole while Redis might lose it, before anything of it is done."""

from starlette.types import ASGIApp, Receive, Scope, Send

from decider.store.redis_health import RedisSafety
from decider.web.errors import try_later
from shared.errors import RetryableError

READS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing; what Redis still knows may be looked at."""


class SafeWrites:
    """Answers 503 with the reason and Retry-After to calls that write, unless Redis is safe."""

    def __init__(self, app: ASGIApp, *, safety: RedisSafety) -> None:
        self._app = app
        self._safety = safety

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] == "http" and _writes(scope["method"], scope["path"]):
            try:
                await self._safety.require()
            except RetryableError as problem:
                await try_later(str(problem))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _writes(method: str, path: str) -> bool:
    """Say whether a call may write; a what-if is asked by POST and only reads."""
    return method not in READS and path.startswith("/v1/") and not path.endswith("/what-if")
