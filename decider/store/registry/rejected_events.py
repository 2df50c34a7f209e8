"""Messages of event queues that cannot be used: the newest are kept with the reason.

A queue would deliver such a message again and again. It is acknowledged once it is stored here.
"""

from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from decider.store.redis.redis_errors import translate_redis_errors
from shared.queue import keys
from shared.typed_json import from_json, to_json

KEPT = 1_000
"""Messages that are kept; more of them have one cause."""

MAX_BODY_CHARS = 8_192
"""Characters of a message that are kept: enough to recognize its sender."""


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """A message that was set aside: when, from which queue, why, and the beginning of its body."""

    at_ms: int
    source: str
    reason: str
    body: str


class RejectedEvents:
    """The newest messages that were set aside, in Redis, of all deciders."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_redis_errors
    async def add(self, event: RejectedEvent) -> None:
        """Store a message; one that is delivered again after a crash is stored twice."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.lpush(keys.REJECTED_EVENTS, to_json(event))
            pipe.ltrim(keys.REJECTED_EVENTS, 0, KEPT - 1)
            await pipe.execute()

    @translate_redis_errors
    async def newest(self, limit: int) -> tuple[RejectedEvent, ...]:
        """Return the newest messages, the newest first."""
        found: Any = await self._redis.lrange(keys.REJECTED_EVENTS, 0, limit - 1)
        return tuple(from_json(RejectedEvent, one) for one in found)
