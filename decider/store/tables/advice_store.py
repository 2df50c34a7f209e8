"""Advice in Redis: the newest one of each table, when each table was analyzed, and which decider analyzes now.

All of it can be lost: tables are analyzed again, and only dismissals and judgements are not repeated.
"""

from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis

from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.redis.watched_transaction import watched_transaction
from decider.store.tables.advice_records import Advice, Analysis
from shared.queue import keys
from shared.queue.decode import text
from shared.table import TableId

LEASE_MS = 120_000
"""How long a decider that died keeps others from analyzing; it renews before each table."""

MAX_DISMISSED = 20
"""Dismissed changes that are remembered for each table, the newest ones."""


class AdviceStore:
    """Two hashes, of the advice and of the analyses by table, one of dismissed changes, and a lease."""

    def __init__(self, redis: Redis, holder: str) -> None:
        self._redis = redis
        self._holder = holder

    @translate_redis_errors
    async def acquire(self) -> bool:
        """Acquire or renew the lease; False while another decider has it. Two at once would only do work twice."""
        if text(await self._redis.get(keys.ADVICE_LEASE) or b"") == self._holder:
            return bool(await self._redis.pexpire(keys.ADVICE_LEASE, LEASE_MS))
        return bool(await self._redis.set(keys.ADVICE_LEASE, self._holder, nx=True, px=LEASE_MS))

    @translate_redis_errors
    async def release(self) -> None:
        """Release the lease, unless another decider has it."""
        if text(await self._redis.get(keys.ADVICE_LEASE) or b"") == self._holder:
            await self._redis.delete(keys.ADVICE_LEASE)

    @translate_redis_errors
    async def all(self) -> list[Advice]:
        """Return all advice, in no order."""
        return [Advice.decode(raw) for raw in await self._redis.hvals(keys.ADVICE)]

    @translate_redis_errors
    async def read(self, table: TableId) -> Advice | None:
        """Return the advice for a table."""
        raw = await self._redis.hget(keys.ADVICE, table)
        return None if raw is None else Advice.decode(raw)

    @translate_redis_errors
    async def replace(self, table: TableId, before: Advice | None, now: Advice | None) -> bool:
        """Store or delete a table's advice; False if it is no longer the one that was read as `before`."""

        async def write(pipe: Any) -> bool:
            raw = await pipe.hget(keys.ADVICE, table)
            if (None if raw is None else Advice.decode(raw)) != before:
                return False
            pipe.multi()
            if now is None:
                pipe.hdel(keys.ADVICE, table)
            else:
                pipe.hset(keys.ADVICE, table, now.encode())
            return True

        return await watched_transaction(self._redis, (keys.ADVICE,), write)

    @translate_redis_errors
    async def dismissed(self, table: TableId) -> tuple[str, ...]:
        """Return the ids of a table's dismissed changes."""
        return tuple(filter(None, text(await self._redis.hget(keys.DISMISSED_ADVICE, table) or b"").split(" ")))

    @translate_redis_errors
    async def dismiss(self, table: TableId, advice: str) -> None:
        """Remember that a change was dismissed."""
        kept = [one for one in await self.dismissed(table) if one != advice]
        await self._redis.hset(keys.DISMISSED_ADVICE, table, " ".join([*kept, advice][-MAX_DISMISSED:]))

    @translate_redis_errors
    async def analyses(self) -> Mapping[TableId, Analysis]:
        """Return the last analysis of each table that had one."""
        raw = await self._redis.hgetall(keys.ANALYZED_TABLES)
        return {TableId(text(table)): Analysis.decode(one) for table, one in raw.items()}

    @translate_redis_errors
    async def analysis(self, table: TableId) -> Analysis | None:
        """Return the last analysis of a table."""
        raw = await self._redis.hget(keys.ANALYZED_TABLES, table)
        return None if raw is None else Analysis.decode(raw)

    @translate_redis_errors
    async def set_analysis(self, table: TableId, analysis: Analysis) -> None:
        """Store that a table was analyzed."""
        await self._redis.hset(keys.ANALYZED_TABLES, table, analysis.encode())
