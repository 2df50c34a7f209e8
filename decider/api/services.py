"""Services of the decider in groups by subject, built by `services/decider/build.py`; a route depends on few of them.

A group has services that are used together, so that a signature shows what a function can change.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from redis.asyncio import Redis

from decider.advice.advice_changes import AdviceChanges
from decider.api.http_settings import ExpensiveCalls, HttpSettings, StreamSlots
from decider.api.metrics import Metrics
from decider.api.sns_confirmation import SubscriptionConfirmer
from decider.archive.ledger_reader import LedgerReader
from decider.background.discovery import Discovery
from decider.background.runner import BackgroundTask
from decider.background.tables_file_sync import TablesFile
from decider.decide.actions import ActionRegistry
from decider.events.refresh_queue import RefreshQueue
from decider.events.resolver import EventResolver
from decider.formats.registry import TableFormats
from decider.optimize.on_demand import OnDemandOptimizer
from decider.optimize.table_requests import TableRequests
from decider.storage.object_reads import ReadMeter
from decider.store.fleet_history import FleetHistory
from decider.store.queue.actor_registry import ActorRegistry
from decider.store.queue.queue_admin import QueueAdmin
from decider.store.queue.run_queries import RunQueries
from decider.store.queue.stream_reader import StreamReader
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_health import RedisSafety
from decider.store.registry.manual_runs import ManualRunStore
from decider.store.registry.rejected_events import RejectedEvents
from decider.store.registry.saved_registry import SavedRegistry
from decider.store.registry.table_index import TableIndex
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.advice_store import AdviceStore
from decider.store.tables.ingest import CounterReader
from decider.store.tables.read_counts import ReadCounts
from decider.store.tables.table_state import TableStateStore
from decider.tracking.shared_defaults import SharedDefaults
from decider.tracking.tracker import TableTracker
from shared.table import TableId


@dataclass(frozen=True, slots=True)
class RegistrySources:
    """Where registrations come from besides calls and events.

    `saved`: the registry outside of Redis, None without `LAKEWRIGHT_STATE`. `declared`: the tables file, None without
    `LAKEWRIGHT_TABLES_FILE`.
    """

    saved: SavedRegistry | None
    declared: TablesFile | None


@dataclass(frozen=True, slots=True)
class TableServices:
    """Services that know tables: registration, state, policy defaults, decisions, and their own logs."""

    registry: TableRegistry
    sources: RegistrySources
    index: TableIndex
    states: TableStateStore
    ledgers: LedgerReader
    manual_runs: ManualRunStore
    advice: AdviceStore
    defaults: SharedDefaults
    formats: TableFormats
    actions: ActionRegistry


@dataclass(frozen=True, slots=True)
class QueueServices:
    """The job queue: its scripts, administration, runs, streams and counters, the actors, and reads that weigh jobs.

    own_tables: the archives, which this service fills. groups: the further groups, by name; each has an
    executor, an administration, runs and actors of its own, and shares the rest.
    """

    executor: AsyncQueueExecutor
    admin: QueueAdmin
    runs: RunQueries
    actors: ActorRegistry
    streams: StreamReader
    counters: CounterReader
    reads: ReadCounts
    history: FleetHistory
    own_tables: frozenset[TableId] = frozenset()
    groups: Mapping[str, "QueueServices"] = field(default_factory=dict)

    def of(self, group: str) -> "QueueServices":
        """Return the services of a group, as a table's state names it."""
        return self.groups.get(group, self)

    @property
    def by_group(self) -> dict[str, "QueueServices"]:
        """These services and the ones of the further groups, by the name of the group."""
        return {self.executor.name: self, **self.groups}


@dataclass(frozen=True, slots=True)
class RequestServices:
    """Services that have tables read or rewritten: events, discovery, refreshes and requests."""

    resolver: EventResolver
    rejected: RejectedEvents
    subscriptions: SubscriptionConfirmer
    discovery: Discovery
    refresh_queue: RefreshQueue
    tracker: TableTracker
    on_demand: OnDemandOptimizer
    table_requests: TableRequests
    advice: AdviceChanges


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """Start of the process: wall clock, and monotonic clock for the uptime."""

    at_ms: int
    monotonic_s: float


@dataclass(frozen=True, slots=True)
class OperationServices:
    """The process itself: its connection, clock, start and meters."""

    redis: Redis
    safety: RedisSafety
    read_meter: ReadMeter
    metrics: Metrics
    started: ProcessStart
    now_ms: Callable[[], int]


@dataclass(frozen=True, slots=True)
class HttpServices:
    """The API's own settings and limits."""

    settings: HttpSettings
    stream_slots: StreamSlots = field(default_factory=StreamSlots)
    expensive_calls: ExpensiveCalls = field(default_factory=ExpensiveCalls)


@dataclass(frozen=True, slots=True)
class Services:
    """The groups of one decider, and its background tasks by name, which are built over the groups."""

    tables: TableServices
    queue: QueueServices
    requests: RequestServices
    operations: OperationServices
    http: HttpServices
    background: Mapping[str, BackgroundTask] = field(default_factory=dict)
