"""History of one table: hours and days, what happened to it, and what rewriting was worth."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from decider.advice.rewrite_worth import RewriteWorth, worth_of
from decider.api.dependencies import Http, KnownTable, Operations, Queue, Tables
from decider.api.openapi import failures
from decider.api.routes.history import DAY_H, HOUR_MS, MAX_HOURS, thinned
from decider.api.services import QueueServices, TableServices
from decider.api.worth_view import WorthView, worth_view
from decider.store.tables.advice_records import AdviceStatus
from decider.store.tables.table_history import Mark, MarkKind, TableSample, since, with_rests
from decider.web.base_model import Moment, ResponseModel, Seconds, read_from
from shared.table import TableRef

router = APIRouter(prefix="/v1/tables", tags=["tables"])


class TableHistoryPoint(ResponseModel, alias_generator=read_from(at="at_ms", core_s="usage_core_ms")):
    """Files of the table at one time, and counters since it was registered: rates are differences of two points."""

    at: Moment = Field(description="Time of the point.")
    files: int = Field(description="Number of live files.")
    files_needed: int = Field(description="Number of files that would do for the same bytes.")
    small_files: int = Field(description="Number of files below the full size.")
    bytes: int = Field(description="Total size in bytes.")
    commits: int = Field(description="Commits by writers, counted.")
    bytes_added: int = Field(description="Bytes that writers added, counted.")
    jobs_run: int = Field(description="Runs of jobs, counted.")
    jobs_failed: int = Field(description="Failed runs, counted.")
    bytes_replaced: int = Field(description="Bytes that rewrites replaced, counted.")
    files_replaced: int = Field(description="Files that rewrites replaced, counted.")
    files_written: int = Field(description="Files that rewrites wrote, counted.")
    core_s: Seconds = Field(description="Core-seconds of all runs, counted.")


class MarkView(ResponseModel, alias_generator=read_from(at="at_ms")):
    """Something that happened to the table."""

    at: Moment = Field(description="When it happened.")
    kind: MarkKind = Field(
        description="`paused`, `resumed`, `quarantined`, `properties` (of the table or its registration) or `advice`."
    )
    detail: str = Field(description="Kind of the quarantined job, or the changed properties.")


class TableHistoryView(ResponseModel):
    """History of one table."""

    points: tuple[TableHistoryPoint, ...] = Field(
        description="Points, oldest first, the last one of now; one for each hour in which the table changed."
    )
    marks: tuple[MarkView, ...] = Field(description="What happened to it, oldest first.")
    worth: WorthView = Field(description="Worth of the rewrites in the last week.")


@router.get("/{name}/history", summary="Show the history of a table", responses=failures(404, 422))
async def show_table_history(
    table: KnownTable,
    tables: Tables,
    queue: Queue,
    operations: Operations,
    http: Http,
    hours: Annotated[int, Query(ge=1, le=MAX_HOURS, description="Hours to go back; at most 30 days.")] = 7 * DAY_H,
) -> TableHistoryView:
    """Show files, jobs and what was rewritten over days, at most 300 points, what happened, and the worth of it."""
    now_ms, history = operations.now_ms(), queue.history.tables
    since_ms = now_ms - hours * HOUR_MS
    samples = await history.samples(table.id, now_ms)
    marks = (*await history.marks(table.id, since_ms), *await _applied_advice(table, tables, since_ms))
    return TableHistoryView(
        points=tuple(map(TableHistoryPoint.of, thinned(with_rests(since(samples, since_ms))))),
        marks=tuple(MarkView.of(one) for one in sorted(marks, key=lambda one: one.at_ms)),
        worth=worth_view(await _worth(table, samples, tables, queue), http.settings.prices),
    )


async def _worth(
    table: TableRef, samples: Sequence[TableSample], tables: TableServices, queue: QueueServices
) -> RewriteWorth:
    """Judge the rewrites of a table by its history, at the reads that its owner states or engines report."""
    reads_per_hour = (await queue.reads.read(table.id)).per_hour or None
    state = await tables.states.state(table.id)
    if state is None:
        return worth_of(samples, reads_per_hour, 0)
    in_force = tables.defaults.current.resolve(table, state.metadata.configuration, state.last_good, state.log_status)
    if in_force.policy.read_weight is not None:
        reads_per_hour = float(in_force.policy.read_weight)
    return worth_of(samples, reads_per_hour, state.summary.backlog_bytes)


async def _applied_advice(table: TableRef, tables: TableServices, since_ms: int) -> tuple[Mark, ...]:
    """Return the table's newest advice if it was applied since."""
    advice = await tables.advice.read(table.id)
    is_applied = advice is not None and advice.status in (AdviceStatus.APPLIED, AdviceStatus.JUDGED)
    if advice is None or not is_applied or advice.changed_ms < since_ms:
        return ()
    change = ", ".join(f"{name} = {value}" for name, value in advice.change.items())
    return (Mark(advice.changed_ms, MarkKind.ADVICE, change),)
