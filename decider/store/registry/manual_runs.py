"""Outcome of the last run that a table property requested: one record per table.

Every decider sees the same commit. The record is compared before it is replaced, so only one of them acts.
"""

from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.redis.watched_transaction import watched_transaction
from shared.queue import keys
from shared.table import TableId
from shared.typed_json import from_json, to_json


@dataclass(frozen=True, slots=True)
class ManualRunRecord:
    """Value of the property, the version at which it was read, and the outcome (empty: none yet) with its jobs."""

    requested: str
    version: int
    at_ms: int
    outcome: str = ""
    jobs: int = 0


class ManualRunStore:
    """A string per table: its last request; there is none for tables that never had one."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_redis_errors
    async def read(self, table: TableId) -> ManualRunRecord | None:
        """Return the last request of a table."""
        return _decoded(await self._redis.get(keys.manual_run(table)))

    @translate_redis_errors
    async def replace(self, table: TableId, before: ManualRunRecord | None, now: ManualRunRecord) -> bool:
        """Store a request; False if another decider has changed the record since it was read as `before`."""
        key = keys.manual_run(table)

        async def write(pipe: Any) -> bool:
            if _decoded(await pipe.get(key)) != before:
                return False
            pipe.multi()
            pipe.set(key, to_json(now))
            return True

        return await watched_transaction(self._redis, (key,), write)


def decode_manual_run(raw: bytes | str) -> ManualRunRecord:
    """Read a stored record."""
    return from_json(ManualRunRecord, raw)


def _decoded(raw: bytes | str | None) -> ManualRunRecord | None:
    return None if raw is None else decode_manual_run(raw)
