"""Authentication: a bearer token or an HMAC signature, required unless the server listens on the loopback address.

It runs before the body is read, so that unauthenticated clients cannot make the service read megabytes; only the body
of a signed request is read first, within the same limits. Clients with invalid credentials are rate limited.
"""

import base64
import binascii
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from decider.gateway.body_intake import BodyIntake, ClientLeft, refusal, replay
from decider.gateway.concurrency import busy
from decider.gateway.credentials import MAY_ACT_AS, Credentials, Role, TokenHash
from decider.gateway.rate_limit import Rate, address, too_fast
from decider.gateway.roles import needed, takes_events
from decider.gateway.signatures import (
    InvalidSignature,
    ReplayCacheFull,
    ReplayDetected,
    Signatures,
    is_claimed,
)
from decider.web.errors import respond
from shared.errors import InvalidInput

FAILURES_PER_S = 5.0
"""Invalid credentials per second and address that get 401; beyond it, 429. Valid credentials are never limited by it.
A rotation needs fewer; tokens of 16 characters or more are what prevents guessing."""

QUERY_KEY = "key"
"""The parameter that may carry a token of the role `hook`, for senders that can set nothing else."""

MAX_QUERY_FIELDS = 20
"""Parameters of a webhook's query among which the key is searched; senders add one or two, many take long to read."""

_FAILED = 500
_TOO_FAST = 429
_BEARER, _BASIC = "bearer", "basic"


class ForbiddenCall(Exception):  # noqa: N818 - the name says what happened
    """A request that the role of its token does not permit."""


def require_credentials_beyond_loopback(host: str, credentials: Credentials) -> None:
    """Require credentials for every address but the loopback. Raises InvalidInput."""
    if not credentials.are_needed and not is_loopback(host):
        raise InvalidInput(
            f"refusing to listen on {host} without a token: any host of that network could post events and start "
            "rewrites; set LAKEWRIGHT_TOKEN or LAKEWRIGHT_TOKENS, or listen on 127.0.0.1",
            field="LAKEWRIGHT_TOKEN",
        )


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class _PresentedToken:
    """A token and its transport."""

    token: str
    way: str


CALLER_ROLE = "lakewright.role"
"""Key of a request's scope with the role of its token, for routes whose options need another one than they do."""


