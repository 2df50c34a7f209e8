"""The decider's parts are built here and nowhere else: clients, stores, follower, inbox, and the API over them.

Nothing connects while it is built, so the decider starts and answers its probes whether Redis is there yet or not.
"""

import os
import secrets
import time
from collections.abc import Mapping
from functools import partial

from fastapi import FastAPI

from decider.api.app import create_app
from decider.api.dependencies import CallLimits, HttpSettings, Services, Started
from decider.api.metrics import Metrics
from decider.api.sns_confirmation import Confirmer
from decider.archive.delta_archive import Archive, ArchivePlace
from decider.archive.ledger_batches import LedgerBatches
from decider.archive.ledger_reader import Ledgers
from decider.archive.ledger_rows import LEDGER_SCHEMA
from decider.archive.rewrite_rows import OPTIMIZATIONS_SCHEMA
from decider.background.discovery import LEASE_MS, Discovery, Pace
from decider.background.ledger_archiver import APP, LEDGER_KEPT, TENANT, LedgerArchive
from decider.background.queue_maintenance import QueueCare
from decider.background.rewrite_archiver import APP as OPTIMIZATIONS_APP
from decider.background.rewrite_archiver import OptimizationsTable, Sources
from decider.background.sweep import Sweep
from decider.background.timer_runner import Settle
from decider.events.refresh_queue import Inbox
from decider.events.resolver import Intake, Places
from decider.formats.delta.log import open_log
from decider.formats.delta.rewrites import open_own_commits
from decider.formats.delta.scan import open_lake
from decider.gateway.authentication import require_credentials_beyond_loopback
from decider.optimize.on_demand import Adhoc
from decider.optimize.property_trigger import ManualRuns
from decider.state.effective_policy import Defaults
from decider.storage.object_reads import ReadMeter
from decider.storage.stores import Stores
from decider.store.actor_registry import Actors
from decider.store.counters import Counters
from decider.store.discovery_lease import Rounds
from decider.store.manual_runs import Wishes
from decider.store.queue_admin import Steering
from decider.store.queue_executor import AsyncQueue, connect
from decider.store.redis_health import RedisSafety
from decider.store.run_queries import Runs
from decider.store.stream_reader import Tails
from decider.store.table_registry import TableRegistry
from decider.store.table_state import TableStates
from decider.tracking.drift_check import DriftCheck
from decider.tracking.refresh import Watch
from decider.tracking.shared_defaults import Shared
from decider.tracking.tracker import Follower
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


def build_services(settings: DeciderSettings) -> Services:
    """Build every part. Raises InvalidInput for roots, addresses and tokens that cannot be used together."""
    require_credentials_beyond_loopback(settings.address.host, settings.credentials)
    roots = tuple(canonical_location(root) for root in settings.roots)
    buckets = {bucket: canonical_location(uri) for bucket, uri in settings.buckets.items()}
    redis = connect(settings.redis_url)
    safety = RedisSafety(redis, clock_s=time.monotonic)
    queue = AsyncQueue(redis, settings.queue, safety=safety)
    registry = TableRegistry(redis, safety)
    levers, actors = Steering(queue), Actors(queue)
    standing = Shared(redis, Defaults(settings.policy, settings.tenants, settings.queue))
    meter, metrics = ReadMeter(), Metrics()
    stores = Stores(settings.store_options)
    boundary = Boundary(roots, settings.allow_external_files, os.path.realpath)
    lake = partial(open_lake, meter=meter, stores=stores, boundary=boundary)
    opened = partial(open_log, meter=meter, stores=stores, boundary=boundary)
    states, wishes = TableStates(queue), Wishes(redis)
    drift = DriftCheck(states, now_ms, every_ms=int(settings.drift_s * 1000))
    follower = Follower(
        queue, opened, now_ms, standing, ledger_kept=LEDGER_KEPT if settings.archive else None, drift=drift
    )
    adhoc = Adhoc(queue, follower, opened, now_ms, standing=standing)
    manual = ManualRuns(wishes, states, adhoc, standing, now_ms)
    inbox = Inbox(metrics.measured(Watch(follower, registry, queue, now_ms, after=manual.look).look))
    intake = Intake(registry, inbox, Places(roots, lake, settings.tenant, boundary))
    rounds = Rounds(redis, f"{host_name()}-{secrets.token_hex(4)}", lease_ms=LEASE_MS)
    pace = Pace(settings.discovery_s, settings.discovery_requests_per_s, settings.discovery_depth)
    open_history = partial(open_own_commits, meter=meter, stores=stores)
    return Services(
        redis=redis,
        safety=safety,
        queue=queue,
        registry=registry,
        states=states,
        ledgers=Ledgers(queue),
        counters=Counters(queue),
        runs=Runs(queue),
        actors=actors,
        steering=levers,
        tails=Tails(queue),
        queue_care=QueueCare(levers, actors.slots),
        settle=Settle(queue, registry, follower, now_ms),
        intake=intake,
        discovery=Discovery(roots, lake, intake.discovered, rounds, pace=pace, now_ms=now_ms),
        archive=ledger_archive(settings, queue, registry, inbox),
        optimizations=optimizations_table(
            settings, Sources(registry, TableStates(queue), Counters(queue), open_history), inbox
        ),
        inbox=inbox,
        standing=standing,
        sweep=Sweep(registry, inbox, interval_s=settings.sweep_s),
        adhoc=adhoc,
        wishes=wishes,
        confirmer=Confirmer(settings.sns_topics),
        open_log=opened,
        open_history=open_history,
        meter=meter,
        metrics=metrics,
        now_ms=now_ms,
        started=Started(now_ms(), time.monotonic()),
        settings=_http_settings(settings, buckets),
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
    settings: DeciderSettings, queue: AsyncQueue, registry: TableRegistry, inbox: Inbox
) -> LedgerArchive | None:
    """Build what carries the ledger into its archive, None where no archive is wanted."""
    if settings.archive is None:
        return None
    location = deltalake_location(settings.archive)
    place = ArchivePlace(location, LEDGER_SCHEMA, ("day",), settings.store_options.at(location))
    own = TableRef(table_id(location), APP, location, TENANT)
    return LedgerArchive(Archive(place), LedgerBatches(queue), registry, inbox, own=own)


def optimizations_table(settings: DeciderSettings, sources: Sources, inbox: Inbox) -> OptimizationsTable | None:
    """Build what lists every rewrite in a table, None where no such table is wanted."""
    if settings.optimizations is None:
        return None
    location = deltalake_location(settings.optimizations)
    place = ArchivePlace(location, OPTIMIZATIONS_SCHEMA, (), settings.store_options.at(location))
    own = TableRef(table_id(location), OPTIMIZATIONS_APP, location, TENANT)
    return OptimizationsTable(Archive(place), sources, inbox, own=own)


def build_app(settings: DeciderSettings) -> FastAPI:
    """Build the application; its lifespan runs the duties and closes the connections."""
    return create_app(build_services(settings))
