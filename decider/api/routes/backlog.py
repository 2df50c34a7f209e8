"""Backlog: the predicted seconds of work, by which a scaler starts and stops actors."""

from fastapi import APIRouter

from decider.api.dependencies import Queue
from decider.api.openapi import failures
from decider.api.schemas.backlog import FormatBacklog, QueueBacklog
from decider.store.backlog import PredictedWork, read_backlog
from shared.policy import GIB

router = APIRouter(prefix="/v1/backlog", tags=["queue"])


@router.get("", summary="Show the backlog", responses=failures())
async def show_backlog(queue: Queue) -> QueueBacklog:
    """Show the predicted seconds of work that wait or run, by format and band; KEDA's `metrics-api` reads `work_s`."""
    found = await read_backlog(queue.executor)
    return QueueBacklog(
        jobs=sum(found.jobs.values()),
        running=found.running,
        work_s=sum(found.work_s.values()),
        formats={name: _format_backlog(found, name) for name in sorted({name for name, _ in found.jobs})},
        job_s=round(found.duration.job_s, 3),
        gib_s=round(found.duration.s_per_byte * GIB, 3),
        measured_runs=found.duration.runs,
    )


def _format_backlog(found: PredictedWork, name: str) -> FormatBacklog:
    bands = {band: seconds for (one, band), seconds in found.work_s.items() if one == name}
    return FormatBacklog(
        jobs=sum(count for (one, _), count in found.jobs.items() if one == name),
        work_s=sum(bands.values()),
        bands={band.name.lower(): bands[band] for band in sorted(bands)},
    )
