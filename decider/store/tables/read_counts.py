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
    """Reads of one table at their rate of the last seven days, per hour, and its filters, most frequent first.

    counted: reads of these days. steady_per_hour: rate of the half of these days that has fewer; 0 for a single day.
    """

    per_hour: float
    filters: tuple[tuple[Any, int], ...]
    counted: int = 0
    steady_per_hour: float = 0.0


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
        now_ms = milliseconds(clock)
        return ReportedReads(
            weekly_reads(reads, now_ms) * HOUR_MS / WEEK_MS,
            tuple((json.loads(expression), int(count)) for expression, count in used),
            sum(count for _, _, count in _days(reads, now_ms)),
            steady_reads_per_hour(reads, now_ms),
        )


def weekly_reads(reads: Mapping[bytes | str, bytes | str], now_ms: int) -> int:
    """Return the reads of a week, at the rate of those that were reported in the last seven days; 0: none were."""
    days = _days(reads, now_ms)
    return sum(count for _, _, count in days) * WEEK_MS // max(now_ms - days[0][0], HOUR_MS)


def steady_reads_per_hour(reads: Mapping[bytes | str, bytes | str], now_ms: int) -> float:
    """Return the reads per hour of the half of the last seven days that has fewer; 0 if all were on one day."""
    days = _days(reads, now_ms)
    middle = len(days) // 2
    halves = (days[:middle], days[middle:]) if middle else ()
    rates = [sum(count for _, _, count in half) * HOUR_MS / max(HOUR_MS, half[-1][1] - half[0][0]) for half in halves]
    return min(rates, default=0.0)


def _days(reads: Mapping[bytes | str, bytes | str], now_ms: int) -> list[tuple[int, int, int]]:
    """Return the last seven days since the first report: begin and end in milliseconds, and reads."""
    counts = {text(field): int(value) for field, value in reads.items()}
    since_ms = counts.pop(SINCE, now_ms)
    today = now_ms // DAY_MS
    first = max(today - DAYS + 1, min(since_ms // DAY_MS, today))
    return [
        (max(since_ms, day * DAY_MS), min(now_ms, (day + 1) * DAY_MS), counts.get(str(day), 0))
        for day in range(first, today + 1)
    ]
