"""Secrets of an actor, so that they can be kept out of logs and of errors that people read."""

import re
from collections.abc import Mapping
from urllib.parse import quote_plus, unquote, urlsplit

from services.actor.settings import ActorSettings
from shared.queue.client_settings import parse_sentinel_url

_NAMES_A_SECRET = re.compile(r"(?i)secret|token|password|passwd|credential|signature|account.?key|access.?key|sas")
_NAMES_NONE = re.compile(r"(?i)file|provider|access.?key.?id$")
_PARTS = re.compile(r"[,:\s]+")


def known_secrets(settings: ActorSettings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets in an actor's settings and environment: passwords, keys and tokens, whole and in parts."""
    stores = settings.store_options.by_place.values()
    named = [environment, settings.spark_options, *stores, *settings.formats.catalogs.values()]
    values = [
        value
        for options in named
        for name, value in options.items()
        if _NAMES_A_SECRET.search(name) and not _NAMES_NONE.search(name)
    ]
    password = urlsplit(settings.redis_url).password
    if password:
        values += [password, unquote(password)]
    sentinels = parse_sentinel_url(settings.redis_url)
    if sentinels is not None and (password := sentinels.credentials.get("password")):
        values += [password, quote_plus(password)]
    return tuple({part for value in values for part in (value, *_PARTS.split(value)) if part})
