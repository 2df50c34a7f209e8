"""Health: liveness, readiness and metrics; none of them needs a token."""

import structlog
from fastapi import APIRouter, Request, Response

from decider.api.dependencies import Parts
from decider.api.lifecycle import BackgroundTasks
from decider.api.metrics import CONTENT_TYPE, MetricsSnapshot
from decider.api.routes.status import CachedHealth
from decider.api.schemas.status import Liveness, Readiness
from decider.web.errors import ApiError
from decider.web.problem_document import ProblemDocument

log = structlog.get_logger()

router = APIRouter(tags=["health"])

_NOT_WELL = {"model": ProblemDocument, "description": "Not healthy; see `detail`."}


@router.get("/livez", summary="Liveness probe", responses={503: _NOT_WELL})
async def livez(request: Request) -> Liveness:
    """Return 200 unless a background task has ended, which requires a restart. Independent of Redis."""
    duties: BackgroundTasks = request.app.state.duties
    if duties.dead:
        raise ApiError(503, f"background tasks have ended; restart the process: {', '.join(duties.dead)}")
    return Liveness(status="alive")


@router.get("/readyz", summary="Readiness probe", responses={503: _NOT_WELL})
async def readyz(request: Request, parts: Parts) -> Readiness:
    """Return 200 if Redis responds and is durable and all background tasks run; 503 with the reasons otherwise."""
    duties: BackgroundTasks = request.app.state.duties
    recent: CachedHealth = request.app.state.pulse
    pulse = await recent.feel()
    ill = pulse.reasons
    if ill and parts.settings.credentials.are_needed:
        # Probes carry no token, so the response discloses neither addresses nor settings.
        log.warning("redis_unhealthy", reasons=ill)
        ill = ("Redis does not respond" if pulse.server is None else "Redis is not durable; see /v1/status",)
    reasons = (*ill, *(f"background task {name} has ended" for name in duties.dead))
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
async def metrics(request: Request, parts: Parts) -> Response:
    """Return all metrics; while Redis is unavailable, `lakewright_redis_up` is 0."""
    recent: CachedHealth = request.app.state.pulse
    pulse = await recent.feel()
    snapshot = MetricsSnapshot(
        # Without a token, the release is not disclosed.
        release="" if parts.settings.credentials.are_needed else parts.settings.release,
        redis_up=pulse.server is not None,
        redis_safe=pulse.server is not None and not pulse.server.issues,
        tables=pulse.tables,
        refused=pulse.refused,
        jobs={str(state): count for state, count in pulse.depth.depth.items()},
        oldest_wait_s=pulse.depth.oldest_wait_ms / 1000,
        actors=pulse.actors,
        streams=parts.seats.taken,
        inbox_tables=parts.inbox.backlog,
        inbox_oldest_s=parts.inbox.oldest_wait_s,
        object_reads={str(kind): count for kind, count in parts.meter.counts.items()},
        funnel=pulse.funnel,
        unserved=pulse.unserved,
    )
    return Response(parts.metrics.render(snapshot), media_type=CONTENT_TYPE)
