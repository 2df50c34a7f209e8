"""Bodies are bounded while they arrive: nobody can make the service hold more than one limit's worth per call."""

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from decider.http.problems import respond


class BoundedBody:
    """Answers 413 to a body above `limit_bytes`, whether its length is announced or it comes in chunks."""

    def __init__(self, app: ASGIApp, *, limit_bytes: int) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced) > self._limit_bytes:
            refusal = respond(413, self._sentence, field="body", headers={"connection": "close"})
            await refusal(scope, receive, send)
            return
        received = 0

        async def bounded() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self._limit_bytes:
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._sentence, {"connection": "close"})
            return message

        await self._app(scope, bounded, send)

    @property
    def _sentence(self) -> str:
        return f"the body has more than {self._limit_bytes} bytes; split it, or raise LAKEWRIGHT_MAX_BODY_BYTES"
