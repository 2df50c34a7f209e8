"""Health of the service as read from Redis, cached for probes and scrapers."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from decider.api.services import QueueServices, TableServices
from decider.store.fleet_history import FleetSample
from decider.store.redis.redis_health import RedisSafety, ServerStatus
from shared.errors import LakewrightError
from shared.policy.budgets import BudgetUse
from shared.queue import queries
from shared.queue.model import JobState
from shared.queue.records import QueueDepth

MAX_AGE_S = 1.0
"""Seconds for which health is cached: probes and scrapers call every few seconds, and each read costs five requests."""

NO_DEPTH = QueueDepth(0, dict.fromkeys(JobState, 0), None)


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """Health as read from Redis; `error` is why something could not be read, `server` None if nothing could."""

    server: ServerStatus | None
    tables: int | None
    refused: int | None
    depth: QueueDepth
    funnel: dict[str, int]
    actors: dict[str, int]
    error: str = ""
    unserved: dict[str, int] = field(default_factory=dict)
    refusing_partitions: int | None = None
    sample: FleetSample | None = None
    budgets: Mapping[str, tuple[BudgetUse, ...]] = field(default_factory=dict)

    @property
    def issues(self) -> tuple[str, ...]:
        """Everything that is wrong with Redis; empty if nothing is."""
        return (() if self.server is None else self.server.issues) or self._error

    @property
    def blockers(self) -> tuple[str, ...]:
        """Reasons for not being ready; empty if ready. A nearly full Redis is none: it still takes writes."""
        return (() if self.server is None else self.server.blockers) or self._error

    @property
    def _error(self) -> tuple[str, ...]:
        return (self.error,) if self.error else ()


class HealthReader:
    """Reads health; `recent` caches it, because probes and scrapers need no token."""

    def __init__(
        self, tables: TableServices, queue: QueueServices, safety: RedisSafety, clock_s: Callable[[], float]
    ) -> None:
        self._tables = tables
        self._queue = queue
        self._safety = safety
        self._clock_s = clock_s
        self._cached: tuple[float, HealthSnapshot] | None = None
        self._reading = asyncio.Lock()

    async def read(self) -> HealthSnapshot:
        """Read everything that a status shows from Redis."""
        registry, queue = self._tables.registry, self._queue
        server = None
        try:
            server = await self._safety.read()
            tables, refused = await registry.count(), await registry.count_refused()
            refusing = sum((await self._tables.states.refusing_tables()).values())
            depth = await queue.executor.run(queries.depth(queue.executor.name))
            funnel = dict(await queue.counters.read())
            seen = await queue.actors.all()
            sample = await queue.history.newest()
            budgets = await queue.admin.budgets()
            actors, unserved = dict(Counter(one.state for one in seen)), await queue.actors.unserved(seen)
        except LakewrightError as problem:
            return HealthSnapshot(server, None, None, NO_DEPTH, {}, {}, str(problem))
        return HealthSnapshot(
            *(server, tables, refused, depth, funnel, actors),
            unserved=unserved,
            refusing_partitions=refusing,
            sample=sample,
            budgets=budgets,
        )

    async def recent(self) -> HealthSnapshot:
        """Return health that is at most MAX_AGE_S seconds old; concurrent callers share one read."""
        async with self._reading:
            if self._cached is None or self._clock_s() - self._cached[0] >= MAX_AGE_S:
                snapshot = await self.read()
                self._cached = (self._clock_s(), snapshot)
            return self._cached[1]
