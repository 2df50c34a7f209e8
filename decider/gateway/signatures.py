"""Webhook signatures: accepted once, within a few minutes of their timestamp, under any configured secret.

Requests are signed as Standard Webhooks (standardwebhooks.com) specifies: `webhook-signature` is `v1,<base64>` of
HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<body>`. Several signatures, separated by spaces, are tried in turn,
so a sender may sign with the old secret and the new one. The library computes signatures; the window, the clock and the
replay cache are ours, because its own verification has a fixed window and no memory. Accepted signatures are stored
until they leave the window; the store is bounded and local to the process.
"""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime

from standardwebhooks import Webhook
from starlette.datastructures import Headers

from decider.gateway.credentials import MAX_SECRETS, Credentials

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"

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
        self._webhooks = tuple(Webhook(secret) for secret in credentials.secrets)
        self._window_s = credentials.window_s
        self._unix_s = unix_s
        self._max_remembered = max_remembered
        self._until_s: OrderedDict[bytes, float] = OrderedDict()

    def check(self, headers: Headers, body: bytes) -> bytes:
        """Return the replay key of a new valid signature; raises InvalidSignature, ReplayDetected, ReplayCacheFull."""
        now_s = self._unix_s()
        timestamp_s = self._timestamp_s(headers, now_s)
        message_id = headers.get(ID, "")
        # A dot would move the border between the id and what follows, and one signature would fit two requests.
        if not message_id or "." in message_id:
            raise InvalidSignature("the header webhook-id must name the message, without a dot", ID)
        if not self._is_signed(message_id, timestamp_s, headers, body):
            raise InvalidSignature(
                "invalid signature; sign '<webhook-id>.<webhook-timestamp>.<body>' with HMAC-SHA256 and a secret of "
                "LAKEWRIGHT_HMAC_SECRETS, as Standard Webhooks specifies",
                SIGNATURE,
            )
        return self._remember(f"{message_id}.{timestamp_s}.".encode() + body, now_s)

    def forget(self, key: bytes) -> None:
        """Remove the replay key of a request that could not be served, so that its sender may repeat it."""
        self._until_s.pop(key, None)

    def _timestamp_s(self, headers: Headers, now_s: float) -> int:
        timestamp = headers.get(TIMESTAMP, "")
        if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= _MAX_DIGITS):
            raise InvalidSignature("the header webhook-timestamp must be seconds since 1970, as digits", TIMESTAMP)
        if abs(now_s - int(timestamp)) > self._window_s:
            raise InvalidSignature(
                f"the timestamp differs from the server time by more than {self._window_s:g} s; check the clocks",
                TIMESTAMP,
            )
        return int(timestamp)

    def _is_signed(self, message_id: str, timestamp_s: int, headers: Headers, body: bytes) -> bool:
        """Return whether any signature of a request matches under any secret; only UTF-8 can be signed."""
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return False
        at = datetime.fromtimestamp(timestamp_s, UTC)
        expected = [webhook.sign(message_id, at, text).encode() for webhook in self._webhooks]
        given = headers.get(SIGNATURE, "").encode().split(b" ", 2 * MAX_SECRETS)[: 2 * MAX_SECRETS]
        # A sum, because `any` would stop at the first that fits.
        return sum(hmac.compare_digest(one, other) for one in given for other in expected) > 0

    def _remember(self, content: bytes, now_s: float) -> bytes:
        """Store a request by its signed content, not by its signature: one body may carry several of them."""
        while self._until_s and next(iter(self._until_s.values())) < now_s:
            self._until_s.popitem(last=False)
        key = hashlib.sha256(content).digest()
        if key in self._until_s:
            raise ReplayDetected("replayed signature; sign each request with its own timestamp", SIGNATURE)
        if len(self._until_s) >= self._max_remembered:
            raise ReplayCacheFull("Too many signed requests within the window; batch events or retry later", SIGNATURE)
        # Kept for both sides of the window from now on, so the order of arrival is the order of expiry.
        self._until_s[key] = now_s + 2 * self._window_s
        return key


def is_claimed(headers: Headers) -> bool:
    """Return whether a request carries a signature."""
    return SIGNATURE in headers
