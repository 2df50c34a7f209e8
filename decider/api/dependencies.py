"""The parts that the API stands on, built by `services/decider` and handed over as one value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Path, Request
from redis.asyncio import Redis

from decider.api.metrics import Metrics
from decider.api.sns_confirmation import SubscriptionConfirmer
from decider.archive.ledger_reader import LedgerReader
from decider.background.discovery import Discovery
from decider.background.finished_runs import FinishedRuns
from decider.background.ledger_archiver import LedgerArchiver
from decider.background.queue_maintenance import QueueMaintenance
from decider.background.rewrite_archiver import RewriteArchiver
from decider.background.sweep import Sweep
from decider.background.timer_runner import TimerRunner
from decider.events.refresh_queue import RefreshQueue
from decider.events.resolver import EventResolver
from decider.formats.delta.log import DeltaLog
from decider.formats.delta.rewrites import RewriteHistory
from decider.gateway.concurrency import BoundedSemaphore, PerClientLimit
from decider.gateway.credentials import Credentials
from decider.optimize.on_demand import OnDemandOptimizer
from decider.storage.object_reads import ReadMeter
from decider.store.actor_registry import ActorRegistry
from decider.store.counters import CounterReader
from decider.store.manual_runs import ManualRunStore
from decider.store.queue_admin import QueueAdmin
from decider.store.queue_executor import AsyncQueueExecutor
from decider.store.redis_health import RedisSafety
from decider.store.run_queries import RunQueries
from decider.store.stream_reader import StreamReader
from decider.store.table_registry import TableRegistry
from decider.store.table_state import TableStateStore
from decider.tracking.shared_defaults import SharedDefaults
from decider.web.base_model import TABLE_NAME
from decider.web.errors import not_found
from shared.table import TableRef


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How much a caller may ask of us.

    max_body_bytes: 1 MiB takes thousands of events and bounds what a call can make us hold. body_timeout_s: a body
    that takes longer comes from nobody in earnest. events_per_s, calls_per_s: per client, and above what one needs.
    """

    max_body_bytes: int = 1_048_576
    body_timeout_s: float = 10.0
    events_per_s: float = 1_000.0
    calls_per_s: float = 200.0


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """What the API itself is told.

    credentials: what callers must show, none on the loopback address. bucket_locations: where buckets named by events
    are found. webhook_origins: who may send CloudEvents by their handshake.
    """

    release: str = "unreleased"
    limits: CallLimits = field(default_factory=CallLimits)
    credentials: Credentials = field(default_factory=Credentials)
    webhook_origins: tuple[str, ...] = ()
    bucket_locations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """When the process started: by the calendar, and on the monotonic clock, from which the uptime is told."""

    at_ms: int
    monotonic_s: float


@dataclass(slots=True)
class StreamSlots(PerClientLimit):
    """How many may watch the event stream at once, and how often each looks: two small reads of Redis each time.

    One client has a quarter of the places at most: more pages than a person has open.
    """

    limit: int = 32
    per_client: int = 8
    poll_s: float = 1.0


@dataclass(frozen=True, slots=True)
class ExpensiveCalls:
    """What takes much reading or computing, and how many may do it at once.

    what_if: seconds of computing, so one at a time and nobody waits. looks: a table's history, status and decisions,
    which read much; a dashboard asks for several at once, so some wait.
    """

    what_if: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore("what-ifs", at_once=1, waiting=0))
    looks: BoundedSemaphore = field(
        default_factory=lambda: BoundedSemaphore("histories of tables", at_once=4, waiting=60)
    )


@dataclass(frozen=True, slots=True)
class Services:
    """The built parts."""

    redis: Redis
    safety: RedisSafety
    queue: AsyncQueueExecutor
    registry: TableRegistry
    states: TableStateStore
    ledgers: LedgerReader
    counters: CounterReader
    runs: RunQueries
    actors: ActorRegistry
    steering: QueueAdmin
    tails: StreamReader
    queue_care: QueueMaintenance
    settle: TimerRunner
    archive: LedgerArchiver | None
    optimizations: RewriteArchiver | None
    intake: EventResolver
    discovery: Discovery
    inbox: RefreshQueue
    standing: SharedDefaults
    sweep: Sweep
    finished_runs: FinishedRuns
    adhoc: OnDemandOptimizer
    wishes: ManualRunStore
    open_log: Callable[[str], DeltaLog]
    confirmer: SubscriptionConfirmer
    open_history: Callable[[str], RewriteHistory]
    meter: ReadMeter
    metrics: Metrics
    now_ms: Callable[[], int]
    started: ProcessStart
    settings: HttpSettings
    seats: StreamSlots = field(default_factory=StreamSlots)
    dear: ExpensiveCalls = field(default_factory=ExpensiveCalls)


def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Parts = Annotated[Services, Depends(_services)]
"""Gives a call the built parts."""

TableName = Annotated[
    str,
    Path(
        pattern=f"^{TABLE_NAME}$",
        description="Name or id of the table.",
        openapi_examples={"by name": {"value": "sales.orders"}},
    ),
]


async def _known_table(name: TableName, parts: Parts) -> TableRef:
    table = await parts.registry.find(name)
    if table is None:
        raise not_found("table", name)
    return table


KnownTable = Annotated[TableRef, Depends(_known_table)]
"""Gives a call the table that its path names, or answers 404."""
