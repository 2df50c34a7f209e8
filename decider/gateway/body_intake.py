"""Bodies are read whole before a call takes a slot: bounded in bytes, in time and in number, of all and of each client.

Where too many arrive at once, the one that began first gives way, of the same client if that has its share: an honest
body is there within milliseconds, so those that trickle displace each other and cost no other client anything.
"""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from decider.gateway.rate_limit import client_of
from decider.gateway.roles import needed
from decider.web.errors import RETRY_AFTER_S, respond

BODIES = 256
"""Bodies that are being read at once: with the largest size a quarter of a gigabyte."""

BODIES_PER_CLIENT = 64
"""Such bodies of one client."""

_CLOSE = {"connection": "close"}


class ClientLeft(Exception):  # noqa: N818 - the name says what happened
    """The client closed its connection within its body: no client waits for a response."""


@dataclass(slots=True, eq=False)
class _Reading:
    """A body that is being read."""

    client: str
    deadline: asyncio.Timeout
    is_displaced: bool = False

    def displace(self) -> None:
        """End it in favor of a newer one."""
        self.is_displaced = True
        self.deadline.reschedule(asyncio.get_running_loop().time())


class BodyIntake:
    """Reads bodies."""

    def __init__(self, *, limit_bytes: int, timeout_s: float) -> None:
        self._limit_bytes = limit_bytes
        self._timeout_s = timeout_s
        self._readings: dict[_Reading, None] = {}

    async def read(self, scope: Scope, receive: Receive, client: str) -> bytes:
        """Return the body of a call.

        Raises HTTPException: 400 for one of two lengths, 413 for one that is too large, announced or not, 408 for one
        that comes too late, 503 for one that gave way. Raises ClientLeft.
        """
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "0")
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy that goes by the other one takes the rest for the next call, of another client perhaps.
            raise HTTPException(HTTPStatus.BAD_REQUEST, "a body has a length or is chunked, not both", _CLOSE)
        if announced.isdecimal() and int(announced) > self._limit_bytes:
            raise self._too_large()
        until_s = asyncio.get_running_loop().time() + self._timeout_s
        reading: _Reading | None = None
        try:
            async with asyncio.timeout_at(until_s) as deadline:
                reading = self._enter(_Reading(client, deadline))
                return await self._parts(receive)
        except TimeoutError:
            if reading is not None and reading.is_displaced:
                later = {"retry-after": str(RETRY_AFTER_S), **_CLOSE}
                sentence = "too many bodies arrive at once, and this one began first; send it whole, or retry later"
                raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, sentence, later) from None
            sentence = f"body not received within {self._timeout_s:g} s (LAKEWRIGHT_BODY_TIMEOUT_S)"
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, sentence, _CLOSE) from None
        finally:
            if reading is not None:
                self._readings.pop(reading, None)

    def _enter(self, new: _Reading) -> _Reading:
        own = [one for one in self._readings if one.client == new.client]
        crowd = own if len(own) >= BODIES_PER_CLIENT else list(self._readings)
        if len(own) >= BODIES_PER_CLIENT or len(crowd) >= BODIES:
            del self._readings[crowd[0]]
            crowd[0].displace()
        self._readings[new] = None
        return new

    async def _parts(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        received = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientLeft
            parts.append(message.get("body", b""))
            received += len(parts[-1])
            if received > self._limit_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> HTTPException:
        sentence = f"body exceeds {self._limit_bytes} bytes; split it or raise LAKEWRIGHT_MAX_BODY_BYTES"
        return HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence, _CLOSE)


class WholeBodies:
    """Passes calls on once their body is there; bodies of open operations are not read."""

    def __init__(self, app: ASGIApp, *, intake: BodyIntake) -> None:
        self._app = app
        self._intake = intake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http" or needed(scope["method"], scope["path"]) is None:
            await self._app(scope, receive, send)
            return
        try:
            body = await self._intake.read(scope, receive, client_of(scope))
        except ClientLeft:
            return
        except HTTPException as problem:
            await refusal(problem)(scope, receive, send)
            return
        await self._app(scope, replay(body, receive), send)


def refusal(problem: HTTPException) -> ASGIApp:
    """Return the response for a body that is not taken."""
    return respond(problem.status_code, str(problem.detail), field="body", headers=problem.headers)


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a source that gives a body that was read already, and then whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Message:
        return waiting.pop() if waiting else await receive()

    return given
