"""How often tables are read, and with which filters, as engines report it.

Reads are counted by day and forgotten after a week, filters after a month without a report. A report that arrives twice
counts twice: what is counted here orders jobs and suggests columns, and nothing else.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.stored_values import milliseconds
from shared.queue import keys
from shared.queue.decode import text
from shared.table import TableId

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
DAYS = 7
WEEK_MS = DAYS * DAY_MS
FILTERS_KEPT_MS = 30 * DAY_MS

FILTERS_KEPT = 400
"""Different filters of a table that are kept, the most frequent ones: twice as many as are read."""

SINCE = "since"
"""Field of the first report; the others are numbers of days since 1970."""


@dataclass(frozen=True, slots=True)
class ReportedReads:
    """Reads of one table at their rate of the last seven days, per hour, and its filters, most frequent first."""

    per_hour: float
    filters: tuple[tuple[Any, int], ...]


class ReadCounts:
    """Counts what is reported."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_redis_errors
    async def add(self, table: TableId, times: int, filters: Mapping[str, int]) -> None:
        """Count reads of a table; filters: how often each expression, as JSON, was used."""
        now_ms = milliseconds(await self._redis.time())
        today, reads, used = now_ms // DAY_MS, keys.reads(table), keys.read_filters(table)
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hsetnx(reads, SINCE, str(now_ms))
            pipe.hincrby(reads, str(today), times)
            pipe.hdel(reads, *(str(today - DAYS - gone) for gone in range(DAYS)))
            pipe.pexpire(reads, WEEK_MS + DAY_MS)
            for expression, count in filters.items():
                pipe.zincrby(used, count, expression)
            if filters:
                pipe.zremrangebyrank(used, 0, -FILTERS_KEPT - 1)
                pipe.pexpire(used, FILTERS_KEPT_MS)
            await pipe.execute()

    @translate_redis_errors
    async def read(self, table: TableId) -> ReportedReads:
        """Return what was reported of a table."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.hgetall(keys.reads(table))
            pipe.time()
            pipe.zrevrange(keys.read_filters(table), 0, FILTERS_KEPT // 2 - 1, withscores=True)
            reads, clock, used = await pipe.execute()
        weekly = weekly_reads(reads, milliseconds(clock))
        return ReportedReads(
            weekly * HOUR_MS / WEEK_MS, tuple((json.loads(expression), int(count)) for expression, count in used)
        )


def weekly_reads(reads: Mapping[bytes | str, bytes | str], now_ms: int) -> int:
    """Return the reads of a week, at the rate of those that were reported in the last seven days; 0: none were."""
    counts = {text(field): int(value) for field, value in reads.items()}
    since_ms = counts.pop(SINCE, now_ms)
    first_day = now_ms // DAY_MS - DAYS + 1
    counted = sum(count for day, count in counts.items() if int(day) >= first_day)
    counted_ms = now_ms - max(since_ms, first_day * DAY_MS)
    return counted * WEEK_MS // max(counted_ms, HOUR_MS)
