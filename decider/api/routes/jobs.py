"""Jobs: list, show, cancel, expedite and requeue them."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import Field

from decider.api.budget_view import UsageView, usage_view
from decider.api.dependencies import GroupAsked, Http, Operations, Queue, Tables
from decider.api.openapi import failures
from decider.api.services import QueueServices
from decider.store.queue.run_queries import JobStage
from decider.store.stored_values import moment
from decider.web.base_model import ResponseModel
from decider.web.errors import not_found
from shared.partitions import partition_label
from shared.policy.budgets import AMPLIFICATION_SCOPE
from shared.prices import Prices, Usage
from shared.queue.limits import MAX_NAME_CHARS, MAX_PAGE
from shared.queue.model import CancelOutcome, JobId, JobState, MoveOutcome, Scope
from shared.queue.records import JobView, RunRecord
from shared.table import PartitionKey, TableId
from shared.typed_json import json_object


class JobEvent(ResponseModel):
    """One event in a job's timeline."""

    at: datetime = Field(description="Time, by the Redis server's clock.")
    event: str = Field(
        description="`enqueued`, `started`, `lease_expires`, `ready`, `window_opens`, `budget_renewed`, `retry_due`, "
        "or a run's result."
    )
    detail: str = Field(description="Details.")


class JobSummary(ResponseModel):
    """A waiting or running job, or one finished run."""

    id: str = Field(
        description="Job id: table, hash of the partition, kind. One partition has at most one job per kind."
    )
    state: str = Field(description="`queued`, `delayed`, `leased`, `quarantined`, or `finished`.")
    table: str = Field(description="Table id.")
    table_name: str = Field(description="Table name.")
    partition_key: str = Field(description="Partition key: physical column names and values as in the table's log.")
    partition_label: str = Field(description="Partition label; columns as in the table's log.")
    kind: str = Field(description="Kind of work; `compact` merges small files.")
    tenant: str = Field(description="Tenant.")
    band: str = Field(description="`urgent`, `high`, `normal`, `low` or `background`.")
    priority: int | None = Field(
        description="Priority within the band, 0 (first) to 31 (last); null for finished runs."
    )
    version: int = Field(description="Table version of the commit that led to the job.")
    attempts: int = Field(description="Number of failed attempts.")
    engine_crashes: int | None = Field(
        description="Failed attempts in which the engine crashed or the actor stopped responding. After two, the job "
        "runs isolated; another crash quarantines it. Null for finished runs."
    )
    actor: str = Field(description="Actor that runs or ran the job; empty while it waits.")
    reason: str = Field(description="Machine-readable reason for the job.")
    enqueued_at: datetime | None = Field(description="Time of the first enqueue.")
    started_at: datetime | None = Field(description="Start of the run.")
    finished_at: datetime | None = Field(description="End of the run.")
    retry_at: datetime | None = Field(description="When a delayed or quarantined job runs again; null for others.")
    may_start_at: datetime | None = Field(
        description="When the work window opens, or the budget begins again, that the job waits for; null if it waits "
        "for none."
    )
    waits_for: str = Field(description="What the job waits for until then, and what to do; empty if for none.")
    result: str = Field(
        description="Result of the run: `done`, `fail`, `crashed`, `yield`, `cancelled` or `expired`; empty before its "
        "end."
    )
    error: str = Field(description="Last error; empty if none.")
    note: str = Field(
        description="What a finished run on a whole table left out, or why it had nothing to do; of a dry run, what it "
        "would change; empty if nothing."
    )
    predicted: dict[str, float] = Field(description="Predicted files replaced, files removed and bytes read.")
    measured: dict[str, float] = Field(
        description="The same figures as measured, with durations; empty before the end."
    )
    usage: UsageView | None = Field(
        description="What a finished run used, and its cost; null for others, and for runs of earlier releases."
    )
    progress: dict[str, Any] = Field(description="Last progress report of the actor.")
    stop_reason: str = Field(description="Reason for a requested stop; empty if none is requested.")


class JobList(ResponseModel):
    """A page of jobs: running, waiting, quarantined, then finished runs, newest first."""

    jobs: tuple[JobSummary, ...] = Field(description="Jobs.")
    next_page_token: str | None = Field(
        description="Pass as `page_token` to get the next page; null on the last page. A filtered page may be short or "
        "empty."
    )


class JobDetail(ResponseModel):
    """One job with its timeline."""

    job: JobSummary = Field(description="The job, or its latest run if it has finished.")
    timeline: tuple[JobEvent, ...] = Field(description="Events, oldest first.")
    runs: tuple[JobSummary, ...] = Field(description="Finished runs that are still stored, newest first.")


class CancelResult(ResponseModel):
    """Result of a cancellation."""

    outcome: str = Field(
        description="`deleted`: the job was waiting. `stopping`: the job is running and its actor is asked to stop."
    )
    message: str = Field(description="Human-readable outcome.")


