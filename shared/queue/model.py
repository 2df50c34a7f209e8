"""The types of the queue: at most one job per key exists in any state.

Times are milliseconds since 1970-01-01 UTC on the server's clock (`*_ms`), costs are bytes. A token is a fencing
token: strictly increasing over the life of a queue, issued with each claim, carried into each commit.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from hashlib import blake2b
from typing import NewType

from shared.errors import InvalidInput
from shared.queue.limits import (
    CRASHES_UNTIL_EXCLUSIVE,
    MAX_COST_BYTES,
    MAX_DELAY_MS,
    MAX_EXTENT,
    MAX_INTEGER,
    MAX_PARTITION_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_PRECEDENCE,
    MAX_PRIORITY,
    MAX_REFUSALS_BYTES,
    MAX_SHARED_JOBS,
    MAX_TIMER_BYTES,
    MAX_TRACE_BYTES,
    require_bytes,
    require_name,
    require_range,
)

JobId = NewType("JobId", str)
"""Readable and deterministic: `<table id>.<16 hex digits of the partition's hash>.<kind>`."""

Token = NewType("Token", int)
"""Fencing token of one claim; a hybrid of server microseconds and a counter."""


class JobState(StrEnum):
    """Where a job is; a finished job is nowhere, its history lives in a stream."""

    QUEUED = "queued"
    DELAYED = "delayed"
    LEASED = "leased"
    QUARANTINED = "quarantined"


class RunResult(StrEnum):
    """Result of a run as its worker reports it.

    `quarantine`: a failure that trying again cannot cure. `crashed`: the engine died under it.
    """

    DONE = "done"
    FAIL = "fail"
    QUARANTINE = "quarantine"
    CRASHED = "crashed"
    YIELD = "yield"
    CANCELLED = "cancelled"


SPARE_CAPACITY = "spare capacity"
"""Name under which background jobs wait for an actor with room, as in lua/include/abilities.lua."""


class Band(IntEnum):
    """The coarse order of service; the first `strict` bands (cfg) are fixed priority, the others share by weight.

    Jobs in the background start only while no other job may.
    """

    URGENT = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3
    BACKGROUND = 4


@dataclass(frozen=True, slots=True)
class JobKey:
    """Identity of a job: one partition of one table, and the kind of work; the same key is the same job."""

    table: str
    partition: str
    kind: str

    def __post_init__(self) -> None:
        require_name(self.table, "table")
        require_name(self.kind, "kind")
        if "." in self.kind:
            raise InvalidInput(f"kind {self.kind!r} has a dot, which ends the partition's part of an id", field="kind")
        require_bytes(self.partition, "partition", MAX_PARTITION_BYTES)


def job_id(key: JobKey) -> JobId:
    """Return the id that every decider computes alike; 64 bits of hash distinguish the partitions of one table."""
    return JobId(f"{key.table}.{blake2b(key.partition.encode(), digest_size=8).hexdigest()}.{key.kind}")


@dataclass(frozen=True, slots=True)
class Debounce:
    """Wait until `quiet_ms` passed without a further arrival, but never longer than `max_delay_ms` after the first."""

    quiet_ms: int = 0
    max_delay_ms: int = 0

    def __post_init__(self) -> None:
        require_range(self.max_delay_ms, "max_delay_ms", 0, MAX_DELAY_MS)
        require_range(self.quiet_ms, "quiet_ms", 0, self.max_delay_ms)


IMMEDIATE = Debounce()


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request for a job.

    `version` is the table version that led to it, `payload` opaque JSON text. When requests for one key are merged,
    the best band and priority and the greatest extent count; payload, tenant and cost are of the request with the
    greatest (version, precedence, payload).
    `precedence` ranks requests of one version that were made under different conditions: a person's before an event's.
    `extent` is the amount of work: a request for more is not lost in a newer one for less, nor satisfied by a run for
    less.
    `any_time`: it may start outside of the table's work window; a merged job may if one of its requests may.
    `gives_way`: it is background work, which no actor on a busy machine does, unless it has waited for a day; a merged
    job is if all of its requests are.
    `trace`: context of the trace that led to it, a W3C `traceparent`; the job keeps its newest requests' traces.
    """

    key: JobKey
    tenant: str
    band: Band
    priority: int
    cost_bytes: int
    version: int
    payload: str = "{}"
    debounce: Debounce = IMMEDIATE
    precedence: int = 0
    extent: int = 0
    trace: str = ""
    any_time: bool = False
    gives_way: bool = False

    def __post_init__(self) -> None:
        require_name(self.tenant, "tenant")
        require_range(self.priority, "priority", 0, MAX_PRIORITY)
        require_range(self.cost_bytes, "cost_bytes", 0, MAX_COST_BYTES)
        require_range(self.version, "version", 0, MAX_INTEGER)
        require_bytes(self.payload, "payload", MAX_PAYLOAD_BYTES)
        require_range(self.precedence, "precedence", 0, MAX_PRECEDENCE)
        require_range(self.extent, "extent", 0, MAX_EXTENT)
        require_bytes(self.trace, "trace", MAX_TRACE_BYTES)

    @property
    def id(self) -> JobId:
        """The id of the one job that serves this request."""
        return job_id(self.key)


