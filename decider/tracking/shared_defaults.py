"""All deciders on one Redis use one set of defaults, set by the decider that started last.

Two deciders with different defaults would rebuild each other's tables forever. So a decider publishes its own when it
starts, the others adopt them as soon as they read a table that was decided under them, and after a rolling update the
new ones are in effect everywhere.
"""

from typing import Protocol

import structlog
from redis.asyncio import Redis

from decider.state.effective_policy import PolicyDefaults
from decider.store.redis.redis_errors import translate_redis_errors
from shared.errors import InvalidInput
from shared.queue import keys
from shared.queue.decode import text

log = structlog.get_logger()


class DefaultsProvider(Protocol):
    """The defaults in force."""

    @property
    def current(self) -> PolicyDefaults:
        """The defaults in effect, as last read by this process."""

    async def refresh(self) -> bool:
        """Read them again; return whether they changed."""


class SharedDefaults:
    """The defaults that the deciders of one queue share."""

    def __init__(self, redis: Redis, own: PolicyDefaults) -> None:
        self._redis = redis
        self._key = keys.policy_defaults(own.queue)
        self._is_announced = False
        self._refused = ""
        self.own = own
        self.current = own

    @translate_redis_errors
    async def refresh(self) -> bool:
        """Publish our own at the first call, adopt those in effect at the others.

        Raises RetryableError where Redis does not answer. What this release cannot read is logged once, and changes
        nothing.
        """
        if not self._is_announced:
            await self._redis.set(self._key, self.own.encode())
            self._is_announced = True
            log.info("defaults_published", version=self.own.version)
            return False
        found = await self._redis.get(self._key)
        if found is None:
            # Redis lost everything: what was in effect here stays in effect.
            await self._redis.set(self._key, self.current.encode(), nx=True)
            return False
        stored = text(found)
        if stored in (self.current.encode(), self._refused):
            return False
        try:
            theirs = self.own.decode(stored)
        except InvalidInput as problem:
            self._refused = stored
            log.warning("defaults_rejected", reason=str(problem))
            return False
        if theirs == self.current:
            # Another release encoded the same differently.
            return False
        log.warning("defaults_adopted", before=self.current.version, now=theirs.version, own=self.own.version)
        self.current = theirs
        return True
