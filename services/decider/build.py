"""The decider's parts are built here and nowhere else: clients, stores, follower, inbox, and the API over them.

Nothing connects while it is built, so the decider starts and answers its probes whether Redis is there yet or not.
"""

import os
import secrets
import time
from collections.abc import Callable, Mapping

from fastapi import FastAPI

from decider.api.app import create_app
from decider.api.dependencies import CallLimits, HttpSettings, ProcessStart, Services
from decider.api.metrics import Metrics
from decider.api.sns_confirmation import SubscriptionConfirmer
from decider.archive.delta_archive import ArchiveSpec, DeltaArchive
from decider.archive.ledger_batches import LedgerBatches
from decider.archive.ledger_reader import LedgerReader
from decider.archive.ledger_rows import LEDGER_SCHEMA
from decider.archive.rewrite_rows import OPTIMIZATIONS_SCHEMA
from decider.background.discovery import LEASE_MS, Discovery, DiscoveryLimits
from decider.background.finished_runs import FinishedRuns
from decider.background.ledger_archiver import APP, LEDGER_KEPT, TENANT, LedgerArchiver
from decider.background.queue_maintenance import QueueMaintenance
from decider.background.rewrite_archiver import APP as OPTIMIZATIONS_APP
from decider.background.rewrite_archiver import RewriteArchiver, RewriteSources
from decider.background.sweep import Sweep
from decider.background.timer_runner import TimerRunner
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.events.refresh_queue import RefreshQueue
from decider.events.resolver import AllowedRoots, EventResolver
from decider.formats.registry import TableFormats, table_formats
from decider.formats.table_format import StorageAccess
from decider.gateway.authentication import require_credentials_beyond_loopback
from decider.optimize.on_demand import OnDemandOptimizer
from decider.optimize.property_trigger import PropertyTriggers
from decider.state.effective_policy import PolicyDefaults
from decider.storage.object_reads import ReadMeter
from decider.storage.stores import ObjectStores
from decider.store.actor_registry import ActorRegistry
from decider.store.counters import CounterReader
from decider.store.discovery_lease import DiscoveryLeases
from decider.store.manual_runs import ManualRunStore
from decider.store.queue_admin import QueueAdmin
from decider.store.queue_executor import AsyncQueueExecutor, connect
from decider.store.redis_health import RedisSafety
from decider.store.run_queries import RunQueries
from decider.store.stream_reader import StreamReader
from decider.store.table_registry import TableRegistry
from decider.store.table_state import TableStateStore
from decider.tracking.drift_check import DriftCheck
from decider.tracking.refresh import TableRefresher
from decider.tracking.shared_defaults import SharedDefaults
from decider.tracking.tracker import TableTracker
from services.decider.settings import DeciderSettings
from services.settings import host_name
from services.versions import installed
from shared.boundary import Boundary
from shared.locations import canonical_location, deltalake_location, table_id
from shared.table import TableRef


def now_ms() -> int:
    """Return milliseconds since 1970-01-01 UTC: the clock that the parts are given."""
    return time.time_ns() // 1_000_000


def release() -> str:
    """Return the installed release; a bare checkout has none."""
    return installed("lakewright") or "unreleased"


