"""How many of a tenant's requested and expedited jobs may be urgent: the strict band is for a few, the rest waits.

The urgent band is served before all others, eight claims of nine, so requests of one tenant for thousands of partitions
would take the actors from everybody. Beyond its allowance a tenant's jobs go where its other jobs are, where they are
charged to it.
"""

from redis.asyncio import Redis

from decider.store.redis.redis_errors import translate_redis_errors
from shared.queue import keys

URGENT_PER_HOUR = 64
"""Urgent jobs of a tenant per hour: more than a person waits for, and minutes of work for one actor."""

_HOUR_MS = 3_600_000


class UrgentJobs:
    """Counts the urgent jobs of tenants, for all deciders."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_redis_errors
    async def take(self, tenant: str, wanted: int, now_ms: int) -> int:
        """Return how many of the wanted jobs may be urgent; they count from now on."""
        key = keys.urgent_jobs(tenant, now_ms // _HOUR_MS)
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.incrby(key, wanted)
            pipe.pexpire(key, 2 * _HOUR_MS)
            used, _ = await pipe.execute()
        return min(wanted, max(0, URGENT_PER_HOUR - (int(used) - wanted)))
