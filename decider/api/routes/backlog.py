"""Backlog: the predicted seconds of work, by which a scaler starts and stops actors."""

from functools import partial

from fastapi import APIRouter, Response
from pydantic import Field

from decider.api.dependencies import Group, Http
from decider.api.openapi import failures
from decider.api.services import QueueServices
from decider.store.queue.backlog import read_backlog
from decider.web.base_model import ResponseModel
from shared.policy.policy import GIB


class QueueBacklog(ResponseModel):
    """Predicted work of the queue; 0 exactly if no job that an actor could run waits, and none runs."""

    jobs: int = Field(
        description="Jobs that wait for an actor or run; paused and delayed ones, and those outside of a work window, "
        "are left out, and so are jobs of the archives where no other job waits or runs."
    )
    running: int = Field(description="Jobs that run.")
    work_s: int = Field(description="Predicted seconds that all of them take one slot; the value to scale actors by.")
    job_s: float = Field(description="Predicted seconds of a run without data.")
    gib_s: float = Field(description="Predicted additional seconds for each GiB.")
    measured_runs: int = Field(description="Recent runs that this prediction is fitted to; below 5, it is a default.")


router = APIRouter(prefix="/v1/backlog", tags=["queue"])


@router.get("", summary="Show the backlog", response_model=QueueBacklog, responses=failures(404, 422))
async def show_backlog(queue: Group, http: Http) -> Response:
    """Show the predicted seconds of work that wait or run in a group; KEDA's `metrics-api` reads `work_s`."""
    return await http.expensive_calls.queue_reads.get(f"backlog {queue.executor.name}", partial(_backlog, queue))


async def _backlog(queue: QueueServices) -> QueueBacklog:
    found = await read_backlog(queue.executor, queue.own_tables)
    return QueueBacklog(
        jobs=found.jobs,
        running=found.running,
        work_s=found.work_s,
        job_s=round(found.duration.job_s, 3),
        gib_s=round(found.duration.s_per_byte * GIB, 3),
        measured_runs=found.duration.runs,
    )
