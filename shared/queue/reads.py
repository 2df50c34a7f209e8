"""Reading the queue without touching it: one job, pages of jobs and of history, depth and oldest wait."""

from functools import partial
from typing import Any

from shared.queue import decode, keys, limits
from shared.queue.library import ScriptName
from shared.queue.limits import require_range
from shared.queue.model import HistoryPage, JobId, JobPage, JobState, JobView, QueueDepth
from shared.queue.transition import Transition


def job(queue: str, job_id: JobId) -> Transition[JobView | None]:
    """Read one job; None if it is finished or never was."""
    return Transition(ScriptName.VIEW, (keys.prefix(queue),), (job_id,), decode.job_view)


def jobs(queue: str, state: JobState, *, offset: int = 0, limit: int = limits.MAX_PAGE) -> Transition[JobPage]:
    """Read a page of the jobs in one state: queued by arrival, leased by deadline, others by when they are ready."""
    require_range(offset, "offset", 0, limits.MAX_INTEGER)
    require_range(limit, "limit", 1, limits.MAX_PAGE)
    args = (state.value, offset, limit)
    return Transition(ScriptName.LIST, (keys.prefix(queue),), args, partial(_page, offset=offset, limit=limit))


def depth(queue: str) -> Transition[QueueDepth]:
    """Count the jobs per state, and find the oldest that is queued."""
    return Transition(ScriptName.DEPTH, (keys.prefix(queue),), (), decode.depth)


def history(queue: str, *, before: str = "", limit: int = limits.MAX_PAGE) -> Transition[HistoryPage]:
    """Read a page of finished runs, newest first; `before` is the `next_before` of the page that came first."""
    require_range(limit, "limit", 1, limits.MAX_PAGE)
    return Transition(ScriptName.HISTORY, (keys.prefix(queue),), (before, limit), partial(_runs, limit=limit))


def _page(raw: Any, *, offset: int, limit: int) -> JobPage:
    return JobPage(decode.job_views(raw), offset + limit if len(raw) == limit else None)


def _runs(raw: Any, *, limit: int) -> HistoryPage:
    runs = tuple(decode.run_record(one) for one in raw)
    return HistoryPage(runs, runs[-1].entry if len(runs) == limit else None)
