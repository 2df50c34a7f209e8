"""History of all tables together: hours and days, from the samples that deciders keep in Redis."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query
from pydantic import Field

from decider.api.budget_view import UsageView, usage_view
from decider.api.dependencies import Http, Operations, Queue
from decider.api.openapi import failures
from decider.api.routes.status import amplification
from decider.store.fleet_history import FleetSample
from decider.store.samples import KEPT, SampleStep
from decider.store.stored_values import moment
from decider.web.base_model import Moment, ResponseModel, Seconds, read_from
from shared.prices import NOTHING_USED

router = APIRouter(prefix="/v1/history", tags=["status"])

MAX_HOURS = KEPT[SampleStep.HOUR]
"""Hours of which samples are kept."""

DAY_H = 24
"""Hours of which there is a sample for each minute."""

MAX_POINTS = 300
"""Points of one answer: what a chart can show."""

S = TypeVar("S")

HOUR_MS = int(SampleStep.HOUR)


class HistoryPoint(ResponseModel, alias_generator=read_from(at="at_ms", core_s="usage.core_ms")):
    """Sums at one time, and counters since the queue was created: rates are differences of two points."""

    at: Moment = Field(description="Time of the sample.")
    tables: int = Field(description="Number of registered tables.")
    files: int = Field(description="Number of live files of all tables.")
    files_needed: int = Field(description="Number of files that would do for the same bytes.")
    bytes: int = Field(description="Total size in bytes.")
    waiting: int = Field(description="Number of queued and delayed jobs.")
    running: int = Field(description="Number of running jobs.")
    oldest_wait_s: int = Field(description="Wait of the oldest queued job in seconds.")
    events_received: int = Field(description="Events that deciders received, ignored ones included, counted.")
    commits: int = Field(description="Commits by writers, counted.")
    rewrites: int = Field(description="Rewrites, counted.")
    jobs_failed: int = Field(description="Failed runs, counted.")
    bytes_added: int = Field(description="Bytes that writers added, counted.")
    bytes_replaced: int = Field(description="Bytes that rewrites replaced, counted.")
    files_replaced: int = Field(description="Files that rewrites replaced, counted.")
    files_written: int = Field(description="Files that rewrites wrote, counted.")
    core_s: Seconds = Field(description="Core-seconds of all runs, counted.")


class BacklogProgress(ResponseModel):
    """Existing files that are rewritten once: of the first read of a table, or of a changed policy."""

    left_bytes: int = Field(description="Bytes still to be rewritten.")
    done_bytes: int = Field(description="Bytes that were rewritten or deleted.")
    bytes_per_h: float | None = Field(
        description="Pace over the second half of its work, at most of the last 24 hours; null if nothing was done."
    )
    ends_at: datetime | None = Field(description="When it ends at this pace; null if it is done or nothing was done.")


class FleetHistoryView(ResponseModel):
    """History of all tables together."""

    points: tuple[HistoryPoint, ...] = Field(description="Points, oldest first; none for times without a decider.")
    backlog: BacklogProgress = Field(description="Progress of the backlog.")
    used: UsageView = Field(description="What all runs used between the first and the last point, and its cost.")


@router.get("", summary="Show the history of all tables", responses=failures(422))
async def show_history(
    queue: Queue,
    operations: Operations,
    http: Http,
    hours: Annotated[int, Query(ge=1, le=MAX_HOURS, description="Hours to go back; at most 30 days.")] = DAY_H,
) -> FleetHistoryView:
    """Show files, jobs, events and what was rewritten over hours or days, at most 300 points, and the backlog's end."""
    now_ms = operations.now_ms()
    today = await queue.history.samples(SampleStep.MINUTE, now_ms - DAY_H * HOUR_MS)
    if hours > DAY_H:
        shown = await queue.history.samples(SampleStep.HOUR, now_ms - hours * HOUR_MS)
    else:
        shown = tuple(one for one in today if one.at_ms >= now_ms - hours * HOUR_MS)
    counted = amplification(await queue.counters.read())
    left, done = counted.backlog_bytes_left, counted.backlog_bytes_found - counted.backlog_bytes_left
    return FleetHistoryView(
        points=tuple(map(HistoryPoint.of, thinned(shown))),
        backlog=backlog_progress(today, left, done, now_ms),
        used=usage_view(shown[-1].usage - shown[0].usage if shown else NOTHING_USED, http.settings.prices),
    )


def thinned(samples: Sequence[S]) -> Sequence[S]:
    """Return every n-th sample, so that there are not too many; the newest is always one of them."""
    step = -(-len(samples) // MAX_POINTS) or 1
    return samples[::-1][::step][::-1]


def backlog_progress(today: Sequence[FleetSample], left: int, done: int, now_ms: int) -> BacklogProgress:
    """Return how fast the backlog becomes smaller, and when it ends at this pace.

    It is the pace of the second half of the time since its work began: jobs that gain most for their bytes go first,
    and with them more time passes for each byte than later on.
    """
    idle = [one for one in today if one.backlog_bytes_done == today[0].backlog_bytes_done]
    per_ms = 0.0
    if len(idle) < len(today):
        half_ms = (idle[-1].at_ms + now_ms) // 2
        began = next(one for one in reversed(today) if one.at_ms <= half_ms)
        per_ms = (done - began.backlog_bytes_done) / max(1, now_ms - began.at_ms)
    return BacklogProgress(
        left_bytes=left,
        done_bytes=done,
        bytes_per_h=per_ms * HOUR_MS or None,
        ends_at=moment(now_ms + int(left / per_ms)) if left and per_ms > 0 else None,
    )
