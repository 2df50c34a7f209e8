"""Automatically optimized tables: state, next due time and latest result."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from decider.api.dependencies import Operations, Queue, Tables
from decider.api.openapi import failures
from decider.api.routes.tables import CONDITION
from decider.store.queue.run_queries import JobStage
from decider.store.registry.table_query import NO_JOBS, JobsByState, TableCondition, TableRow
from decider.store.stored_values import moment
from decider.web.base_model import MAX_PAGE, ResponseModel
from shared.queue.limits import MAX_PAGE as QUEUE_PAGE
from shared.queue.records import JobView, RunRecord
from shared.table import TableRef


class ScheduledTable(ResponseModel):
    """An automatically optimized table."""

    table_id: str = Field(description="Table id.")
    name: str = Field(description="Table name.")
    tenant: str = Field(description="Tenant.")
    state: TableCondition = Field(description=CONDITION)
    jobs: int = Field(description="Number of running and waiting jobs.")
    next_due_at: datetime | None = Field(description="Earliest time at which a job may run; null if none waits.")
    attempts: int = Field(description="Failed attempts of the delayed or quarantined job that runs again first.")
    error: str = Field(description="Last error of that job; empty if there is none.")
    last_run_at: datetime | None = Field(description="End of the latest run; null if the history has none.")
    last_result: str | None = Field(
        description="Result of the latest run: `done`, `yield`, `fail`, `crashed`, `cancelled` or `expired`."
    )
    enabled_by: str = Field(description="Property that enables optimization, or `service` or `default`.")


class ScheduledTables(ResponseModel):
    """A page of automatically optimized tables, ordered by name."""

    tables: tuple[ScheduledTable, ...] = Field(
        description="Tables; a page may be short or empty without being the last."
    )
    next_page_token: str | None = Field(description="Pass as `page_token` to get the next page; null on the last page.")


router = APIRouter(prefix="/v1/scheduled", tags=["tables"])

MAX_PAGES = 20
"""Maximum pages of jobs per state, and of finished runs, per request: two thousand of each."""


@dataclass(slots=True)
class _TableRuns:
    """By table: the delayed or quarantined job that runs again first, and the newest finished run."""

    next: dict[str, JobView] = field(default_factory=dict)
    last: dict[str, RunRecord] = field(default_factory=dict)


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
    rows = await tables.index.rows(page.tables)
    # What is off, or could not be read, is not optimized automatically.
    listed = [pair for pair in zip(page.tables, rows, strict=True) if pair[1][0].condition(NO_JOBS) not in _OFF]
    runs = await _runs(queue)
    shown = [await _scheduled(table, *row, runs, tables, operations.now_ms()) for table, row in listed]
    return ScheduledTables(tables=tuple(one for one in shown if one is not None), next_page_token=page.next_after)


_OFF = frozenset({TableCondition.REFUSED, TableCondition.UNREAD, TableCondition.DISABLED})


async def _scheduled(
    table: TableRef, row: TableRow, jobs: JobsByState, runs: _TableRuns, tables: Tables, now_ms: int
) -> ScheduledTable | None:
    """Return a table, or None if it was unregistered meanwhile, or invalid properties switch it off."""
    state = await tables.states.state(table.id)
    if state is None:
        return None
    in_force = tables.defaults.current.resolve(table, state.metadata.configuration, state.last_good, state.log_status)
    if not in_force.policy.enabled:
        return None
    waiting, last = runs.next.get(table.id), runs.last.get(table.id)
    origin = in_force.origins["enabled"]
    return ScheduledTable(
        table_id=table.id,
        name=table.name,
        tenant=table.tenant,
        state=row.condition(jobs),
        jobs=jobs.waiting + jobs.running,
        next_due_at=moment(now_ms if jobs.queued else waiting.ready_at_ms if waiting else None),
        attempts=waiting.attempts if waiting else 0,
        error=(waiting.error or "") if waiting else "",
        last_run_at=moment(last.finished_ms) if last else None,
        last_result=last.run_result if last else None,
        enabled_by=origin.name or origin.source.value,
    )


async def _runs(queue: Queue) -> _TableRuns:
    """Read the jobs that wait for their time, and the newest runs."""
    found = _TableRuns()
    for stage in (JobStage.DELAYED, JobStage.QUARANTINED, JobStage.FINISHED):
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await queue.runs.page(limit=QUEUE_PAGE, stage=stage, page_token=cursor)
            for entry in page.entries:
                _note(found, entry)
            cursor = page.next_page_token
            if cursor is None:
                break
    return found


def _note(found: _TableRuns, entry: JobView | RunRecord) -> None:
    table = entry.key.table
    if isinstance(entry, RunRecord):
        found.last.setdefault(table, entry)
        return
    known = found.next.get(table)
    if known is None or (entry.ready_at_ms or 0) < (known.ready_at_ms or 0):
        found.next[table] = entry
