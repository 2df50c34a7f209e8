"""The composition root: builds every service of the decider, one function per group, and the API over them.

Nothing connects while it is built, so the decider starts and answers its probes whether Redis is there yet or not.
"""

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import replace

from fastapi import FastAPI

from decider.advice.advice_changes import AdviceChanges
from decider.api.app import create_app
from decider.api.http_settings import HttpSettings
from decider.api.metrics import Metrics
from decider.api.services import (
    HttpServices,
    OperationServices,
    ProcessStart,
    QueueServices,
    RegistrySources,
    RequestServices,
    Services,
    TableServices,
)
from decider.api.sns_confirmation import SubscriptionConfirmer
from decider.archive.ledger_reader import LedgerReader
from decider.background.discovery import LEASE_MS, Discovery
from decider.background.tables_file_sync import TablesFile
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.events.refresh_queue import RefreshQueue
from decider.events.resolver import AllowedRoots, EventResolver
from decider.formats.registry import TableFormats, table_formats
from decider.formats.table_format import StorageAccess
from decider.gateway.authentication import require_credentials_beyond_loopback
from decider.optimize.on_demand import OnDemandOptimizer
from decider.optimize.property_trigger import PropertyTriggers
from decider.optimize.table_requests import TableRequestResult, TableRequests
from decider.requests.index import INDEX_RUN_TYPES
from decider.state.effective_policy import PolicyDefaults
from decider.storage.numbered_objects import NumberedObjects
from decider.storage.object_reads import ReadMeter
from decider.storage.stores import ObjectStores
from decider.store.fleet_history import FleetHistory
from decider.store.queue.actor_registry import ActorRegistry
from decider.store.queue.queue_admin import QueueAdmin
from decider.store.queue.run_queries import RunQueries
from decider.store.queue.stream_reader import StreamReader
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.redis.redis_health import RedisSafety
from decider.store.registry.discovery_lease import DiscoveryLeases
from decider.store.registry.manual_runs import ManualRunStore
from decider.store.registry.merge_mark import MergeMark, RegistrySaver
from decider.store.registry.operator_settings import OperatorSettings
from decider.store.registry.rejected_events import RejectedEvents
from decider.store.registry.saved_registry import SavedRegistry
from decider.store.registry.table_index import TableIndex
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.advice_store import AdviceStore
from decider.store.tables.ingest import CounterReader
from decider.store.tables.read_counts import ReadCounts
from decider.store.tables.table_state import TableStateStore
from decider.tracking.drift_check import DriftCheck
from decider.tracking.refresh import TableRefresher
from decider.tracking.shared_defaults import SharedDefaults
from decider.tracking.tracker import TableTracker
from services.decider.build_background import build_background
from services.decider.settings import DeciderSettings
from services.settings import host_name
from services.versions import installed
from shared.paths.boundary import Boundary
from shared.paths.locations import canonical_location, deltalake_location, table_id
from shared.queue import keys
from shared.queue.limits import LEDGER_KEPT, LEDGER_KEPT_TO_ARCHIVE
from shared.table import TableRef


def now_ms() -> int:
    """Return milliseconds since 1970-01-01 UTC: the clock that the services are given."""
    return time.time_ns() // 1_000_000


def process_name() -> str:
    """Return a name of this process, by which it holds leases."""
    return f"{host_name()}-{secrets.token_hex(4)}"


def release() -> str:
    """Return the installed release; a bare checkout has none."""
    return installed("lakewright") or "unreleased"


def build_app(
    settings: DeciderSettings, traces: object | None = None, on_task_end: Callable[[], None] = lambda: None
) -> FastAPI:
    """Build the application; its lifespan runs the background tasks and closes the connections.

    `traces`: OpenTelemetry's provider, which records its requests; None: they are not recorded. `on_task_end`: called
    if a background task ended although it was not asked to.
    """
    return create_app(build_services(settings), traces, on_task_end)


def build_services(settings: DeciderSettings, actions: ActionRegistry = ACTIONS) -> Services:
    """Build every service. Raises InvalidInput for roots, addresses and tokens that cannot be used together.

    actions: those that partitions are evaluated for.
    """
    require_credentials_beyond_loopback(settings.address.host, settings.access.credentials)
    roots = tuple(canonical_location(root) for root in settings.locations.roots)
    boundary = Boundary(roots, settings.locations.allow_external_files, os.path.realpath)
    http = build_http(settings)
    operations = build_operations(settings)
    stores, saver = ObjectStores(settings.locations.store_options), None
    if settings.locations.state is not None:
        objects = NumberedObjects(stores, settings.locations.state, operations.read_meter)
        saver = RegistrySaver(SavedRegistry(objects, operations.now_ms), MergeMark(operations.redis))
    queue = build_queue(settings, operations, saver)
    access = StorageAccess(operations.read_meter, stores, boundary)
    formats = table_formats(access, settings.locations.formats)
    tables = build_tables(settings, operations, queue, (formats, actions), saver)
    requests = build_requests(settings, operations, queue, tables, boundary)
    services = Services(tables, queue, requests, operations, http)
    return replace(services, background=build_background(settings, services))


def build_http(settings: DeciderSettings) -> HttpServices:
    """Build the API's settings and limits."""
    return HttpServices(
        HttpSettings(
            release=release(),
            limits=settings.limits,
            credentials=settings.access.credentials,
            webhook_origins=settings.access.webhook_origins,
            bucket_locations={bucket: canonical_location(uri) for bucket, uri in settings.locations.buckets.items()},
            prices=settings.tracking.prices,
            is_supervised=settings.tracking.is_supervised,
        )
    )


