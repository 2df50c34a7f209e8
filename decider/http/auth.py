"""Who may call: on the loopback address anybody who can reach it, elsewhere only who carries the bearer token.

The check comes before the body is read, so a stranger cannot make the service read a megabyte, and it compares in
constant time, so that the answer's delay says nothing about the token.
"""

import hmac
import ipaddress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from decider.http.problems import respond
from shared.errors import InvalidInput

GUARDED = "/v1/"
"""What the token guards: everything that reads or changes state. Probes and the API's description are open."""


def require_token_beyond_loopback(host: str, token: str | None) -> None:
    """Refuse to listen where others can call, unless they need a token. Raises InvalidInput."""
    if token is None and not _is_loopback(host):
        raise InvalidInput(
            f"refusing to listen on {host} without a token: everybody on that network could post events and start "
            "rewrites; set LAKEWRIGHT_TOKEN, or listen on 127.0.0.1",
            field="LAKEWRIGHT_TOKEN",
        )


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class BearerToken:
    """Lets calls below /v1 pass only with `Authorization: Bearer <token>`; without a token all pass."""

    def __init__(self, app: ASGIApp, *, token: str | None) -> None:
        self._app = app
        self._expected = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if self._expected is None or scope["type"] != "http" or not scope["path"].startswith(GUARDED):
            await self._app(scope, receive, send)
            return
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        is_known = hmac.compare_digest(given.strip().encode(), self._expected)
        if scheme.lower() == "bearer" and is_known:
            await self._app(scope, receive, send)
            return
        refusal = respond(
            401,
            "this call needs the header 'Authorization: Bearer <token>' with the token of LAKEWRIGHT_TOKEN",
            field="Authorization",
            headers={"www-authenticate": "Bearer"},
        )
        await refusal(scope, receive, send)
