"""Builds the background tasks by name, in the order in which they start; an archive has one where it is wanted."""

import time
from collections.abc import Mapping

import pyarrow as pa

from decider.api.services import QueueServices, Services
from decider.archive.delta_archive import ArchiveSpec, DeltaArchive
from decider.archive.ledger_batches import LedgerBatches
from decider.archive.ledger_rows import LEDGER_SCHEMA
from decider.archive.rewrite_rows import OPTIMIZATIONS_SCHEMA
from decider.background import ledger_archiver, rewrite_archiver
from decider.background.applied_advice import AppliedAdvice
from decider.background.auto_analyze import AdviceSources, AutoAnalyze
from decider.background.event_consumers import KafkaConsumer, SqsConsumer
from decider.background.history_sampler import HistorySampler
from decider.background.ledger_archiver import LedgerArchiver
from decider.background.queue_upkeep import AofRewrite, JobPreemption, LibraryCleanup, SlotCount, WorkWindowTimes
from decider.background.registry_sync import AppliedChanges, RegistrySync
from decider.background.rewrite_archiver import RewriteArchiver, RewriteSources
from decider.background.runner import BackgroundTask, PeriodicCall, Schedule
from decider.background.table_refreshes import FinishedRuns, Sweep
from decider.background.tables_file_sync import TablesFileSync
from decider.background.timer_runner import TimerRunner
from decider.declared.table_declarations import TableDeclarations
from decider.declared.tables_file import TablesFileReader
from decider.events.kafka_topics import KafkaTopics
from decider.events.message_handler import MessageHandler
from decider.events.sqs_queue import SqsQueue
from decider.store.registry.merge_mark import MergeMark
from decider.store.registry.registry_entries import RegistryEntries
from services.decider.settings import DeciderSettings
from services.machine_load import MachineLoad
from shared.paths.locations import canonical_location, deltalake_location, table_id
from shared.table import TableRef

DEFAULTS = Schedule(30.0, "defaults_refresh_failed", retry_s=2.0)
"""The defaults are read again for what is shown; a table decided under others is noticed at once."""

AUDIT = Schedule(600.0, "queue_maintenance_failed")
"""An audit reads every job; ten minutes is far below what a lost job could cost."""


def build_background(settings: DeciderSettings, services: Services) -> Mapping[str, BackgroundTask]:
    """Build the background tasks over all groups of services."""
    tables, queue, requests, now_ms = services.tables, services.queue, services.requests, services.operations.now_ms
    refresh_queue, admin = requests.refresh_queue, queue.admin
    tasks: dict[str, BackgroundTask] = {
        "defaults": PeriodicCall(DEFAULTS, tables.defaults.refresh),
        "refresh_queue": PeriodicCall(
            Schedule(0.0, "table_refresh_failed", workers=refresh_queue.workers), refresh_queue.refresh_next
        ),
        "sweep": Sweep(tables.registry, refresh_queue, interval_s=settings.tracking.sweep_s),
        "finished_runs": FinishedRuns(queue.streams, tables.registry, refresh_queue),
        "applied_advice": AppliedAdvice(
            queue.streams, queue.runs, tables.advice, tables.registry, refresh_queue, now_ms
        ),
        "timers": TimerRunner(queue.executor, tables.registry, requests.tracker, now_ms),
        "history": HistorySampler(
            *(queue.history, tables.index, admin, queue.counters),
            events_received=lambda: services.operations.metrics.events_received,
            now_ms=now_ms,
        ),
        **_of_groups(queue),
        "aof_rewrite": AofRewrite(admin),
        "library_cleanup": LibraryCleanup(admin),
        "work_windows": WorkWindowTimes(queue.executor, settings.tracking.prices),
    }
    if requests.discovery.is_periodic:
        tasks["discovery"] = requests.discovery
    if settings.tracking.advice_cpu:
        load = MachineLoad(settings.tracking.background_load)
        tasks["auto_analyze"] = AutoAnalyze(
            tables.advice,
            AdviceSources(
                *(tables.registry, tables.states, tables.formats, tables.defaults, queue.reads),
                twins=requests.tracker.twins,
            ),
            share=settings.tracking.advice_cpu,
            has_jobs=admin.has_jobs,
            is_needed=lambda: refresh_queue.backlog > 0 or load.is_busy(),
            now_ms=now_ms,
        )
    return tasks | _saved_tables(services) | _consumers(settings, services) | _archives(settings, services)


