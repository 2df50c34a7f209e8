"""Health: liveness, readiness and metrics; none of them needs a token."""

import structlog
from fastapi import APIRouter, Response
from pydantic import Field

from decider.api.budget_view import budget_views
from decider.api.dependencies import Http, Operations, Probes, Requests, Tables
from decider.api.metrics import CONTENT_TYPE, MetricsSnapshot
from decider.web.base_model import ResponseModel
from decider.web.errors import ApiError, ProblemDocument


class Liveness(ResponseModel):
    """Liveness of the process."""

    status: str = Field(description="Always `alive`.")


class Readiness(ResponseModel):
    """Readiness to serve requests."""

    status: str = Field(description="`ready` or `not ready`.")
    reasons: tuple[str, ...] = Field(description="Reasons for not being ready; empty if ready.")


log = structlog.get_logger()

router = APIRouter(tags=["health"])

_NOT_WELL = {"model": ProblemDocument, "description": "Not healthy; see `detail`."}


@router.get("/livez", summary="Liveness probe", responses={503: _NOT_WELL})
async def livez(probes: Probes) -> Liveness:
    """Return 200 unless a background task has ended, which requires a restart. Independent of Redis."""
    if dead := probes.background.dead:
        raise ApiError(503, f"background tasks have ended; restart the process: {', '.join(dead)}")
    return Liveness(status="alive")


@router.get("/readyz", summary="Readiness probe", responses={503: _NOT_WELL})
async def readyz(http: Http, probes: Probes) -> Readiness:
    """Return 200 if Redis responds and is durable and all background tasks work; 503 with the reasons otherwise."""
    health = await probes.health.recent()
    ill = health.blockers
    if ill and http.settings.credentials.are_needed:
        # Probes carry no token, so the response discloses neither addresses nor settings.
        log.warning("redis_unhealthy", reasons=ill)
        ill = ("Redis does not respond" if health.server is None else "Redis is not durable; see /v1/status",)
    dead, stuck = probes.background.dead, probes.background.stuck
    # Errors may name tables and places, which a probe does not disclose.
    reasons = (
        *ill,
        *(f"background task {name} has ended" for name in dead),
        *(f"background task {name} fails again and again; see /v1/status" for name in stuck),
    )
    if reasons:
        raise ApiError(503, "; ".join(reasons))
    return Readiness(status="ready", reasons=())


@router.get(
    "/metrics",
    summary="Prometheus metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Prometheus text format.",
            "content": {
                "text/plain": {"schema": {"type": "string"}, "example": 'lakewright_jobs{state="queued"} 3.0\n'}
            },
        },
        503: _NOT_WELL,
    },
)
async def metrics(tables: Tables, requests: Requests, operations: Operations, http: Http, probes: Probes) -> Response:
    """Return all metrics; while Redis is unavailable, `lakewright_redis_up` is 0."""
    health = await probes.health.recent()
    snapshot = MetricsSnapshot(
        # Without a token, the release is not disclosed.
        release="" if http.settings.credentials.are_needed else http.settings.release,
        redis_up=health.server is not None,
        redis_safe=health.server is not None and not health.server.issues,
        tables=health.tables,
        refused=health.refused,
        refusing_partitions=health.refusing_partitions,
        budgets=budget_views(health.budgets),
        sample=health.sample,
        groups=health.groups,
        streams=http.stream_slots.taken,
        inbox_tables=requests.refresh_queue.backlog,
        inbox_oldest_s=requests.refresh_queue.oldest_wait_s,
        object_reads={str(kind): count for kind, count in operations.read_meter.counts.items()},
        funnel=health.funnel,
        prices=http.settings.prices,
        unserved=health.unserved,
        background=probes.background.health,
        registry=None if tables.sources.saved is None else tables.sources.saved.status(),
        tables_file=None if tables.sources.declared is None else tables.sources.declared.status,
    )
    return Response(operations.metrics.render(snapshot), media_type=CONTENT_TYPE)
