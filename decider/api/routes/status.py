"""Status of the service, available while Redis is not."""

import time

from fastapi import APIRouter

from decider.api.dependencies import Http, Operations, Probes, Requests, Tables
from decider.api.openapi import failures
from decider.api.schemas.status import (
    Backlog,
    DeciderStatus,
    DefaultsInForce,
    QueueStatus,
    RedisStatus,
    SavedRegistryStatus,
    Savings,
    TablesFileView,
)
from decider.web.base_model import moment

router = APIRouter(prefix="/v1/status", tags=["status"])


@router.get("", summary="Show service status", responses=failures())
async def show_status(
    tables: Tables, requests: Requests, operations: Operations, http: Http, probes: Probes
) -> DeciderStatus:
    """Show version, Redis configuration, backlog, the funnel from commits to rewrites, and savings."""
    health = await probes.health.read()
    server = health.server
    started_at = moment(operations.started.at_ms)
    if started_at is None:
        raise ValueError("the service was built without a clock")
    return DeciderStatus(
        version=http.settings.release,
        started_at=started_at,
        uptime_s=round(time.monotonic() - operations.started.monotonic_s, 3),
        redis=RedisStatus(
            reachable=server is not None,
            name=server.name if server else "",
            version=server.version if server else "",
            aof_enabled=server.aof_enabled if server else False,
            eviction_policy=server.eviction_policy if server else "",
            used_memory_bytes=server.used_memory_bytes if server else 0,
            issues=health.issues,
        ),
        registry=_registry(tables),
        tables_file=_tables_file(tables),
        tables=health.tables,
        tables_refused=health.refused,
        defaults=_defaults(tables),
        backlog=Backlog(
            tables_waiting=requests.refresh_queue.backlog,
            tables_retrying=requests.refresh_queue.retrying,
            oldest_wait_s=round(requests.refresh_queue.oldest_wait_s, 3),
        ),
        queue=QueueStatus(
            depth={str(state): count for state, count in health.depth.depth.items()},
            oldest_wait_s=health.depth.oldest_wait_ms / 1000,
        ),
        actors=health.actors,
        object_store_requests={str(kind): count for kind, count in operations.read_meter.counts.items()},
        funnel=health.funnel,
        savings=savings(health.funnel),
    )


def _registry(tables: Tables) -> SavedRegistryStatus | None:
    if tables.sources.saved is None:
        return None
    found = tables.sources.saved.status()
    return SavedRegistryStatus(
        location=found.location,
        generation=found.generation,
        tables=found.tables,
        saved_at=moment(found.saved_ms),
        error=found.error,
        damaged=found.damaged,
    )


def _tables_file(tables: Tables) -> TablesFileView | None:
    if tables.sources.declared is None:
        return None
    found = tables.sources.declared.status
    return TablesFileView(
        path=found.path,
        tables=found.tables,
        applied_at=moment(found.applied_ms),
        error=found.error,
        problems=found.problems,
    )


def _defaults(tables: Tables) -> DefaultsInForce:
    version, own = tables.defaults.current.version, tables.defaults.own.version
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
