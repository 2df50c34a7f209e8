"""Health of the service as read from Redis, cached for probes and scrapers."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from decider.api.metrics import GroupHealth
from decider.api.services import QueueServices, TableServices
from decider.store.fleet_history import FleetSample
from decider.store.redis.redis_health import RedisSafety, ServerStatus
from shared.errors import LakewrightError
from shared.policy.budgets import BudgetUse
from shared.queue.records import QueueDepth, sum_of_depths

MAX_AGE_S = 1.0
"""Seconds for which health is cached: probes and scrapers call every few seconds, and each read costs five requests."""


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """Health as read from Redis; `error` is why something could not be read, `server` None if nothing could.

    `groups`: the queue by its own name, and its further groups.
    """

    server: ServerStatus | None
    tables: int | None
    refused: int | None
    groups: Mapping[str, GroupHealth]
    funnel: dict[str, int]
    error: str = ""
    unserved: dict[str, int] = field(default_factory=dict)
    refusing_partitions: int | None = None
    sample: FleetSample | None = None
    budgets: Mapping[str, tuple[BudgetUse, ...]] = field(default_factory=dict)

    @property
    def depth(self) -> QueueDepth:
        """The jobs of all groups."""
        return sum_of_depths([one.depth for one in self.groups.values()])

    @property
    def actors(self) -> dict[str, int]:
        """The actors of all groups by state."""
        return dict(sum((Counter(one.actors) for one in self.groups.values()), Counter[str]()))

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
            funnel = dict(await queue.counters.read())
            sample = await queue.history.newest()
            budgets = await queue.admin.budgets()
            groups, unserved = dict[str, GroupHealth](), Counter[str]()
            for name, one in queue.by_group.items():
                seen = await one.actors.all()
                unserved.update(await one.actors.unserved(seen))
                slots = sum(actor.slots for actor in seen if actor.takes_jobs)
                groups[name] = GroupHealth(await one.admin.depth(), Counter(actor.state for actor in seen), slots)
        except LakewrightError as problem:
            return HealthSnapshot(server, None, None, {queue.executor.name: GroupHealth()}, {}, str(problem))
        return HealthSnapshot(
            *(server, tables, refused, groups, funnel),
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