def build_services(
    settings: DeciderSettings,
    actions: ActionRegistry = ACTIONS,
    *,
    with_formats: Callable[[StorageAccess], TableFormats] = table_formats,
) -> Services:
    """Build every part. Raises InvalidInput for roots, addresses and tokens that cannot be used together.

    actions: those that partitions are evaluated for. with_formats: makes the table formats that are read.
    """
    require_credentials_beyond_loopback(settings.address.host, settings.credentials)
    roots = tuple(canonical_location(root) for root in settings.roots)
    buckets = {bucket: canonical_location(uri) for bucket, uri in settings.buckets.items()}
    redis = connect(settings.redis_url)
    safety = RedisSafety(redis, clock_s=time.monotonic)
    queue = AsyncQueueExecutor(redis, settings.queue, safety=safety)
    registry = TableRegistry(redis, safety)
    levers, actors = QueueAdmin(queue), ActorRegistry(queue)
    standing = SharedDefaults(redis, PolicyDefaults(settings.policy, settings.tenants, settings.queue))
    meter, metrics = ReadMeter(), Metrics()
    stores = ObjectStores(settings.store_options)
    boundary = Boundary(roots, settings.allow_external_files, os.path.realpath)
    formats = with_formats(StorageAccess(meter, stores, boundary))
    states, wishes = TableStateStore(queue), ManualRunStore(redis)
    drift = DriftCheck(states, now_ms, every_ms=int(settings.drift_s * 1000))
    follower = TableTracker(
        queue,
        formats.open,
        now_ms,
        standing,
        ledger_kept=LEDGER_KEPT if settings.archive else None,
        drift=drift,
        actions=actions,
    )
    adhoc = OnDemandOptimizer(queue, follower, formats.open, now_ms, standing=standing)
    manual = PropertyTriggers(wishes, states, adhoc, standing, now_ms)
    inbox = RefreshQueue(metrics.measured(TableRefresher(follower, registry, queue, now_ms, after=manual.look).look))
    intake = EventResolver(registry, inbox, AllowedRoots(roots, formats.scanner, settings.tenant, boundary))
    rounds = DiscoveryLeases(redis, f"{host_name()}-{secrets.token_hex(4)}", lease_ms=LEASE_MS)
    pace = DiscoveryLimits(settings.discovery_s, settings.discovery_requests_per_s, settings.discovery_depth)
    return Services(
        redis=redis,
        safety=safety,
        queue=queue,
        registry=registry,
        states=states,
        ledgers=LedgerReader(queue, actions),
        counters=CounterReader(queue),
        runs=RunQueries(queue),
        actors=actors,
        steering=levers,
        tails=StreamReader(queue),
        queue_care=QueueMaintenance(levers, actors.slots),
        settle=TimerRunner(queue, registry, follower, now_ms),
        intake=intake,
        discovery=Discovery(roots, formats.scanner, intake.register_if_new, rounds, pace=pace, now_ms=now_ms),
        archive=ledger_archive(settings, queue, registry, inbox, actions),
        optimizations=optimizations_table(
            settings, RewriteSources(registry, TableStateStore(queue), CounterReader(queue), formats.rewrites), inbox
        ),
        inbox=inbox,
        standing=standing,
        sweep=Sweep(registry, inbox, interval_s=settings.sweep_s),
        finished_runs=FinishedRuns(StreamReader(queue), registry, inbox),
        adhoc=adhoc,
        wishes=wishes,
        confirmer=SubscriptionConfirmer(settings.sns_topics),
        open_log=formats.open,
        open_history=formats.rewrites,
        meter=meter,
        metrics=metrics,
        now_ms=now_ms,
        started=ProcessStart(now_ms(), time.monotonic()),
        settings=_http_settings(settings, buckets),
        actions=actions,
    )


def _http_settings(settings: DeciderSettings, buckets: Mapping[str, str]) -> HttpSettings:
    return HttpSettings(
        release=release(),
        limits=CallLimits(
            max_body_bytes=settings.max_body_bytes,
            body_timeout_s=settings.body_timeout_s,
            events_per_s=settings.events_per_s,
            calls_per_s=settings.calls_per_s,
        ),
        credentials=settings.credentials,
        webhook_origins=settings.webhook_origins,
        bucket_locations=buckets,
    )


def ledger_archive(
    settings: DeciderSettings,
    queue: AsyncQueueExecutor,
    registry: TableRegistry,
    inbox: RefreshQueue,
    actions: ActionRegistry = ACTIONS,
) -> LedgerArchiver | None:
    """Build what carries the ledger into its archive, None where no archive is wanted."""
    if settings.archive is None:
        return None
    location = deltalake_location(settings.archive)
    place = ArchiveSpec(location, LEDGER_SCHEMA, ("day",), settings.store_options.at(location))
    own = TableRef(table_id(location), APP, location, TENANT)
    return LedgerArchiver(DeltaArchive(place), LedgerBatches(queue), registry, inbox, own=own, actions=actions)


def optimizations_table(
    settings: DeciderSettings, sources: RewriteSources, inbox: RefreshQueue
) -> RewriteArchiver | None:
    """Build what lists every rewrite in a table, None where no such table is wanted."""
    if settings.optimizations is None:
        return None
    location = deltalake_location(settings.optimizations)
    place = ArchiveSpec(location, OPTIMIZATIONS_SCHEMA, (), settings.store_options.at(location))
    own = TableRef(table_id(location), OPTIMIZATIONS_APP, location, TENANT)
    return RewriteArchiver(DeltaArchive(place), sources, inbox, own=own)


def build_app(settings: DeciderSettings) -> FastAPI:
    """Build the application; its lifespan runs the duties and closes the connections."""
    return create_app(build_services(settings))
