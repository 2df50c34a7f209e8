"""A pool of connections to the primary that sentinels name; after a failover, new connections lead to the new one.

The client library's own pool for sentinels raises an error when all of its connections are in use, where callers wait
for a connection of any other pool.
"""

from typing import Any

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool

from shared.queue.client_settings import SentinelUrl

_OF_ADDRESS = ("host", "port")
_OF_PRIMARY = ("username", "password", "db", "max_connections", "timeout")
"""Settings that do not apply to the connections to the sentinels."""


class SentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """Connections to the primary, of which a limited number is open; it closes those to the sentinels, too."""

    address: str

    async def aclose(self) -> None:
        """Close all connections."""
        await super().aclose()
        await self.sentinel_manager.aclose()


def sentinel_pool(url: SentinelUrl, **settings: Any) -> SentinelPool:
    """Return a pool for the primary; `settings` are those of a BlockingConnectionPool."""
    given: Any = parse_url(url.primary_url)
    found = settings | given
    found["ssl"] = found.pop("connection_class", None) is SSLConnection
    to_primary = {name: value for name, value in found.items() if name not in _OF_ADDRESS}
    to_sentinels = {name: value for name, value in to_primary.items() if name not in _OF_PRIMARY}
    to_sentinels |= dict(url.credentials)
    manager = Sentinel(url.sentinels, sentinel_kwargs=to_sentinels)  # type: ignore[no-untyped-call]
    pool = SentinelPool(url.primary, manager, **to_primary)  # type: ignore[no-untyped-call]
    pool.address = url.address
    return pool
