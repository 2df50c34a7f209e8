"""Tokens, roles and signature secrets; tokens are stored as hashes only.

All comparisons take constant time, so that response times disclose nothing. Standard library only, because the settings
are read where no server is installed.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MIN_TOKEN_CHARS = 16
"""Sixteen characters from a generator are beyond guessing; a shorter word is not."""

MIN_SECRET_CHARS = 32
"""A signature can be tried offline by an attacker who has seen one, so its secret must be longer than a token."""

SECRET_PREFIX = "whsec_"  # noqa: S105
"""Begins a secret as Standard Webhooks writes it: base64 of its bytes follows. Any other is taken as it is."""

SECRET_BYTES = range(24, 65)
"""Bytes of a secret in base64, as Standard Webhooks requires."""

MAX_SECRETS = 4
"""Secrets for signatures at the same time: two for a rotation, twice over."""

MAX_TOKENS = 1_000
"""Tokens of one service; each call is compared with all of them."""

_HASH_PREFIX = "sha256:"
_NOTHING = hashlib.sha256(b"").digest()
"""Digest of an empty variable by `sha256sum`; with it, a caller with an empty token would be accepted."""

_HASHED = re.compile(r"sha256:([0-9a-f]{64})")


class Role(StrEnum):
    """Role of a token: post events, read, operate, or administer."""

    HOOK = "hook"
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


MAY_ACT_AS: Mapping[Role, frozenset[Role]] = {
    Role.HOOK: frozenset({Role.HOOK}),
    Role.VIEWER: frozenset({Role.VIEWER}),
    Role.OPERATOR: frozenset({Role.OPERATOR, Role.VIEWER, Role.HOOK}),
    Role.ADMIN: frozenset(Role),
}
"""Roles that each role includes; a viewer may not post events, and a hook may not read."""


@dataclass(frozen=True, slots=True)
class TokenHash:
    """A bearer token's role and SHA-256; tokens are long and random, so one round is enough."""

    role: Role
    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, role: Role, token: str) -> "TokenHash":
        """Hash a token, or take the hash from `sha256:<64 hex digits>`. Raises ValueError for a guessable one."""
        if token.startswith(_HASH_PREFIX):
            hashed = _HASHED.fullmatch(token)
            if hashed is None or bytes.fromhex(hashed[1]) == _NOTHING:
                raise ValueError("expected 64 lower-case hex digits behind sha256:, and not the hash of nothing")
            return cls(role, bytes.fromhex(hashed[1]))
        _check_secret(token, MIN_TOKEN_CHARS)
        return cls(role, hashlib.sha256(token.encode()).digest())

    @property
    def name(self) -> str:
        """Return the client name for logs and limits: the role and a few digits of the hash."""
        return f"{self.role}-{self.digest.hex()[:8]}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Configured credentials; without any, every request is permitted.

    secrets: for HMAC-SHA256 of webhooks, any of which will do, so that one can replace another. window_s: how far a
    signature's time may be from ours, in seconds.
    """

    tokens: tuple[TokenHash, ...] = ()
    secrets: tuple[bytes, ...] = field(default=(), repr=False)
    window_s: float = 300.0

    @property
    def are_needed(self) -> bool:
        """Return whether credentials are required."""
        return bool(self.tokens or self.secrets)

    def bearer(self, token: str) -> TokenHash | None:
        """Return the matching configured token; every token is compared, whichever matches."""
        digest = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        found: TokenHash | None = None
        for known in self.tokens:
            if hmac.compare_digest(known.digest, digest):
                found = found or known
        return found


def parse_tokens(text: str) -> tuple[TokenHash, ...]:
    """Read `role:token` pairs, separated by commas or line ends; lines that begin with `#` are words.

    Raises ValueError, which says the number of what is wrong and never quotes it.
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    parts = [part.strip() for line in lines for part in line.split(",") if part.strip()]
    if len(parts) > MAX_TOKENS:
        raise ValueError(f"expected at most {MAX_TOKENS} tokens, found {len(parts)}")
    return tuple(_token(part, number) for number, part in enumerate(parts, 1))


def parse_secrets(text: str) -> tuple[bytes, ...]:
    """Read secrets separated by commas. Raises ValueError, which quotes none."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) > MAX_SECRETS:
        raise ValueError(f"expected at most {MAX_SECRETS} secrets, found {len(parts)}")
    return tuple(_secret(part) for part in parts)


def _token(part: str, number: int) -> TokenHash:
    role, colon, token = part.partition(":")
    if not colon or role.strip() not in set(Role):
        raise ValueError(f"entry {number} is no role:token pair with one of the roles {', '.join(Role)}")
    try:
        return TokenHash.of(Role(role.strip()), token.strip())
    except ValueError as problem:
        raise ValueError(f"entry {number}: {problem}") from problem


def _secret(text: str) -> bytes:
    """Return the bytes of a secret in either notation."""
    if not text.startswith(SECRET_PREFIX):
        _check_secret(text, MIN_SECRET_CHARS)
        return text.encode()
    try:
        secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        secret = b""
    if len(secret) not in SECRET_BYTES:
        raise ValueError(f"expected {SECRET_BYTES[0]} to {SECRET_BYTES[-1]} bytes in base64 after {SECRET_PREFIX}")
    return secret


def _check_secret(secret: str, least: int) -> None:
    if len(secret) < least or not secret.isascii() or any(letter.isspace() for letter in secret):
        raise ValueError(f"expected at least {least} ASCII characters without blanks")
