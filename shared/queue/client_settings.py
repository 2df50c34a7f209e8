"""Settings of a Redis client, for clients of threads and of asyncio alike: its address, and its own retries.

The settings are `redis.connection_pool.connection_kwargs`; nothing of the Redis library is needed to read them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

SENTINEL_SCHEMES = {"redis+sentinel": "redis", "rediss+sentinel": "rediss"}
"""Schemes of URLs that name sentinels, with the scheme of the primary that these know."""

SENTINEL_PORT = 26_379
"""Port of a sentinel that its URL does not name."""

SENTINEL_URL_FORM = "redis+sentinel://[user:password@]host[:26379],host,host/primary-name[/db][?options]"

_SENTINEL = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:,@/\s]+)(?::([0-9]{1,5}))?")
_SENTINEL_OPTIONS = {"sentinel_username": "username", "sentinel_password": "password"}

_OF_ADDRESS = ("host", "port")
"""Settings that do not apply to connections whose address sentinels know."""

_OF_PRIMARY = ("username", "password", "db", "max_connections", "timeout")
"""Settings that do not apply to the connections to the sentinels."""


@dataclass(frozen=True, slots=True)
class SentinelUrl:
    """A primary that sentinels know by a name.

    primary_url: URL of the primary as if it were the first sentinel: all but its address applies. credentials: user and
    password of the sentinels, as settings of a client.
    """

    sentinels: tuple[tuple[str, int], ...]
    primary: str
    primary_url: str
    credentials: Mapping[str, str]

    @property
    def address(self) -> str:
        """Where the primary is found, for messages."""
        return f"{self.primary} at the sentinels {', '.join(f'{host}:{port}' for host, port in self.sentinels)}"


def parse_sentinel_url(url: str) -> SentinelUrl | None:
    """Return what a URL of sentinels names, None for any other. Raises ValueError with the form, without the URL."""
    parts = urlsplit(url)
    if parts.scheme not in SENTINEL_SCHEMES:
        return None
    login, at, hosts = parts.netloc.rpartition("@")
    found = [_SENTINEL.fullmatch(one) for one in hosts.split(",")]
    sentinels = tuple((one[1].strip("[]"), int(one[2] or SENTINEL_PORT)) for one in found if one)
    primary, _, database = parts.path.removeprefix("/").partition("/")
    is_complete = len(sentinels) == len(found) and primary and (database or "0").isdecimal()
    if not is_complete or any(not 0 < port < 2**16 for _, port in sentinels):
        raise ValueError(f"expected {SENTINEL_URL_FORM}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    credentials = {name: options.pop(option) for option, name in _SENTINEL_OPTIONS.items() if option in options}
    first = f"{login}{at}{hosts.split(',')[0]}"
    plain = urlunsplit((SENTINEL_SCHEMES[parts.scheme], first, f"/{database or 0}", urlencode(options), ""))
    return SentinelUrl(sentinels, primary, plain, credentials)


def primary_settings(settings: Mapping[str, Any], *, is_encrypted: bool) -> dict[str, Any]:
    """Return the settings of connections to a primary whose address the sentinels know, made from a plain client's."""
    return {name: value for name, value in settings.items() if name not in _OF_ADDRESS} | {"ssl": is_encrypted}


def sentinel_settings(to_primary: Mapping[str, Any], url: SentinelUrl) -> dict[str, Any]:
    """Return the settings of connections to the sentinels: those to the primary, with credentials of their own."""
    return {name: value for name, value in to_primary.items() if name not in _OF_PRIMARY} | dict(url.credentials)


def address_in(settings: Mapping[str, Any]) -> str:
    """Return where a client connects to, without credentials, for messages."""
    return str(settings.get("path") or f"{settings.get('host', 'localhost')}:{settings.get('port', 6379)}")


def retries_itself(settings: Mapping[str, Any]) -> bool:
    """Return whether a client repeats commands by itself; a retry must be the executor's decision."""
    retry = settings.get("retry")
    if retry is None:
        return bool(settings.get("retry_on_timeout") or settings.get("retry_on_error"))
    return bool(retry.get_retries() != 0)
