"""Webhook signatures: accepted once, within a few minutes of their timestamp, under any configured secret.

`X-Lakewright-Timestamp` is seconds since 1970, `X-Lakewright-Signature` is `v1=<hex>` of HMAC-SHA256 over
`<timestamp>.<body>`; several, separated by commas, are tried in turn, so a sender may sign with the old secret and the
new one. Accepted signatures are stored until they leave the window; the store is bounded and local to the process.
"""

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Receive

from decider.gateway.credentials import MAX_SECRETS, Credentials, fingerprint

TIMESTAMP = "x-lakewright-timestamp"
SIGNATURE = "x-lakewright-signature"
VERSION = "v1="

MAX_REMEMBERED = 100_000
"""Maximum stored signatures, some 20 MB: 160 requests per second over both sides of the default window."""

_MAX_DIGITS = 12
"""Digits of a time in seconds; more are another unit."""


class InvalidSignature(Exception):  # noqa: N818 - the name says what happened
    """A request with an invalid signature; `field` names the header."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class ReplayDetected(InvalidSignature):
    """A request with a signature that was accepted before."""


class ReplayCacheFull(InvalidSignature):
    """A request whose signature cannot be stored, because the store is full."""


class Signatures:
    """Verifies signatures and detects replays."""

    def __init__(
        self, credentials: Credentials, unix_s: Callable[[], float], *, max_remembered: int = MAX_REMEMBERED
    ) -> None:
        self._credentials = credentials
        self._unix_s = unix_s
        self._max_remembered = max_remembered
        self._until_s: dict[bytes, float] = {}

    def check(self, headers: Headers, body: bytes) -> bytes:
        """Return the replay key of a new valid signature; raises InvalidSignature, ReplayDetected, ReplayCacheFull."""
        timestamp, now_s = headers.get(TIMESTAMP, ""), self._unix_s()
        window_s = self._credentials.window_s
        if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= _MAX_DIGITS):
            raise InvalidSignature("the header X-Lakewright-Timestamp must be seconds since 1970, as digits", TIMESTAMP)
        if abs(now_s - int(timestamp)) > window_s:
            raise InvalidSignature(
                f"the timestamp differs from the server time by more than {window_s:g} s; check the clocks",
                TIMESTAMP,
            )
        given = _signatures(headers.get(SIGNATURE, ""))
        if not self._credentials.is_signed(timestamp=timestamp, signatures=given, body=body):
            raise InvalidSignature(
                "invalid signature; sign '<timestamp>.<body>' with HMAC-SHA256 and a secret of LAKEWRIGHT_HMAC_SECRETS",
                SIGNATURE,
            )
        return self._remember(timestamp, body, now_s)

    def forget(self, key: bytes) -> None:
        """Remove the replay key of a request that could not be served, so that its sender may repeat it."""
        self._until_s.pop(key, None)

    def _remember(self, timestamp: str, body: bytes, now_s: float) -> bytes:
        """Store a request by its signed content, not by its signature: one body may carry several of them."""
        while self._until_s and next(iter(self._until_s.values())) < now_s:
            self._until_s.pop(next(iter(self._until_s)))
        key = fingerprint(timestamp, body)
        if key in self._until_s:
            raise ReplayDetected("replayed signature; sign each request with its own timestamp", SIGNATURE)
        if len(self._until_s) >= self._max_remembered:
            raise ReplayCacheFull("Too many signed requests within the window; batch events or retry later", SIGNATURE)
        # Kept for both sides of the window from now on, so the order of arrival is the order of expiry.
        self._until_s[key] = now_s + 2 * self._credentials.window_s
        return key


def is_claimed(headers: Headers) -> bool:
    """Return whether a request carries a signature."""
    return SIGNATURE in headers


async def read_whole(receive: Receive) -> bytes:
    """Return the body of a request; `receive` enforces its limits."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise HTTPException(400, "client disconnected before the body was received")
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _signatures(text: str) -> list[bytes]:
    """Return the well-formed signatures of a header, at most twice as many as secrets."""
    found = []
    for part in text.split(",")[: 2 * MAX_SECRETS]:
        digits = part.strip().removeprefix(VERSION)
        try:
            found.append(bytes.fromhex(digits) if part.strip().startswith(VERSION) else b"")
        except ValueError:
            continue
    return found
