"""Status of the service, available while Redis is not."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from fastapi import APIRouter

from decider.api.dependencies import Parts, Services
from decider.api.openapi import failures
from decider.api.schemas.status import Backlog, DeciderStatus, DefaultsInForce, QueueStatus, RedisStatus, Savings
from decider.store.redis_health import ServerStatus
from decider.web.base_model import moment
from shared.errors import LakewrightError
from shared.queue import queries
from shared.queue.model import JobState
from shared.queue.records import QueueDepth

router = APIRouter(prefix="/v1/status", tags=["status"])

PULSE_S = 1.0
"""Seconds for which health is cached: probes and scrapers call every few seconds, and each read costs five requests."""

NO_DEPTH = QueueDepth(0, dict.fromkeys(JobState, 0), None)


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """Health as read from Redis; `server` is None and `trouble` holds the error if Redis does not respond."""

    server: ServerStatus | None
    tables: int | None
    refused: int | None
    depth: QueueDepth
    funnel: dict[str, int]
    actors: dict[str, int]
    trouble: str
    unserved: dict[str, int] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons for not being ready; empty if ready."""
        if self.server is None:
            return (self.trouble,)
        return self.server.issues


async def read_health(parts: Services) -> HealthSnapshot:
    """Read everything that a status shows from Redis."""
    try:
        server = await parts.safety.read()
        tables, refused = await parts.registry.count(), await parts.registry.count_refused()
        depth = await parts.queue.run(queries.depth(parts.queue.name))
        funnel = dict(await parts.counters.read())
        seen = await parts.actors.all()
        actors, unserved = dict(Counter(one.state for one in seen)), await parts.actors.unserved(seen)
    except LakewrightError as problem:
        return HealthSnapshot(None, None, None, NO_DEPTH, {}, {}, str(problem))
    return HealthSnapshot(server, tables, refused, depth, funnel, actors, "", unserved)


class CachedHealth:
    """Caches health for concurrent probes and scrapers, which need no token."""

    def __init__(self, parts: Services, clock_s: Callable[[], float]) -> None:
        self._parts = parts
        self._clock_s = clock_s
        self._found: tuple[float, HealthSnapshot] | None = None
        self._asking = asyncio.Lock()

    async def feel(self) -> HealthSnapshot:
        """Return health that is at most PULSE_S seconds old."""
        async with self._asking:
            if self._found is None or self._clock_s() - self._found[0] >= PULSE_S:
                pulse = await read_health(self._parts)
                self._found = (self._clock_s(), pulse)
            return self._found[1]


@router.get("", summary="Show service status", responses=failures())
async def show_status(parts: Parts) -> DeciderStatus:
    """Show version, Redis configuration, backlog, the funnel from commits to rewrites, and savings."""
    pulse = await read_health(parts)
    server = pulse.server
    started_at = moment(parts.started.at_ms)
    if started_at is None:
        raise ValueError("the service was built without a clock")
    return DeciderStatus(
        version=parts.settings.release,
        started_at=started_at,
        uptime_s=round(time.monotonic() - parts.started.monotonic_s, 3),
        redis=RedisStatus(
            reachable=server is not None,
            name=server.name if server else "",
            version=server.version if server else "",
            aof_enabled=server.aof_enabled if server else False,
            eviction_policy=server.eviction_policy if server else "",
            used_memory_bytes=server.used_memory_bytes if server else 0,
            issues=pulse.reasons,
        ),
        tables=pulse.tables,
        tables_refused=pulse.refused,
        defaults=_defaults(parts),
        backlog=Backlog(
            tables_waiting=parts.inbox.backlog,
            tables_retrying=parts.inbox.retrying,
            oldest_wait_s=round(parts.inbox.oldest_wait_s, 3),
        ),
        queue=QueueStatus(
            depth={str(state): count for state, count in pulse.depth.depth.items()},
            oldest_wait_s=pulse.depth.oldest_wait_ms / 1000,
        ),
        actors=pulse.actors,
        object_store_requests={str(kind): count for kind, count in parts.meter.counts.items()},
        funnel=pulse.funnel,
        savings=savings(pulse.funnel),
    )


def _defaults(parts: Services) -> DefaultsInForce:
    version, own = parts.standing.current.version, parts.standing.own.version
    return DefaultsInForce(version=version, own_version=own, in_sync=version == own)


def savings(funnel: dict[str, int]) -> Savings:
    """Compute savings from the funnel counters."""
    added = funnel.get("bytes_added", 0)
    touched = funnel.get("partitions_touched", 0)
    rewritten = funnel.get("bytes_replaced", 0)
    return Savings(
        files_removed=funnel.get("files_replaced", 0) - funnel.get("files_written", 0),
        bytes_rewritten=rewritten,
        write_amplification=round(rewritten / added, 4) if added else None,
        partitions_pruned_ratio=round(1 - funnel.get("enqueued", 0) / touched, 4) if touched else None,
    )
