"""Credentials that a Unity catalog gives for the files of one table: short-lived, and kept in memory alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.errors import PermanentError


@dataclass(frozen=True, slots=True)
class TemporaryCredentials:
    """Credentials under the names that obstore gives them; `expires_ms`: since the epoch, None if they do not expire.

    Empty: the catalog has none for such a place, such as a local folder.
    """

    values: Mapping[str, str | None] = field(default_factory=dict, repr=False, hash=False)
    expires_ms: int | None = None


_AWS = {"access_key_id": "access_key_id", "secret_access_key": "secret_access_key", "session_token": "token"}
_KINDS: Mapping[str, Mapping[str, str]] = {
    "aws_temp_credentials": _AWS,
    "azure_user_delegation_sas": {"sas_token": "sas_token"},
    "gcp_oauth_token": {"oauth_token": "token"},
}
_OPTIONAL = "session_token"
"""Optional part: a server with keys of its own, and no role to assume, gives none."""

_SCHEMES = {"s3": "aws_temp_credentials", "abfss": "azure_user_delegation_sas", "gs": "gcp_oauth_token"}
"""The kind of credentials that opens the stores of a scheme."""


def decode_credentials(found: Mapping[str, Any], scheme: str, doing: str) -> TemporaryCredentials:
    """Decode credentials for a location of a scheme; raises PermanentError for damaged ones and another's."""
    given = [kind for kind in _KINDS if found.get(kind) is not None]
    if not given:
        return TemporaryCredentials()
    kind = _SCHEMES.get(scheme, "")
    if given != [kind]:
        raise PermanentError(f"{doing}: the catalog gave {', '.join(given)} for a location that begins with {scheme}:")
    raw, values = found[kind], dict[str, str | None]()
    for name, own in _KINDS[kind].items():
        value = (raw.get(name) or None) if isinstance(raw, dict) else None
        if not isinstance(value, str) and not (value is None and name == _OPTIONAL and isinstance(raw, dict)):
            raise PermanentError(f"{doing}: {kind} has no text as {name}")
        values[own] = value
    expires_ms = found.get("expiration_time")
    if expires_ms is not None and type(expires_ms) is not int:
        raise PermanentError(f"{doing}: expiration_time is no number of milliseconds")
    return TemporaryCredentials(values, expires_ms)
