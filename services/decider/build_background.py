"""Builds the background tasks by name, in the order in which they start; an archive has one where it is wanted."""

import time
from collections.abc import Mapping

from decider.api.services import OperationServices, QueueServices, RequestServices, TableServices
from decider.archive.delta_archive import ArchiveSpec, DeltaArchive
from decider.archive.ledger_batches import LedgerBatches
from decider.archive.ledger_rows import LEDGER_SCHEMA
from decider.archive.rewrite_rows import OPTIMIZATIONS_SCHEMA
from decider.background import ledger_archiver, rewrite_archiver
from decider.background.applied_advice import AppliedAdvice
from decider.background.auto_analyze import AdviceSources, AutoAnalyze
from decider.background.defaults_refresh import DefaultsRefresh
from decider.background.finished_runs import FinishedRuns
from decider.background.history_sampler import HistorySampler
from decider.background.kafka_consumer import KafkaConsumer
from decider.background.ledger_archiver import LedgerArchiver
from decider.background.preemption import JobPreemption
from decider.background.queue_audit import QueueAudit
from decider.background.redis_upkeep import AofRewrite, LibraryCleanup
from decider.background.refresh_workers import RefreshWorkers
from decider.background.registry_sync import AppliedChanges, RegistrySync
from decider.background.rewrite_archiver import RewriteArchiver, RewriteSources
from decider.background.runner import BackgroundTask
from decider.background.slot_count import SlotCount
from decider.background.sqs_consumer import SqsConsumer
from decider.background.sweep import Sweep
from decider.background.tables_file_sync import TablesFile, TablesFileSync
from decider.background.timer_runner import TimerRunner
from decider.background.work_windows import WorkWindowTimes
from decider.declared.table_declarations import TableDeclarations
from decider.declared.tables_file import TablesFileReader
from decider.events.kafka_topics import KafkaTopics
from decider.events.message_handler import MessageHandler
from decider.events.sqs_queue import SqsQueue
from decider.store.registry.merge_mark import MergeMark
from decider.store.registry.registry_entries import RegistryEntries
from decider.store.registry.saved_registry import SavedRegistry
from services.decider.settings import DeciderSettings
from shared.paths.locations import canonical_location, deltalake_location, table_id
from shared.paths.store_options import StoreOptions
from shared.table import TableRef


def build_background(
    settings: DeciderSettings,
    operations: OperationServices,
    queue: QueueServices,
    tables: TableServices,
    requests: RequestServices,
) -> Mapping[str, BackgroundTask]:
    """Build the background tasks."""
    tasks: dict[str, BackgroundTask] = {
        "defaults": DefaultsRefresh(tables.defaults),
        "refresh_queue": RefreshWorkers(requests.refresh_queue),
        "sweep": Sweep(tables.registry, requests.refresh_queue, interval_s=settings.tracking.sweep_s),
        "finished_runs": FinishedRuns(queue.streams, tables.registry, requests.refresh_queue),
        "applied_advice": AppliedAdvice(
            queue.streams, queue.runs, tables.advice, tables.registry, requests.refresh_queue, operations.now_ms
        ),
        "timers": TimerRunner(queue.executor, tables.registry, requests.tracker, operations.now_ms),
        "history": HistorySampler(queue.history, tables.index, queue.admin, queue.counters, operations.now_ms),
    }
    if requests.discovery.is_periodic:
        tasks["discovery"] = requests.discovery
    if settings.tracking.advice_cpu:
        tasks["auto_analyze"] = _auto_analyze(settings.tracking.advice_cpu, operations, queue, tables, requests)
    if tables.sources.saved is not None:
        tasks["registry_sync"] = _registry_sync(tables.sources.saved, operations, queue, tables, requests)
    if tables.sources.declared is not None:
        tasks["tables_file"] = _tables_file_sync(tables.sources.declared, operations, queue, tables, requests)
    tasks |= _consumer_tasks(settings, operations, requests)
    return tasks | _archive_tasks(settings, queue, tables, requests) | _queue_tasks(settings, queue)


