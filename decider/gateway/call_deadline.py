"""No call lasts for ever: it has a deadline, and what only computes an answer ends when its client has left.

A change goes on without its client, because it may be half done; its sender learns the outcome by asking.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from decider.web.errors import RETRY_AFTER_S, respond

LONG_POLL_S = 60.0
"""Seconds beyond the deadline for calls that may wait for the first read of a table or the end of a job."""

STREAM = "/v1/stream"
"""The call that lasts as long as its client wants."""

_READS = frozenset({"GET", "HEAD"})
_COMPUTATIONS = ("/optimize", "/what-if")
"""Ends of the paths of calls that compute for seconds; each job that a request queues is whole by itself."""


class CallDeadline:
    """Returns 503 for a call without a response after `timeout_s` seconds."""

    def __init__(self, app: ASGIApp, *, timeout_s: float) -> None:
        self._app = app
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call, whose body is there."""
        if scope["type"] != "http" or scope["path"] == STREAM:
            await self._app(scope, receive, send)
            return
        is_started = has_left = False

        async def watched(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            async with asyncio.timeout(self._limit_s(scope)) as limit:
                if scope["method"] not in _READS and not scope["path"].endswith(_COMPUTATIONS):
                    await self._app(scope, receive, watched)
                    return
                client = _Client(await receive())

                async def leave() -> None:
                    nonlocal has_left
                    await receive()
                    has_left = True
                    client.has_left.set()
                    limit.reschedule(asyncio.get_running_loop().time())

                await _beside(leave(), self._app(scope, client.receive, watched))
        except TimeoutError:
            if not is_started and not has_left:
                await self._late(scope, receive, send)

    def _limit_s(self, scope: Scope) -> float:
        is_wait = scope["path"] == "/v1/tables" or b"wait_s=" in scope.get("query_string", b"")
        return self._timeout_s + (LONG_POLL_S if is_wait or scope["path"].endswith("/what-if") else 0.0)

    async def _late(self, scope: Scope, receive: Receive, send: Send) -> None:
        sentence = (
            f"no response within {self._limit_s(scope):g} s (LAKEWRIGHT_REQUEST_TIMEOUT_S), because Redis, a store or "
            "this decider is slow; events may be sent again, and changes be read first"
        )
        headers = {"retry-after": str(RETRY_AFTER_S)}
        await respond(HTTPStatus.SERVICE_UNAVAILABLE, sentence, headers=headers)(scope, receive, send)


class _Client:
    """Messages that a call receives from its client: the body once, then nothing until the client has left."""

    def __init__(self, body: Message) -> None:
        self._body: Message | None = body
        self.has_left = asyncio.Event()

    async def receive(self) -> Message:
        """Return the next message; a response that is streamed waits here for the client to leave."""
        if self._body is not None:
            body, self._body = self._body, None
            return body
        await self.has_left.wait()
        return {"type": "http.disconnect"}


async def _beside(watch: Coroutine[None, None, None], call: Awaitable[None]) -> None:
    """Await a call, beside a watch that ends with it."""
    watching = asyncio.create_task(watch)
    try:
        await call
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
