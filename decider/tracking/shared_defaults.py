"""All deciders on one Redis decide under one set of defaults: those of whichever of them started last.

Two deciders with different defaults would rebuild each other's tables for ever. So a decider writes its own down when
it starts, the others take them over as soon as they meet a table that was decided under them, and a rolling update
ends with the new ones in force everywhere.
"""

from typing import Protocol

import structlog
from redis.asyncio import Redis

from decider.state.effective_policy import PolicyDefaults
from decider.store.redis_errors import translate_redis_errors
from shared.errors import InvalidInput
from shared.queue import keys
from shared.queue.decode import text

log = structlog.get_logger()


class DefaultsProvider(Protocol):
    """The defaults in force."""

    @property
    def current(self) -> PolicyDefaults:
        """What is in force as far as is known here."""

    async def refresh(self) -> bool:
        """Ask again; return whether that changed them."""


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
        """Announce our own at the first call, take over what is in force at the others.

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
            # Redis lost everything: what was in force here goes on being so.
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
            # Another release wrote the same in other words.
            return False
        log.warning("defaults_adopted", before=self.current.version, now=theirs.version, own=self.own.version)
        self.current = theirs
        return True
