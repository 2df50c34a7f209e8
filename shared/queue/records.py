"""Records of the queue: values for reading only, apart from those that transitions take and give."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.queue.model import Band, JobId, JobKey, JobState, StopReason, Token


@dataclass(frozen=True, slots=True)
class JobView:
    """Everything there is to know of one job, for reading only.

    `ready_at_ms` is set while delayed or quarantined; worker, lease, start, progress and stop while leased.
    `opens_ms`: when the work window opens, or the budget begins again, for which it waits; None if it waits for none.
    `holder`: `window`, or the scope of that budget, such as `tenant|sales`; behind `!` if the whole budget is too small
    for the job, behind `?` if its currency has no prices.
    `pending_version` is the newest version that requested the partition while the job ran.
    """

    id: JobId
    key: JobKey
    tenant: str
    state: JobState
    band: Band
    priority: int
    cost_bytes: int
    version: int
    payload: str
    enqueued_at_ms: int
    attempts: int
    revision: int
    token: Token | None = None
    ready_at_ms: int | None = None
    lease_until_ms: int | None = None
    worker: str | None = None
    started_ms: int | None = None
    progress: str | None = None
    stop: StopReason | None = None
    opens_ms: int | None = None
    holder: str = ""
    error: str | None = None
    pending_version: int | None = None
    engine_crashes: int = 0


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs; `next_offset` is None on the last one. Jobs that move between two calls may be missed."""

    jobs: tuple[JobView, ...]
    next_offset: int | None


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Jobs per state at `now_ms` of the server; `oldest_enqueued_at_ms` is the oldest arrival still queued."""

    now_ms: int
    depth: dict[JobState, int]
    oldest_enqueued_at_ms: int | None

    @property
    def oldest_wait_ms(self) -> int:
        """How long the oldest queued job has been waiting."""
        return 0 if self.oldest_enqueued_at_ms is None else max(0, self.now_ms - self.oldest_enqueued_at_ms)


def sum_of_depths(depths: Sequence[QueueDepth]) -> QueueDepth:
    """Add up the jobs of several groups; at least one."""
    oldest = [one.oldest_enqueued_at_ms for one in depths if one.oldest_enqueued_at_ms is not None]
    counts = {state: sum(one.depth[state] for one in depths) for state in JobState}
    return QueueDepth(max(one.now_ms for one in depths), counts, min(oldest, default=None))


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One finished run as the history keeps it; `entry_id` is its place in the stream and the cursor for paging.

    group: the one in which it ran; empty for the queue itself.
    """

    entry_id: str
    id: JobId
    key: JobKey
    tenant: str
    band: Band
    token: Token
    run_result: str
    outcome: str
    worker: str
    attempts: int
    version: int
    cost_bytes: int
    enqueued_at_ms: int
    started_ms: int
    finished_ms: int
    result: str
    error: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of finished runs, newest first; `next_before` is None on the last one."""

    runs: tuple[RunRecord, ...]
    next_before: str | None