class AuthMiddleware:
    """Passes requests of clients with the required role; without credentials, those from this host."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        credentials: Credentials,
        intake: BodyIntake,
        clock_s: Callable[[], float],
        unix_s: Callable[[], float],
    ) -> None:
        self._app = app
        self._credentials = credentials
        self._signatures = Signatures(credentials, unix_s)
        self._failures = Rate(FAILURES_PER_S)
        self._intake = intake
        self._clock_s = clock_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        role = needed(scope["method"], scope["path"])
        if role is None:
            await self._app(scope, receive, send)
        elif not self._credentials.are_needed:
            passed = self._app if _is_from_here(headers) else _OTHER_SITE
            await passed(scope, receive, send)
        elif self._credentials.secrets and takes_events(scope["path"]) and is_claimed(headers):
            await self._signed(scope, receive, send)
        else:
            answer = self._bearer(scope, headers, role)
            await answer(scope, receive, send)

    def _bearer(self, scope: Scope, headers: Headers, role: Role) -> ASGIApp:
        try:
            bearer = self._caller(scope, headers, role)
        except ForbiddenCall as problem:
            return respond(403, str(problem), field="Authorization", allowed=role.value)
        if bearer is None:
            return self._stranger(scope)
        scope["lakewright.client"] = f"{bearer.name}@{address(scope)}"
        scope[CALLER_ROLE] = bearer.role
        return self._app

    def _caller(self, scope: Scope, headers: Headers, role: Role) -> TokenHash | None:
        shown = _shown(scope, headers)
        bearer = self._credentials.bearer(shown.token) if shown else None
        if shown is None or bearer is None:
            return None
        if shown.way != _BEARER and bearer.role is not Role.HOOK:
            raise ForbiddenCall(f"tokens of the role {bearer.role} are accepted as bearer tokens only")
        if role not in MAY_ACT_AS[bearer.role]:
            raise ForbiddenCall(f"this operation requires the role {role}; the token has the role {bearer.role}")
        return bearer

    async def _signed(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = f"signed@{address(scope)}"
        try:
            body = await self._intake.read(scope, receive, client)
        except ClientLeft:
            return
        except HTTPException as problem:
            await refusal(problem)(scope, receive, send)
            return
        try:
            key = self._signatures.check(Headers(scope=scope), body)
        except ReplayCacheFull as problem:
            answer = busy(str(problem))
        except ReplayDetected as problem:
            answer = respond(409, str(problem), field=problem.field)
        except InvalidSignature as problem:
            answer = self._stranger(scope, str(problem), field=problem.field)
        else:
            scope["lakewright.client"] = client
            answer = self._once(key)
        await answer(scope, replay(body, receive), send)

    def _once(self, key: bytes) -> ASGIApp:
        """Return the application; a signed request that it could not serve may be repeated once its answer begins."""

        async def served(scope: Scope, receive: Receive, send: Send) -> None:
            is_answered = False

            async def recorded(message: Message) -> None:
                nonlocal is_answered
                if message["type"] == "http.response.start":
                    is_answered = True
                    if message["status"] >= _FAILED or message["status"] == _TOO_FAST:
                        self._signatures.forget(key)
                await send(message)

            try:
                await self._app(scope, receive, recorded)
            finally:
                if not is_answered:
                    self._signatures.forget(key)

        return served

    def _stranger(self, scope: Scope, detail: str = "", *, field: str = "Authorization") -> ASGIApp:
        # A request without credentials is no guess: some senders wait for the challenge.
        guesses = bool(detail) or _shows_something(scope)
        wait_s = self._failures.wait_s(address(scope), self._clock_s()) if guesses else 0.0
        if wait_s:
            return too_fast("Too many requests with invalid credentials", wait_s)
        # Some senders, SNS among them, send a password only after a challenge.
        asked = 'Bearer, Basic realm="lakewright"' if takes_events(scope["path"]) else "Bearer"
        sentence = detail or "Missing or invalid bearer token"
        return respond(401, sentence, field=field, headers={"www-authenticate": asked})


def _shown(scope: Scope, headers: Headers) -> _PresentedToken | None:
    """Return the token of a request: from its header, a webhook's password, or a webhook's key."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == _BEARER:
        return _PresentedToken(given.strip(), _BEARER)
    if not takes_events(scope["path"]):
        return None
    if scheme.lower() == _BASIC:
        return _password(given.strip())
    try:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=MAX_QUERY_FIELDS)
    except ValueError:
        return None
    keys = query.get(QUERY_KEY)
    return _PresentedToken(keys[0], "query") if keys else None


def _shows_something(scope: Scope) -> bool:
    """Return whether a request without a valid token has an invalid one."""
    headers = Headers(scope=scope)
    return "authorization" in headers or _shown(scope, headers) is not None


def _password(given: str) -> _PresentedToken | None:
    try:
        text = base64.b64decode(given, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return _PresentedToken(text.partition(":")[2], _BASIC)


def _is_from_here(headers: Headers) -> bool:
    """Return whether neither another site's page, by its origin, nor another name for our address makes this call.

    A page may call another site without naming its origin, by a picture's address; then the browser says so.
    """
    if headers.get("sec-fetch-site") not in _OWN_SITES:
        return False
    origin = headers.get("origin")
    try:
        hosts = [headers.get("host", "")] + ([] if origin is None else [urlsplit(origin).netloc])
        return all(is_loopback(urlsplit(f"//{host}").hostname or "") for host in hosts)
    except ValueError:
        return False


_OWN_SITES = (None, "same-origin", "none")
"""Values of `Sec-Fetch-Site` from programs, our own pages, and an address that a person typed."""

_OTHER_SITE: ASGIApp = respond(
    403,
    "without tokens, requests are accepted only from this host, via its loopback address, and not from other sites",
    field="Host",
    allowed="localhost, 127.0.0.1 or [::1]",
)
