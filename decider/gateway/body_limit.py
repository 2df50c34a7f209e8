"""Request bodies are bounded in bytes and in time while they arrive."""

import asyncio
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from decider.web.errors import respond

_CLOSE = {"connection": "close"}


class BodyLimit:
    """Returns 413 for a body above `limit_bytes`, announced or chunked, and 408 for one that arrives too late."""

    def __init__(self, app: ASGIApp, *, limit_bytes: int, timeout_s: float) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced) > self._limit_bytes:
            refusal = respond(413, self._sentence, field="body", headers=_CLOSE)
            await refusal(scope, receive, send)
            return
        received = 0
        is_whole = False
        until_s = asyncio.get_running_loop().time() + self._timeout_s

        async def bounded() -> Message:
            nonlocal received, is_whole
            if is_whole:
                # The next message is the disconnect, for which a streaming response may wait for hours.
                return await receive()
            try:
                async with asyncio.timeout_at(until_s):
                    message = await receive()
            except TimeoutError:
                sentence = f"body not received within {self._timeout_s:g} s (LAKEWRIGHT_BODY_TIMEOUT_S)"
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, sentence, _CLOSE) from None
            is_whole = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if received > self._limit_bytes:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._sentence, _CLOSE)
            return message

        await self._app(scope, bounded, send)

    @property
    def _sentence(self) -> str:
        return f"body exceeds {self._limit_bytes} bytes; split it or raise LAKEWRIGHT_MAX_BODY_BYTES"
