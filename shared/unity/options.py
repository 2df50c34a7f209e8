"""The options of one Unity catalog, as the setting of catalogs spells them.

A catalog names the location of each table, and its users choose it when they register one. Lakewright reads and
rewrites with credentials of its own, which may reach further than theirs, so the setting limits these locations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from shared.errors import InvalidInput
from shared.paths.locations import CATALOG, canonical_location

TYPE = "unity"
"""Value of the option `type` by which a catalog is one of Unity's."""

DEFAULT_TIMEOUT_S = 30.0
"""Seconds for one request, from connecting to the end of the answer: pages of large schemas take several."""

_TIMEOUTS_S = (1.0, 600.0)
_OPTIONS = ("type", "uri", "token", "locations", "timeout-s")


@dataclass(frozen=True, slots=True)
class UnityOptions:
    """Address without a final slash, bearer token (empty: none), and canonical locations below which tables may lie."""

    uri: str
    locations: tuple[str, ...]
    token: str = field(default="", repr=False)
    timeout_s: float = DEFAULT_TIMEOUT_S


def is_unity(options: Mapping[str, str]) -> bool:
    """Return whether these options of a catalog are a Unity catalog's."""
    return options.get("type") == TYPE


def parse_options(catalog: str, options: Mapping[str, str]) -> UnityOptions:
    """Read the options of the catalog of a name. Raises ValueError, which repeats no value: one is a secret."""
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        known = ", ".join(_OPTIONS)
        raise ValueError(f"catalog {catalog}: a Unity catalog has no option {unknown[0]!r}; it has {known}")
    return UnityOptions(
        uri=_uri(catalog, options.get("uri", "")),
        locations=_locations(catalog, options.get("locations", "")),
        token=_token(catalog, options.get("token", "")),
        timeout_s=_timeout_s(catalog, options.get("timeout-s", "")),
    )


def _uri(catalog: str, text: str) -> str:
    problem = ValueError(
        f"catalog {catalog}: `uri` is the address of the REST API without user, query or fragment, such as "
        "https://catalog.example.com/api/2.1/unity-catalog"
    )
    try:
        parts = urlsplit(text.strip())
        is_usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise problem from None
    if parts.scheme not in ("http", "https") or not is_usable or "@" in parts.netloc or parts.query or "#" in text:
        raise problem
    return text.strip().rstrip("/")


def _locations(catalog: str, text: str) -> tuple[str, ...]:
    wanted = f"catalog {catalog}: `locations` lists where its tables may lie, such as s3://lake,s3://raw/sales"
    try:
        found = tuple(canonical_location(part.strip()) for part in text.split(",") if part.strip())
    except InvalidInput:
        raise ValueError(wanted) from None
    if not found or any(location.startswith(CATALOG) for location in found):
        raise ValueError(wanted)
    return found


def _token(catalog: str, text: str) -> str:
    """Read a token, which becomes part of a header: what ends a header would begin another."""
    if not all("!" <= character <= "~" for character in text):
        raise ValueError(f"catalog {catalog}: `token` has a character that no bearer token has")
    return text


def _timeout_s(catalog: str, text: str) -> float:
    low, high = _TIMEOUTS_S
    try:
        timeout_s = float(text) if text else DEFAULT_TIMEOUT_S
    except ValueError:
        timeout_s = 0.0
    if not low <= timeout_s <= high:
        raise ValueError(f"catalog {catalog}: `timeout-s` is a number of seconds from {low:g} to {high:g}")
    return timeout_s
