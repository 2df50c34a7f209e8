"""Automatically optimized tables: state, next due time and latest result."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Query

from decider.api.dependencies import Operations, Queue, Tables
from decider.api.openapi import failures
from decider.api.schemas.optimizations import ScheduledTable, ScheduledTables
from decider.store.run_queries import JobStage
from decider.web.base_model import MAX_PAGE, moment
from shared.queue.limits import MAX_PAGE as QUEUE_PAGE
from shared.queue.model import JobState
from shared.queue.records import JobView, RunRecord
from shared.table import TableRef

router = APIRouter(prefix="/v1/scheduled", tags=["tables"])

MAX_PAGES = 20
"""Maximum pages of jobs per state, and of finished runs, per request: two thousand of each."""

_STATES = {
    JobState.LEASED: "running",
    JobState.QUEUED: "waiting",
    JobState.DELAYED: "backing_off",
    JobState.QUARANTINED: "failed",
}
"""State of a table by the state of its jobs; the first match in this order wins."""


@dataclass(slots=True)
class _QueuedWork:
    """Jobs by table and state, when the first delayed one of a table may run, and each table's newest finished run."""

    jobs: dict[str, Counter[JobState]] = field(default_factory=dict)
    ready_ms: dict[str, int] = field(default_factory=dict)
    last: dict[str, RunRecord] = field(default_factory=dict)

    def count(self, table: str, state: JobState, jobs: int = 1) -> None:
        self.jobs.setdefault(table, Counter())[state] += jobs


@router.get("", summary="List automatically optimized tables", responses=failures(422))
async def list_scheduled(
    tables: Tables,
    queue: Queue,
    operations: Operations,
    prefix: Annotated[str, Query(max_length=200, description="Name prefix.", examples=["sales."])] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of tables to check.")] = 100,
    page_token: Annotated[
        str | None, Query(max_length=20_000, description="`next_page_token` of the previous page.")
    ] = None,
) -> ScheduledTables:
    """List automatically optimized tables with their next due time and latest result."""
    page = await tables.registry.page(prefix=prefix, after=page_token or "", limit=limit)
    work = await _work(queue)
    shown = [await _scheduled(table, work, tables, operations) for table in page.tables]
    return ScheduledTables(tables=tuple(table for table in shown if table is not None), next_page_token=page.next_after)


async def _scheduled(
    table: TableRef, work: _QueuedWork, tables: Tables, operations: Operations
) -> ScheduledTable | None:
    """Return a table, or None if it is disabled, refused, or not yet read."""
    state = await tables.states.state(table.id)
    if state is None or await tables.registry.refusal(table.id) is not None:
        return None
    in_force = tables.defaults.current.resolve(table, state.metadata.configuration, state.last_good, state.log_status)
    if not in_force.policy.enabled:
        return None
    jobs: Mapping[JobState, int] = work.jobs.get(table.id, Counter())
    doing = next((label for state, label in _STATES.items() if jobs.get(state)), "idle")
    due_ms = operations.now_ms() if jobs.get(JobState.QUEUED) else work.ready_ms.get(table.id)
    last = work.last.get(table.id)
    origin = in_force.origins["enabled"]
    return ScheduledTable(
        table_id=table.id,
        name=table.name,
        tenant=table.tenant,
        state=doing,
        jobs=sum(jobs.values()),
        next_due_at=moment(due_ms),
        last_run_at=moment(last.finished_ms) if last else None,
        last_result=last.run_result if last else None,
        enabled_by=origin.name or origin.source.value,
    )


async def _work(queue: Queue) -> _QueuedWork:
    """Read all jobs once; queued jobs are counted per table, because there may be very many."""
    work = _QueuedWork()
    for table, waiting in (await queue.admin.waiting_counts()).tables.items():
        work.count(table, JobState.QUEUED, waiting)
    for stage in (JobStage.LEASED, JobStage.DELAYED, JobStage.QUARANTINED, JobStage.FINISHED):
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await queue.runs.page(limit=QUEUE_PAGE, stage=stage, page_token=cursor)
            for entry in page.entries:
                _note(work, entry)
            cursor = page.next_page_token
            if cursor is None:
                break
    return work


def _note(work: _QueuedWork, entry: JobView | RunRecord) -> None:
    table = entry.key.table
    if isinstance(entry, RunRecord):
        work.last.setdefault(table, entry)
        return
    work.count(table, entry.state)
    if entry.ready_at_ms is not None:
        work.ready_ms[table] = min(entry.ready_at_ms, work.ready_ms.get(table, entry.ready_at_ms))
