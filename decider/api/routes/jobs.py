"""Jobs: list, show, cancel, expedite and requeue them."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query

from decider.api.dependencies import Queue, Tables
from decider.api.openapi import failures
from decider.api.schemas.jobs import CancelResult, JobDetail, JobList
from decider.api.schemas.queue import MoveResult
from decider.api.services import QueueServices
from decider.api.views.calibration import job_calibration
from decider.api.views.jobs import cancelled_view, job_view, moved_view, timeline
from decider.store.run_queries import JobStage
from decider.web.errors import not_found
from shared.queue.limits import MAX_NAME_CHARS, MAX_PAGE
from shared.queue.model import CancelOutcome, JobId, JobState, MoveOutcome
from shared.queue.records import JobView

RUNS_SHOWN = 20
"""Finished runs shown with a job."""

MAX_WAIT_S = 30.0
"""Longest wait for the end of a job: shorter than what proxies wait for an answer."""

POLL_S = 0.5
"""Seconds between two looks at a job that is waited for: one small read."""

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

JobPath = Annotated[
    str,
    Path(
        max_length=2 * MAX_NAME_CHARS,
        pattern=r"^[^\s|{}/]+$",
        description="Job id.",
        openapi_examples={"a job": {"value": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact"}},
    ),
]


@router.get("", summary="List jobs", responses=failures(404, 422))
async def list_jobs(
    tables: Tables,
    queue: Queue,
    state: Annotated[
        JobStage | None, Query(description="Job state; without it, all states.", examples=["queued"])
    ] = None,
    table: Annotated[
        str | None,
        Query(max_length=520, description="Table name or id; without it, all tables.", examples=["sales.orders"]),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of items to return.")] = 50,
    page_token: Annotated[
        str | None, Query(max_length=100, description="`next_page_token` of the previous page.")
    ] = None,
) -> JobList:
    """List jobs: running, queued, delayed, quarantined, then finished runs, newest first."""
    known = None
    if table is not None:
        known = await tables.registry.find(table)
        if known is None:
            raise not_found("table", table)
    page = await queue.runs.page(limit=limit, stage=state, table=known.id if known else None, page_token=page_token)
    return JobList(jobs=tuple(map(job_view, page.entries)), next_page_token=page.next_page_token)


@router.get("/{job}", summary="Show a job", responses=failures(404, 422))
async def show_job(
    job: JobPath,
    queue: Queue,
    wait_s: Annotated[
        float, Query(ge=0, le=MAX_WAIT_S, description="Wait for so many seconds at most until the job is over.")
    ] = 0.0,
) -> JobDetail:
    """Show a job with its timeline and the predicted and measured cost of its runs.

    With `wait_s`, the answer comes when the job neither waits nor runs any more, when it is quarantined, or after that
    time with the job as it is.
    """
    live = await _ended(queue, JobId(job), wait_s)
    runs = await queue.runs.runs_of(JobId(job), limit=RUNS_SHOWN)
    newest = live or (runs[0] if runs else None)
    if newest is None:
        raise not_found("job", job)
    return JobDetail(
        job=job_view(newest),
        timeline=timeline(live, runs),
        runs=tuple(map(job_view, runs)),
        calibration=job_calibration(runs),
    )


@router.delete("/{job}", summary="Cancel a job", responses=failures(404, 422))
async def cancel_job(job: JobPath, queue: Queue) -> CancelResult:
    """Delete a waiting job, or ask the actor of a running job to stop. The next commit may enqueue it again."""
    outcome = await queue.runs.cancel(JobId(job))
    if outcome is CancelOutcome.UNKNOWN:
        raise not_found("job", job)
    return cancelled_view(outcome)


@router.post("/{job}/expedite", summary="Expedite a job", responses=failures(404, 422))
async def promote_job(job: JobPath, queue: Queue) -> MoveResult:
    """Move a waiting job to the urgent band with the highest priority."""
    return _moved(job, await queue.admin.expedite(JobId(job)))


@router.post("/{job}/requeue", summary="Requeue a job", responses=failures(404, 422))
async def requeue_job(job: JobPath, queue: Queue) -> MoveResult:
    """Make a delayed or quarantined job ready and reset its failed attempts."""
    return _moved(job, await queue.admin.requeue(JobId(job)))


async def _ended(queue: QueueServices, job: JobId, wait_s: float) -> JobView | None:
    """Return the live job after waiting for its end; None once it is over."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + wait_s
    while True:
        live = await queue.runs.job(job)
        left_s = deadline_s - loop.time()
        if live is None or live.state is JobState.QUARANTINED or left_s <= 0:
            return live
        await asyncio.sleep(min(POLL_S, left_s))


def _moved(job: str, outcome: MoveOutcome) -> MoveResult:
    if outcome is MoveOutcome.UNKNOWN:
        raise not_found("job", job)
    return moved_view(outcome)