def _consumer_tasks(
    settings: DeciderSettings, operations: OperationServices, requests: RequestServices
) -> dict[str, BackgroundTask]:
    """Build what takes events from queues."""
    buckets = {bucket: canonical_location(uri) for bucket, uri in settings.locations.buckets.items()}
    handler = MessageHandler(
        requests.resolver,
        requests.rejected,
        bucket_locations=buckets,
        count=operations.metrics.count_hints,
        now_ms=operations.now_ms,
    )
    access = settings.access
    queues = enumerate(access.sqs_queues, start=1)
    found: dict[str, BackgroundTask] = {f"sqs_{number}": SqsConsumer(SqsQueue(url), handler) for number, url in queues}
    if access.kafka_topics:
        topics = KafkaTopics(access.kafka_topics, access.kafka_options)
        found["kafka"] = KafkaConsumer(topics, handler, clock_s=time.monotonic)
    return found


def _registry_sync(
    saved: SavedRegistry,
    operations: OperationServices,
    queue: QueueServices,
    tables: TableServices,
    requests: RequestServices,
) -> RegistrySync:
    return RegistrySync(
        tables.registry,
        saved,
        RegistryEntries(operations.redis, queue.operator, operations.now_ms),
        MergeMark(operations.redis),
        AppliedChanges(requests.refresh_queue, queue.executor, tables.actions.kinds),
        clock_s=time.monotonic,
    )


def _tables_file_sync(
    file: TablesFile,
    operations: OperationServices,
    queue: QueueServices,
    tables: TableServices,
    requests: RequestServices,
) -> TablesFileSync:
    return TablesFileSync(
        file,
        TablesFileReader(requests.resolver.places, lambda: tables.defaults.current),
        TableDeclarations(tables.registry, queue.executor, queue.admin, requests.refresh_queue, tables.actions.kinds),
        operations.redis,
        clock_s=time.monotonic,
    )


def _auto_analyze(
    share: float,
    operations: OperationServices,
    queue: QueueServices,
    tables: TableServices,
    requests: RequestServices,
) -> AutoAnalyze:
    return AutoAnalyze(
        tables.advice,
        AdviceSources(tables.registry, tables.states, tables.formats, tables.defaults),
        share=share,
        has_jobs=queue.admin.has_jobs,
        backlog=lambda: requests.refresh_queue.backlog,
        now_ms=operations.now_ms,
    )


def _queue_tasks(settings: DeciderSettings, queue: QueueServices) -> dict[str, BackgroundTask]:
    """Build what keeps the queue fair, consistent and small."""
    return {
        "preemption": JobPreemption(queue.admin),
        "queue_audit": QueueAudit(queue.admin),
        "slot_count": SlotCount(queue.admin, queue.actors.slots),
        "aof_rewrite": AofRewrite(queue.admin),
        "library_cleanup": LibraryCleanup(queue.admin),
        "work_windows": WorkWindowTimes(queue.executor, settings.tracking.prices),
    }


def _archive_tasks(
    settings: DeciderSettings, queue: QueueServices, tables: TableServices, requests: RequestServices
) -> dict[str, BackgroundTask]:
    """Build what fills the archives that are wanted."""
    stores, found = settings.locations.store_options, dict[str, BackgroundTask]()
    if settings.archives.ledger is not None:
        found["ledger_archive"] = _ledger_archiver(settings.archives.ledger, stores, queue, tables, requests)
    if settings.archives.rewrites is not None:
        found["rewrite_archive"] = _rewrite_archiver(settings.archives.rewrites, stores, queue, tables, requests)
    return found


def _ledger_archiver(
    place: str, stores: StoreOptions, queue: QueueServices, tables: TableServices, requests: RequestServices
) -> LedgerArchiver:
    location = deltalake_location(place)
    return LedgerArchiver(
        DeltaArchive(ArchiveSpec(location, LEDGER_SCHEMA, ("day",), stores.at(location))),
        LedgerBatches(queue.executor),
        tables.registry,
        requests.refresh_queue,
        own=_own_table(location, ledger_archiver.APP),
        actions=tables.actions,
    )


def _rewrite_archiver(
    place: str, stores: StoreOptions, queue: QueueServices, tables: TableServices, requests: RequestServices
) -> RewriteArchiver:
    location = deltalake_location(place)
    return RewriteArchiver(
        DeltaArchive(ArchiveSpec(location, OPTIMIZATIONS_SCHEMA, (), stores.at(location))),
        RewriteSources(tables.registry, tables.states, queue.counters, tables.formats.rewrites),
        requests.refresh_queue,
        own=_own_table(location, rewrite_archiver.APP),
    )


def _own_table(location: str, name: str) -> TableRef:
    """Return an archive as a table of Lakewright's own tenant."""
    return TableRef(table_id(location), name, location, ledger_archiver.TENANT)
