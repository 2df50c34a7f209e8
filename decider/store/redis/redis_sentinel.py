"""A pool of connections to the primary that sentinels name; after a failover, new connections lead to the new one.

The client library's own pool for sentinels raises an error when all of its connections are in use, where callers wait
for a connection of any other pool.
"""

from typing import Any

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool

from shared.queue.client_settings import SentinelUrl, primary_settings, sentinel_settings


class SentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """Connections to the primary, of which a limited number is open; it closes those to the sentinels, too."""

    address: str

    async def aclose(self) -> None:
        """Close all connections."""
        await super().aclose()
        await self.sentinel_manager.aclose()


def sentinel_pool(url: SentinelUrl, **settings: Any) -> SentinelPool:
    """Return a pool for the primary; `settings` are arguments of a BlockingConnectionPool."""
    given: Any = parse_url(url.primary_url)
    is_encrypted = given.pop("connection_class", None) is SSLConnection
    to_primary = primary_settings(settings | given, is_encrypted=is_encrypted)
    to_sentinels = sentinel_settings(to_primary, url)
    manager = Sentinel(url.sentinels, sentinel_kwargs=to_sentinels)  # type: ignore[no-untyped-call]
    pool = SentinelPool(url.primary, manager, **to_primary)  # type: ignore[no-untyped-call]
    pool.address = url.address
    return pool