class EnqueueOutcome(StrEnum):
    """Outcome of a request: a new job, merged into a waiting one, or recorded beside a running one."""

    QUEUED = "queued"
    MERGED = "merged"
    RERUN_REQUESTED = "rerun"


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The outcome of a request and the state its job is in now."""

    outcome: EnqueueOutcome
    state: JobState


@dataclass(frozen=True, slots=True)
class Claim:
    """A job leased to a worker until `lease_until_ms`.

    `previous_token` names the run before this one. An actor searches for that run's commit only for its report: what
    was committed is in the snapshot that the new run plans on, so nothing depends on finding it.
    `extent` is the greatest of all merged requests, `payload` the newest one's. `engine_crashes` counts earlier runs in
    which an engine crashed or the lease expired. `refusals`: opaque text, what is remembered of its
    partition's refused files.
    """

    id: JobId
    key: JobKey
    tenant: str
    band: Band
    priority: int
    token: Token
    previous_token: Token | None
    attempts: int
    revision: int
    version: int
    extent: int
    cost_bytes: int
    payload: str
    enqueued_at_ms: int
    lease_until_ms: int
    engine_crashes: int = 0
    refusals: str = ""

    @property
    def runs_exclusively(self) -> bool:
        """True if no other job may run beside it in the same engine."""
        return self.engine_crashes >= CRASHES_UNTIL_EXCLUSIVE


@dataclass(frozen=True, slots=True)
class Share:
    """How many jobs of one table a worker takes at once, to write them in one commit.

    `bytes` bounds the sum of their estimated costs, unless there is one alone.
    """

    jobs: int = 1
    bytes: int = 0

    def __post_init__(self) -> None:
        require_range(self.jobs, "share_jobs", 1, MAX_SHARED_JOBS)
        require_range(self.bytes, "share_bytes", 0, MAX_COST_BYTES)


ALONE = Share()
"""One job at a time."""


@dataclass(frozen=True, slots=True)
class HeartbeatEntry:
    """Heartbeat of one job; `progress` is opaque JSON text, empty to keep the last one."""

    id: JobId
    token: Token
    progress: str = ""


class HeartbeatStatus(StrEnum):
    """Reply to a heartbeat: continue, the lease is lost, or stop soon."""

    OK = "OK"
    LOST = "LOST"
    STOP = "STOP"


class Scope(StrEnum):
    """Where weights, limits and pauses are set."""

    QUEUE = "queue"
    BAND = "band"
    TENANT = "tenant"
    TABLE = "table"


class MoveOutcome(StrEnum):
    """Where a promoted or requeued job is now; a running one is left alone, an unknown one was not there."""

    QUEUED = "queued"
    LEASED = "leased"
    UNKNOWN = "unknown"


class StopReason(StrEnum):
    """Why a running job shall stop; a cancelled one does not come back, whatever verdict its worker gives but DONE."""

    CANCEL = "cancel"
    PREEMPT = "preempt"
    WINDOW = "window"
    LOAD = "load"


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """Answer of the queue for one job; `reason` is set with STOP only."""

    id: JobId
    status: HeartbeatStatus
    reason: StopReason | None = None


class FinishOutcome(StrEnum):
    """Where a run's end left its job; STALE: token or state were wrong and nothing was written."""

    DELETED = "deleted"
    REQUEUED = "requeued"
    DELAYED = "delayed"
    QUARANTINED = "quarantined"
    STALE = "STALE"


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a run."""

    outcome: FinishOutcome


class CancelOutcome(StrEnum):
    """A waiting job is deleted at once, a running one is asked to stop, an unknown one does not exist."""

    DELETED = "deleted"
    STOPPING = "stopping"
    UNKNOWN = "unknown"


class TimerChange(StrEnum):
    """Change of a timer: set again, set unless it fires earlier already, or stopped."""

    SET = "set"
    EARLIER = "earlier"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer of a table, opaque to the queue but for the time at which it fires."""

    name: str
    fires_at_ms: int
    change: TimerChange = TimerChange.SET

    def __post_init__(self) -> None:
        require_bytes(self.name, "timer", MAX_TIMER_BYTES)
        require_range(self.fires_at_ms, "at_ms", 0, MAX_INTEGER)


class DecideOutcome(StrEnum):
    """Outcome of a decision: the job's fate, none wanted, one there already, or a timer that is another by now."""

    QUEUED = "queued"
    MERGED = "merged"
    RERUN_REQUESTED = "rerun"
    NONE = "none"
    ALREADY_QUEUED = "already_queued"
    TIMER_CHANGED = "timer_changed"


@dataclass(frozen=True, slots=True)
class ExpectedTableState:
    """Expected cursor fields of a table for compare-and-set; empty: there is no cursor.

    A rebuild may keep the version; then only its count, the policy or the commit's digest differs. The queue limits of
    a table change beside all of these.
    """

    policy: str = ""
    rebuilds: str = ""
    digest: str = ""
    queue_limits: str = ""


NO_TABLE_STATE = ExpectedTableState()
"""Expectation for a table without a cursor."""


@dataclass(frozen=True, slots=True)
class StagedState:
    """Name under which partitions and timers are staged to replace a table's own, and how many there are of each."""

    name: str
    partitions: int
    timers: int


@dataclass(frozen=True, slots=True)
class RefusalsChange:
    """Remembered refusals of a partition, encoded: as they were read, and as they are to be; empty for none."""

    partition: str
    expected: str
    new: str

    def __post_init__(self) -> None:
        require_bytes(self.partition, "partition", MAX_PARTITION_BYTES)
        require_bytes(self.new, "refusals", MAX_REFUSALS_BYTES)


@dataclass(frozen=True, slots=True)
class Ingested:
    """`version` is the cursor now in the store; if not applied, another caller moved it and nothing was written."""

    applied: bool
    version: int
    outcomes: tuple[EnqueueOutcome, ...] = ()
