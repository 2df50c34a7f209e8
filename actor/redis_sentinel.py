"""A pool of connections to the primary that sentinels name; after a failover, new connections lead to the new one.

The client library's own pool for sentinels raises an error when all of its connections are in use, where callers wait
for a connection of any other pool.
"""

from typing import Any

from redis import BlockingConnectionPool
from redis.connection import SSLConnection, parse_url
from redis.sentinel import Sentinel, SentinelConnectionPool

from shared.queue.client_settings import SentinelUrl, primary_settings, sentinel_settings


class SyncSentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """Connections to the primary, of which a limited number is open; it closes those to the sentinels, too."""

    address: str

    def disconnect(self, inuse_connections: bool = True) -> None:  # noqa: FBT001, FBT002 - the library's signature
        """Close all connections, or with `inuse_connections=False` those that are not in use."""
        super().disconnect(inuse_connections=inuse_connections)
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                sentinel.close()


def sentinel_pool(url: SentinelUrl, **settings: Any) -> SyncSentinelPool:
    """Return a pool for the primary; `settings` are a BlockingConnectionPool's."""
    given: Any = parse_url(url.primary_url)  # type: ignore[no-untyped-call]
    is_encrypted = given.pop("connection_class", None) is SSLConnection
    to_primary = primary_settings(settings | given, is_encrypted=is_encrypted)
    to_sentinels = sentinel_settings(to_primary, url)
    manager = Sentinel(url.sentinels, sentinel_kwargs=to_sentinels)  # type: ignore[no-untyped-call]
    pool = SyncSentinelPool(url.primary, manager, **to_primary)  # type: ignore[no-untyped-call]
    pool.address = url.address
    return pool