class MoveResult(ResponseModel):
    """Result of expediting or requeueing a job."""

    state: str = Field(description="`queued`, or `leased` if the job is running.")
    message: str = Field(description="Human-readable outcome.")


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


@dataclass(frozen=True, slots=True)
class _Page:
    """Position and length of the requested part of a list."""

    limit: int = 50
    token: str | None = None


FIRST_PAGE = _Page()


async def _page(
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of items to return.")] = 50,
    page_token: Annotated[
        str | None, Query(max_length=100, description="`next_page_token` of the previous page.")
    ] = None,
) -> _Page:
    return _Page(limit, page_token)


@dataclass(frozen=True, slots=True)
class _JobFilter:
    """Jobs that are listed: their state, and the queue of their group; None: all."""

    state: JobStage | None
    group: str | None


async def _job_filter(
    group: GroupAsked,
    state: Annotated[
        JobStage | None, Query(description="Job state; without it, all states.", examples=["queued"])
    ] = None,
) -> _JobFilter:
    return _JobFilter(state, None if group is None else group.executor.name)


@router.get("", summary="List jobs", response_model=JobList, responses=failures(404, 422))
async def list_jobs(
    tables: Tables,
    queue: Queue,
    http: Http,
    chosen: Annotated[_JobFilter, Depends(_job_filter)],
    table: Annotated[
        str | None,
        Query(max_length=520, description="Table name or id; without it, all tables.", examples=["sales.orders"]),
    ] = None,
    page: Annotated[_Page, Depends(_page)] = FIRST_PAGE,
) -> Response:
    """List jobs: running, queued, delayed, quarantined, then finished runs, newest first."""
    known = None
    if table is not None:
        known = await tables.registry.find(table)
        if known is None:
            raise not_found("table", table)
    identity = known.id if known else None

    async def read() -> JobList:
        found = await queue.runs.page(
            limit=page.limit, stage=chosen.state, group=chosen.group, table=identity, page_token=page.token
        )
        # A job keeps the name that its table had when it was made; a list shows the one that it has now.
        names = await tables.registry.get_many({TableId(entry.key.table) for entry in found.entries})
        jobs = (
            view.model_copy(update={"table_name": names[TableId(view.table)].name}) if view.table in names else view
            for view in (job_view(entry, http.settings.prices) for entry in found.entries)
        )
        return JobList(jobs=tuple(jobs), next_page_token=found.next_page_token)

    key = f"jobs {chosen} {identity} {page}"
    return await http.expensive_calls.queue_reads.get(key, read)


@router.get("/{job}", summary="Show a job", responses=failures(404, 422))
async def show_job(
    job: JobPath,
    queue: Queue,
    http: Http,
    wait_s: Annotated[
        float, Query(ge=0, le=MAX_WAIT_S, description="Wait for so many seconds at most until the job is over.")
    ] = 0.0,
) -> JobDetail:
    """Show a job with its timeline and its runs, each with its predicted and measured cost.

    With `wait_s`, the answer comes when the job neither waits nor runs any more, when it is quarantined, or after that
    time with the job as it is.
    """
    live = await _ended(queue, JobId(job), wait_s)
    runs = await queue.runs.runs_of(JobId(job), limit=RUNS_SHOWN)
    newest = live or (runs[0] if runs else None)
    if newest is None:
        raise not_found("job", job)
    return JobDetail(
        job=job_view(newest, http.settings.prices),
        timeline=timeline(live, runs),
        runs=tuple(job_view(run, http.settings.prices) for run in runs),
    )


@router.delete("/{job}", summary="Cancel a job", responses=failures(404, 422))
async def cancel_job(job: JobPath, queue: Queue) -> CancelResult:
    """Delete a waiting job, or ask the actor of a running job to stop. The next commit may enqueue it again."""
    outcome = await queue.runs.cancel(JobId(job))
    if outcome is CancelOutcome.UNKNOWN:
        raise not_found("job", job)
    return cancelled_view(outcome)


@router.post("/{job}/expedite", summary="Expedite a job", responses=failures(404, 422))
async def promote_job(job: JobPath, queue: Queue, operations: Operations) -> MoveResult:
    """Move a waiting job to the urgent band with the highest priority.

    64 jobs of a tenant per hour may be urgent, requested ones included; beyond that, a job gets the highest priority of
    its own band.
    """
    return _moved(job, await queue.admin.expedite(JobId(job), operations.now_ms()))


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


FINISHED = "finished"
"""State of a finished run; the queue itself has no state for it."""


