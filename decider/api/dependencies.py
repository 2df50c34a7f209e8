"""Services that the API depends on, built by `services/decider`."""

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
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.events.refresh_queue import RefreshQueue
from decider.events.resolver import EventResolver
from decider.formats.table_format import RewriteReader, TableReader
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
    """Limits per request and client.

    max_body_bytes: 1 MiB fits thousands of events and bounds memory per request. body_timeout_s: time to receive a
    body. events_per_s, calls_per_s: requests per client.
    """

    max_body_bytes: int = 1_048_576
    body_timeout_s: float = 10.0
    events_per_s: float = 1_000.0
    calls_per_s: float = 200.0


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Settings of the API.

    credentials: required of clients, none on the loopback address. bucket_locations: URI prefixes of buckets in events.
    webhook_origins: origins that pass the CloudEvents webhook validation.
    """

    release: str = "unreleased"
    limits: CallLimits = field(default_factory=CallLimits)
    credentials: Credentials = field(default_factory=Credentials)
    webhook_origins: tuple[str, ...] = ()
    bucket_locations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """Start of the process: wall clock, and monotonic clock for the uptime."""

    at_ms: int
    monotonic_s: float


@dataclass(slots=True)
class StreamSlots(PerClientLimit):
    """Maximum number of stream readers, and their poll interval: each poll costs two small reads of Redis.

    One client has at most a quarter of the slots.
    """

    limit: int = 32
    per_client: int = 8
    poll_s: float = 1.0


@dataclass(frozen=True, slots=True)
class ExpensiveCalls:
    """Concurrency limits of expensive requests.

    what_if: seconds of computation, so one at a time without a queue. looks: a table's history, status and decisions,
    which read much; a dashboard requests several at once, so some wait.
    """

    what_if: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore("what-if", at_once=1, waiting=0))
    looks: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore("table history", at_once=4, waiting=60))


@dataclass(frozen=True, slots=True)
class Services:
    """Services of the decider."""

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
    open_log: Callable[[str], TableReader]
    confirmer: SubscriptionConfirmer
    open_history: Callable[[str], RewriteReader]
    meter: ReadMeter
    metrics: Metrics
    now_ms: Callable[[], int]
    started: ProcessStart
    settings: HttpSettings
    actions: ActionRegistry = ACTIONS
    seats: StreamSlots = field(default_factory=StreamSlots)
    dear: ExpensiveCalls = field(default_factory=ExpensiveCalls)


def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Parts = Annotated[Services, Depends(_services)]
"""Injects the services into a route."""

TableName = Annotated[
    str,
    Path(
        pattern=f"^{TABLE_NAME}$",
        description="Table name or id.",
        openapi_examples={"by name": {"value": "sales.orders"}},
    ),
]


async def _known_table(name: TableName, parts: Parts) -> TableRef:
    table = await parts.registry.find(name)
    if table is None:
        raise not_found("table", name)
    return table


KnownTable = Annotated[TableRef, Depends(_known_table)]
"""Injects the table named in the path; 404 if it does not exist."""
