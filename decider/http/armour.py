"""Every answer tells a browser to keep it to itself: no guessing of types, no frames, no caches, no referrers."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""What each answer carries unless it says otherwise itself."""

PAGES = frozenset({"/docs", "/redoc"})
"""Pages that load scripts and so cannot have the policy of content; the description's viewer is all there is."""


class Armour:
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
                for name, value in HEADERS.items():
                    if name != "content-security-policy" or scope["path"] not in PAGES:
                        headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, armoured)
