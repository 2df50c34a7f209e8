"""Reading the queue without touching it: one job, pages of jobs and of history, depth and oldest wait."""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from shared.queue import decode, keys, limits
from shared.queue.command import Command
from shared.queue.limits import require_range
from shared.queue.lua_library import ScriptName
from shared.queue.model import Band, JobId, JobState
from shared.queue.records import JobPage, JobView, QueueDepth, RunPage


def job(queue: str, job_id: JobId) -> Command[JobView | None]:
    """Read one job; None if it is finished or never was."""
    return Command(ScriptName.VIEW, (keys.prefix(queue),), (job_id,), decode.job_view)


def jobs(queue: str, state: JobState, *, offset: int = 0, limit: int = limits.MAX_JOBS_READ) -> Command[JobPage]:
    """Read a page of the jobs in one state: queued by arrival, leased by deadline, others by when they are ready."""
    require_range(offset, "offset", 0, limits.MAX_INTEGER)
    require_range(limit, "limit", 1, limits.MAX_JOBS_READ)
    args = (state.value, offset, limit)
    return Command(ScriptName.LIST, (keys.prefix(queue),), args, partial(_page, offset=offset, limit=limit))


def depth(queue: str) -> Command[QueueDepth]:
    """Count the jobs per state, and find the oldest that is queued."""
    return Command(ScriptName.DEPTH, (keys.prefix(queue),), (), decode.depth)


def history(queue: str, *, before: str = "", limit: int = limits.MAX_PAGE) -> Command[RunPage]:
    """Read a page of finished runs, newest first; `before` is the `next_before` of the previous page."""
    require_range(limit, "limit", 1, limits.MAX_PAGE)
    return Command(ScriptName.HISTORY, (keys.prefix(queue),), (before, limit), partial(_runs, limit=limit))


class DispatchReason(StrEnum):
    """Why a band is next: its rank, the guard against strict bands, its share, or that no other has a ready job."""

    STRICT_PRIORITY = "strict_priority"
    STARVATION_GUARD = "starvation_guard"
    FAIR_SHARE = "fair_share"
    BACKGROUND = "background"


@dataclass(frozen=True, slots=True)
class NextJob:
    """A job that will be claimed, and the figures that put it there.

    Tags are start tags, in thousandths of a MiB at weight 1; the least one of a node is served. `rank_ms` is the
    arrival plus an ageing interval per step of priority; the least one of a flow is served. `table_turn_ms` is the rank
    of the table's first job, or later by what the table owes; the least one of a tenant is served.
    """

    id: JobId
    band: Band
    tenant: str
    table: str
    reason: DispatchReason
    band_virtual_start: int
    tenant_virtual_start: int
    table_turn_ms: int
    rank_ms: int
    enqueued_at_ms: int
    priority: int


def order(queue: str, *, claims: int = limits.MAX_FORESEEN) -> Command[tuple[NextJob, ...]]:
    """Foresee the next claims of one slot each, if nothing arrives and nothing ends; nothing is claimed."""
    require_range(claims, "claims", 1, limits.MAX_FORESEEN)
    return Command(ScriptName.ORDER, (keys.prefix(queue),), (claims,), _order)


def _order(raw: Any) -> tuple[NextJob, ...]:
    return tuple(_next([field if isinstance(field, int) else decode.text(field) for field in row]) for row in raw)


def _next(row: list[Any]) -> NextJob:
    job, band, tenant, table, why, *numbers = row
    band_tag, tenant_tag, turn_ms, rank_ms, t0_ms, priority = (int(float(number)) for number in numbers)
    return NextJob(
        *(
            JobId(job),
            Band(int(band)),
            tenant,
            table,
            DispatchReason(why),
            band_tag,
            tenant_tag,
            turn_ms,
            rank_ms,
            t0_ms,
            priority,
        )
    )


def _page(raw: Any, *, offset: int, limit: int) -> JobPage:
    return JobPage(decode.job_views(raw), offset + limit if len(raw) == limit else None)


def _runs(raw: Any, *, limit: int) -> RunPage:
    runs = tuple(decode.run_record(one) for one in raw)
    return RunPage(runs, runs[-1].entry_id if len(runs) == limit else None)
