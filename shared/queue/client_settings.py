"""Settings of a Redis client, for clients of threads and of asyncio alike: its address, and its own retries.

The settings are `redis.connection_pool.connection_kwargs`; nothing of the Redis library is needed to read them.
"""

from collections.abc import Mapping
from typing import Any


def address_in(settings: Mapping[str, Any]) -> str:
    """Return where a client connects to, without credentials, for messages."""
    return str(settings.get("path") or f"{settings.get('host', 'localhost')}:{settings.get('port', 6379)}")


def retries_itself(settings: Mapping[str, Any]) -> bool:
    """Return whether a client repeats commands by itself; a retry must be the executor's decision."""
    retry = settings.get("retry")
    if retry is None:
        return bool(settings.get("retry_on_timeout") or settings.get("retry_on_error"))
    return bool(retry.get_retries() != 0)
