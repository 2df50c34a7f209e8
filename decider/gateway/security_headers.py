"""Security headers of every response: no type sniffing, frames, caches or referrers."""

from collections.abc import Mapping
from types import MappingProxyType

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Default headers of each response."""

_OWN_FILES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

PAGES: Mapping[str, str] = MappingProxyType({"/": _OWN_FILES, "/docs": _OWN_FILES})
"""Content security policy per page: own files and own API only. The style sheet of Swagger UI has images
as `data:`."""


class SecurityHeaders:
    """Adds the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def armoured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if scope["path"] in PAGES:
                    headers["content-security-policy"] = PAGES[scope["path"]]
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, armoured)
