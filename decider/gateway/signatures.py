"""A signed webhook is believed once, within a few minutes of its time, and under any of the secrets in use.

`X-Lakewright-Timestamp` is seconds since 1970, `X-Lakewright-Signature` is `v1=<hex>` of HMAC-SHA256 over
`<timestamp>.<body>`; several, separated by commas, are tried in turn, so a sender may sign with the old secret and the
new one. What was believed is remembered until its time is out of the window; the memory is bounded and of this process.
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
"""Signatures remembered at the same time, some 20 MB: 160 calls a second over both sides of the default window."""

_MAX_DIGITS = 12
"""Digits of a time in seconds; more are another unit."""


class InvalidSignature(Exception):  # noqa: N818 - the name says what happened
    """A call whose signature does not hold; `field` names the header."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class ReplayDetected(InvalidSignature):
    """A call whose signature was believed before."""


class ReplayCacheFull(InvalidSignature):
    """A call whose signature cannot be remembered at the moment."""


class Signatures:
    """Checks signatures and remembers them."""

    def __init__(
        self, credentials: Credentials, unix_s: Callable[[], float], *, max_remembered: int = MAX_REMEMBERED
    ) -> None:
        self._credentials = credentials
        self._unix_s = unix_s
        self._max_remembered = max_remembered
        self._until_s: dict[bytes, float] = {}

    def check(self, headers: Headers, body: bytes) -> bytes:
        """Return what a call is remembered by if it is signed and new; raises Unsigned, Replayed or Crowded."""
        timestamp, now_s = headers.get(TIMESTAMP, ""), self._unix_s()
        window_s = self._credentials.window_s
        if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= _MAX_DIGITS):
            raise InvalidSignature("the header X-Lakewright-Timestamp must be seconds since 1970, as digits", TIMESTAMP)
        if abs(now_s - int(timestamp)) > window_s:
            raise InvalidSignature(
                f"the signature's time is more than {window_s:g} s away from ours; send at once, and keep clocks right",
                TIMESTAMP,
            )
        given = _signatures(headers.get(SIGNATURE, ""))
        if not self._credentials.is_signed(timestamp=timestamp, signatures=given, body=body):
            raise InvalidSignature(
                "the signature does not fit the body; sign '<timestamp>.<body>' with HMAC-SHA256 and a secret of "
                "LAKEWRIGHT_HMAC_SECRETS",
                SIGNATURE,
            )
        return self._remember(timestamp, body, now_s)

    def forget(self, key: bytes) -> None:
        """Forget a call that was believed and came to nothing, so that its sender may repeat it."""
        self._until_s.pop(key, None)

    def _remember(self, timestamp: str, body: bytes, now_s: float) -> bytes:
        """Remember a call by what was signed, not by its signature: one body may carry several of them."""
        while self._until_s and next(iter(self._until_s.values())) < now_s:
            self._until_s.pop(next(iter(self._until_s)))
        key = fingerprint(timestamp, body)
        if key in self._until_s:
            raise ReplayDetected("this signed call was taken before; sign it anew if it is another one", SIGNATURE)
        if len(self._until_s) >= self._max_remembered:
            raise ReplayCacheFull(
                "too many signed calls within the window to tell new ones from old ones; batch them", SIGNATURE
            )
        # Kept for both sides of the window from now on, so the order of arrival is the order of expiry.
        self._until_s[key] = now_s + 2 * self._credentials.window_s
        return key


def is_claimed(headers: Headers) -> bool:
    """Say whether a call claims to be signed."""
    return SIGNATURE in headers


async def read_whole(receive: Receive) -> bytes:
    """Return a call's body; what bounds it is around `receive`."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise HTTPException(400, "the caller left before its body was there")
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _signatures(text: str) -> list[bytes]:
    """Return the signatures of a header; what is none is left out, and more than there can be secrets are not read."""
    found = []
    for part in text.split(",")[: 2 * MAX_SECRETS]:
        digits = part.strip().removeprefix(VERSION)
        try:
            found.append(bytes.fromhex(digits) if part.strip().startswith(VERSION) else b"")
        except ValueError:
            continue
    return found