def _of_groups(queue: QueueServices) -> dict[str, BackgroundTask]:
    """Build the upkeep that each group has of its own."""
    found: dict[str, BackgroundTask] = {}
    for name, one in queue.by_group.items():
        mark = "" if one is queue else f"_{name}"
        found |= {
            f"preemption{mark}": JobPreemption(one.admin),
            f"queue_audit{mark}": PeriodicCall(AUDIT, one.admin.audit),
            f"slot_count{mark}": SlotCount(one.admin, one.actors.slots),
        }
    return found


def _saved_tables(services: Services) -> dict[str, BackgroundTask]:
    """Build what carries tables from outside of Redis into the registry: those that were saved, and declared ones."""
    tables, queue, requests, redis = services.tables, services.queue, services.requests, services.operations.redis
    sources, kinds, found = tables.sources, tables.actions.kinds, dict[str, BackgroundTask]()
    if sources.saved is not None:
        found["registry_sync"] = RegistrySync(
            tables.registry,
            sources.saved,
            RegistryEntries(redis, [one.admin.operator for one in queue.by_group.values()], services.operations.now_ms),
            MergeMark(redis),
            AppliedChanges(requests.refresh_queue, queue.executor, kinds),
            clock_s=time.monotonic,
        )
    if sources.declared is not None:
        found["tables_file"] = TablesFileSync(
            sources.declared,
            TablesFileReader(requests.resolver.places, lambda: tables.defaults.current),
            TableDeclarations(tables.registry, queue.executor, queue.admin, requests.refresh_queue, kinds),
            redis,
            clock_s=time.monotonic,
        )
    return found


def _consumers(settings: DeciderSettings, services: Services) -> dict[str, BackgroundTask]:
    """Build what takes events from queues."""
    requests, operations, access = services.requests, services.operations, settings.access
    handler = MessageHandler(
        requests.resolver,
        requests.rejected,
        bucket_locations={bucket: canonical_location(uri) for bucket, uri in settings.locations.buckets.items()},
        count=operations.metrics.count_hints,
        now_ms=operations.now_ms,
    )
    queues = enumerate(access.sqs_queues, start=1)
    found: dict[str, BackgroundTask] = {f"sqs_{number}": SqsConsumer(SqsQueue(url), handler) for number, url in queues}
    if access.kafka_topics:
        topics = KafkaTopics(access.kafka_topics, access.kafka_options)
        found["kafka"] = KafkaConsumer(topics, handler, clock_s=time.monotonic)
    return found


def _archives(settings: DeciderSettings, services: Services) -> dict[str, BackgroundTask]:
    """Build what fills the archives that are wanted; each is a table of Lakewright's own tenant."""
    tables, queue, refresh_queue = services.tables, services.queue, services.requests.refresh_queue

    def archive(place: str, schema: pa.Schema, name: str, *partitions: str) -> tuple[DeltaArchive, TableRef]:
        location = deltalake_location(place)
        options = settings.locations.store_options.at(location)
        own = TableRef(table_id(location), name, location, ledger_archiver.TENANT)
        return DeltaArchive(ArchiveSpec(location, schema, partitions, options)), own

    found: dict[str, BackgroundTask] = {}
    if settings.archives.ledger is not None:
        ledger, own = archive(settings.archives.ledger, LEDGER_SCHEMA, ledger_archiver.APP, "day")
        batches = LedgerBatches(queue.executor)
        found["ledger_archive"] = LedgerArchiver(
            ledger, batches, tables.registry, refresh_queue, own=own, actions=tables.actions
        )
    if settings.archives.rewrites is not None:
        rewrites, own = archive(settings.archives.rewrites, OPTIMIZATIONS_SCHEMA, rewrite_archiver.APP)
        sources = RewriteSources(tables.registry, tables.states, queue.counters, tables.formats.rewrites)
        found["rewrite_archive"] = RewriteArchiver(rewrites, sources, refresh_queue, own=own)
    return found
