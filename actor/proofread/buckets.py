"""How DuckDB reaches the buckets of a group: secrets of each group, from what the actor itself was given.

The options are from `LAKEWRIGHT_STORE_OPTIONS`, by obstore's names or Hadoop's; keys that they lack come from the
environment, as for Hadoop. Keys of an instance or a pod are asked from the caller (`Credentials`).
"""

import os
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlsplit

from actor.proofread.locations import is_local, place_of
from actor.proofread.model import Rewritten
from shared.paths.store_options import StoreOptions

Credentials = Callable[[str], Mapping[str, str]]
"""Returns `access_key_id`, `secret_access_key` and perhaps `session_token` of a bucket; none if it has none."""

_HADOOP: Mapping[str, str] = {
    "fs.s3a.access.key": "access_key_id",
    "fs.s3a.secret.key": "secret_access_key",
    "fs.s3a.session.token": "session_token",
    "fs.s3a.endpoint": "endpoint",
    "fs.s3a.endpoint.region": "region",
}
_SAME: Mapping[str, str] = {
    "token": "session_token",
    "default_region": "region",
    "endpoint_url": "endpoint",
    "endpoint_url_s3": "endpoint",
}
_KEYS: Mapping[str, str] = {
    "access_key_id": "KEY_ID",
    "secret_access_key": "SECRET",
    "session_token": "SESSION_TOKEN",
    "region": "REGION",
}
DEFAULT_REGION = "us-east-1"
"""Region of an endpoint other than Amazon's, as in the rest of the actor."""


def keys_of_environment(_bucket: str) -> Mapping[str, str]:
    """Return the keys that the environment has for all buckets."""
    names = ("access_key_id", "secret_access_key", "session_token", "region")
    return {name: os.environ[f"AWS_{name.upper()}"] for name in names if os.environ.get(f"AWS_{name.upper()}")}


def secrets_of(group: Rewritten, stores: StoreOptions, credentials: Credentials) -> dict[str, dict[str, str]]:
    """Return the options of a secret for each bucket that a group touches."""
    return {bucket: _secret(stores.of("s3", bucket), bucket, credentials) for bucket in sorted(_buckets(group))}


def _buckets(group: Rewritten) -> set[str]:
    files = group.read_files
    locations: Iterable[str] = (
        group.table,
        *(file.path for file in files),
        *{deletes.path for file in files for deletes in file.deletes},  # One may apply to each of thousands of files.
    )
    places = (place_of(location) for location in locations if location and not is_local(location))
    return {place.split("/")[2] for place in places if place.startswith("s3://")}


def _secret(options: Mapping[str, str], bucket: str, credentials: Credentials) -> dict[str, str]:
    known = {_plain(name): value for name, value in options.items()}
    if not known.get("access_key_id") and not _is_true(known.get("skip_signature", "")):
        known = {**credentials(bucket), **known}
    secret = {_KEYS[name]: known[name] for name in _KEYS if known.get(name)}
    if endpoint := known.get("endpoint"):
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        by_host = _is_true(known.get("virtual_hosted_style_request", ""))
        secret |= {
            "ENDPOINT": parts.netloc + parts.path.rstrip("/"),
            "USE_SSL": str(parts.scheme != "http").lower(),
            "URL_STYLE": "vhost" if by_host else "path",
        }
        secret.setdefault("REGION", DEFAULT_REGION)
    return secret


def _plain(name: str) -> str:
    plain = name.lower().removeprefix("aws_")
    return _HADOOP.get(name) or _SAME.get(plain, plain)


def _is_true(value: str) -> bool:
    return value.strip().lower() in ("true", "1", "yes", "on", "y", "t")