def job_view(entry: JobView | RunRecord, prices: Prices | None = None) -> JobSummary:
    """Return the view of a waiting or running job, or of a finished run with its cost.

    Payload, result and progress are JSON of other components and read leniently: a list must not fail because of a row.
    """
    live = entry if isinstance(entry, JobView) else None
    run = entry if isinstance(entry, RunRecord) else None
    found = json_object(run.result if run else live.payload if live else "")
    return JobSummary(
        id=entry.id,
        state=live.state if live else FINISHED,
        table=entry.key.table,
        table_name=str(found.get("name" if live else "table", entry.key.table)),
        partition_key=entry.key.partition,
        partition_label=label_of_job(entry.key.partition),
        kind=entry.key.kind,
        tenant=entry.tenant,
        band=entry.band.name.lower(),
        priority=live.priority if live else None,
        version=entry.version,
        attempts=entry.attempts,
        engine_crashes=live.engine_crashes if live else None,
        actor=entry.worker or "",
        reason=str(found.get("reason", "")),
        enqueued_at=moment(entry.enqueued_at_ms),
        started_at=moment(entry.started_ms),
        finished_at=moment(run.finished_ms) if run else None,
        retry_at=moment(live.ready_at_ms) if live else None,
        may_start_at=moment(live.opens_ms) if live else None,
        waits_for=_waits_for(live.holder) if live else "",
        result=run.run_result if run else "",
        error=entry.error or "",
        note=str(found.get("left_out", "")) if run else "",
        predicted=_numbers(found.get("predicted")),
        measured=_numbers(found.get("measured")) if run else {},
        usage=_usage(found.get("usage"), prices) if run else None,
        progress=json_object((live.progress if live else None) or ""),
        stop_reason=(live.stop if live else None) or "",
    )


def _usage(found: object, prices: Prices | None) -> UsageView | None:
    """Show what a run reports to have used; None where another release reported nothing, or something else."""
    if not isinstance(found, dict) or not all(isinstance(count, int) for count in found.values()):
        return None
    return usage_view(Usage.decode(found), prices)


def _waits_for(holder: str) -> str:
    """Say what holds a job, as the queue names it (`JobView.holder`)."""
    if holder in ("", "window"):
        return "its table's work window" if holder else ""
    scope, _, name = holder.lstrip("!?").partition("|")
    budget = f"the budget of tenant {name}" if scope == Scope.TENANT else f"the budget of its {scope}"
    if scope == AMPLIFICATION_SCOPE:
        grows = (
            "max-write-amplification of its table, which grows with what writers add, expected at their present pace"
        )
        too_small = "; it is too small for the job even then: raise it, or lower max-bytes-per-job"
        return grows + (too_small if holder.startswith("!") else "")
    if holder.startswith("!"):
        return f"{budget}, which is too small for it even when nothing is used: raise it, or lower max-bytes-per-job"
    if holder.startswith("?"):
        return f"{budget}, whose currency has no prices: set LAKEWRIGHT_PRICES in it"
    return budget


def timeline(live: JobView | None, runs: Iterable[RunRecord]) -> tuple[JobEvent, ...]:
    """Return the timeline of a job, oldest first."""
    moments: dict[tuple[int, str], str] = {}
    for run in runs:
        moments[run.enqueued_at_ms, "enqueued"] = f"version {run.version}"
        moments[run.started_ms, "started"] = run.worker
        moments[run.finished_ms, run.run_result] = run.error or f"the job is {run.outcome}"
    if live is not None:
        moments[live.enqueued_at_ms, "enqueued"] = f"version {live.version}"
        if live.started_ms:
            moments[live.started_ms, "started"] = live.worker or ""
        if live.lease_until_ms:
            moments[live.lease_until_ms, "lease_expires"] = "without a heartbeat by then, another actor takes over"
        if live.opens_ms:
            event = "window_opens" if live.holder == "window" else "budget_renewed"
            moments[live.opens_ms, event] = f"until then it waits for {_waits_for(live.holder)}"
        elif live.ready_at_ms:
            is_retry = bool(live.error or live.attempts)
            event = "retry_due" if is_retry else "ready"
            detail = live.error or f"after {live.attempts} failed attempts"
            waits = "until then it waits for others of its table"
            moments[live.ready_at_ms, event] = detail if is_retry else waits
    events = ((moment(at), event, detail) for (at, event), detail in sorted(moments.items()))
    return tuple(JobEvent(at=at, event=event, detail=detail) for at, event, detail in events if at is not None)


def cancelled_view(outcome: CancelOutcome) -> CancelResult:
    """Return the result of a cancellation."""
    message = {
        CancelOutcome.DELETED: "The waiting job was deleted.",
        CancelOutcome.STOPPING: "The job is running; its actor stops after the current file groups.",
        CancelOutcome.UNKNOWN: "The job does not exist.",
    }[outcome]
    return CancelResult(outcome=outcome, message=message)


def moved_view(outcome: MoveOutcome) -> MoveResult:
    """Return the result of expediting or requeueing a job."""
    runs = outcome is MoveOutcome.LEASED
    return MoveResult(state=outcome.value, message="The job is already running." if runs else "The job is ready.")


def label_of_job(partition: str) -> str:
    """Return the label of a job's partition; what is not a key stays as it is."""
    return partition_label(PartitionKey(partition)) if json_object(partition) or partition == "{}" else partition


def _numbers(value: object) -> dict[str, float]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): float(number) for name, number in value.items() if isinstance(number, int | float)}