def build_operations(settings: DeciderSettings) -> OperationServices:
    """Build the connection to Redis, the clock and the meters."""
    redis = connect(settings.redis_url)
    return OperationServices(
        redis=redis,
        safety=RedisSafety(redis, clock_s=time.monotonic, types=keys.shared_types(settings.queue)),
        read_meter=ReadMeter(),
        metrics=Metrics(),
        started=ProcessStart(now_ms(), time.monotonic()),
        now_ms=now_ms,
    )


def build_queue(
    settings: DeciderSettings, operations: OperationServices, saver: RegistrySaver | None = None
) -> QueueServices:
    """Build the scripts, administration and queries of the queue and of each of its further groups."""
    executor = AsyncQueueExecutor(
        operations.redis, settings.queue, safety=operations.safety, groups=settings.tracking.groups
    )
    operator = OperatorSettings(executor, operations.now_ms, saver)
    queue = QueueServices(
        executor=executor,
        admin=QueueAdmin(executor, operator),
        runs=RunQueries(executor),
        actors=ActorRegistry(executor),
        streams=StreamReader(executor),
        counters=CounterReader(executor),
        history=FleetHistory(executor, process_name()),
        reads=ReadCounts(operations.redis),
        own_tables=frozenset(
            table_id(deltalake_location(one)) for one in (settings.archives.ledger, settings.archives.rewrites) if one
        ),
    )
    groups: dict[str, QueueServices] = {}
    for name in executor.names[1:]:
        of_group = executor.of_group(name)
        set_by_operators = OperatorSettings(of_group, operations.now_ms, saver)
        groups[keys.group_of(name)] = replace(
            queue,
            executor=of_group,
            admin=QueueAdmin(of_group, set_by_operators),
            runs=RunQueries(of_group),
            actors=ActorRegistry(of_group),
        )
    return replace(queue, groups=groups)


def build_tables(
    settings: DeciderSettings,
    operations: OperationServices,
    queue: QueueServices,
    formats_and_actions: tuple[TableFormats, ActionRegistry],
    saver: RegistrySaver | None = None,
) -> TableServices:
    """Build the stores of what is known of tables."""
    formats, actions = formats_and_actions
    tables_file = settings.locations.tables_file
    tracking = settings.tracking
    own = PolicyDefaults(tracking.policy, tracking.tenants, settings.queue, tracking.groups)
    registry = TableRegistry(operations.redis, operations.safety, now_ms=operations.now_ms, saver=saver)
    return TableServices(
        registry=registry,
        sources=RegistrySources(
            saved=None if saver is None else saver.saved,
            declared=None if tables_file is None else TablesFile(tables_file, operations.now_ms),
        ),
        index=TableIndex(queue.executor, registry, time.monotonic),
        states=TableStateStore(queue.executor),
        ledgers=LedgerReader(queue.executor, actions),
        manual_runs=ManualRunStore(operations.redis),
        advice=AdviceStore(operations.redis, process_name()),
        defaults=SharedDefaults(operations.redis, own),
        formats=formats,
        actions=actions,
    )


def build_requests(
    settings: DeciderSettings,
    operations: OperationServices,
    queue: QueueServices,
    tables: TableServices,
    boundary: Boundary,
) -> RequestServices:
    """Build the ways in which tables come to be read or rewritten."""
    clock, open_table = operations.now_ms, tables.formats.open
    tracker = build_tracker(settings, operations, queue, tables)
    on_demand = OnDemandOptimizer(queue.executor, tracker, open_table, clock)
    table_requests = TableRequests(queue.executor, tracker, open_table, clock)

    async def optimize_index(table: TableRef, kind: str) -> TableRequestResult | None:
        asked = INDEX_RUN_TYPES.get(kind)
        return None if asked is None else await table_requests.run(table, asked)

    triggers = PropertyTriggers(
        *(tables.manual_runs, on_demand, tables.defaults, clock),
        optimize_index=optimize_index,
    )
    refresher = TableRefresher(tracker, tables.registry, queue.executor, clock, after=triggers.process)
    refresh_queue = RefreshQueue(operations.metrics.measured(refresher.refresh))
    folders = tables.formats.access.folders
    hold = None if settings.locations.is_discovery_active else queue.admin.hold
    allowed = AllowedRoots(boundary.roots, tables.formats.scanner, settings.locations.tenant, boundary, folders, hold)
    resolver = EventResolver(tables.registry, refresh_queue, allowed)
    return RequestServices(
        resolver=resolver,
        rejected=RejectedEvents(operations.redis),
        subscriptions=SubscriptionConfirmer(settings.access.sns_topics),
        discovery=Discovery(
            boundary.roots,
            tables.formats.scanner,
            resolver.register_if_new,
            DiscoveryLeases(operations.redis, process_name(), lease_ms=LEASE_MS),
            pace=settings.discovery,
            now_ms=clock,
        ),
        refresh_queue=refresh_queue,
        tracker=tracker,
        on_demand=on_demand,
        table_requests=table_requests,
        advice=AdviceChanges(tables.advice, tables.registry, tables.states, refresh_queue, table_requests, clock),
    )


def build_tracker(
    settings: DeciderSettings, operations: OperationServices, queue: QueueServices, tables: TableServices
) -> TableTracker:
    """Build what follows the logs of tables; an archive needs time to take decisions over."""
    return TableTracker(
        queue.executor,
        tables.formats.open,
        operations.now_ms,
        tables.defaults,
        ledger_kept=LEDGER_KEPT_TO_ARCHIVE if settings.archives.ledger else LEDGER_KEPT,
        drift=DriftCheck(tables.states, operations.now_ms, every_ms=int(settings.tracking.drift_s * 1000)),
        actions=tables.actions,
    )
