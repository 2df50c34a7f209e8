"""Delta tables behind the worker's port: reads, rewrites and look-ups, each in a session of its own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from pyspark.sql import SparkSession

from actor.formats.delta.actions import with_range
from actor.formats.delta.conditional_put import ConditionalPuts
from actor.formats.delta.conflicts import translate
from actor.formats.delta.log import TableLog
from actor.formats.delta.optimize_fallback import OptimizeExecutor
from actor.formats.delta.preflight import check_location
from actor.formats.delta.read import read_partition
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.self_test import SelfTestResult, self_test
from actor.formats.delta.snapshot_cache import SnapshotCache
from actor.formats.delta.table_jobs import TABLE_KINDS, TableJobLimits, TableJobs
from actor.formats.delta.transaction import TransactionExecutor, TransactionSettings
from actor.formats.parquet.classes import warn_unavailable
from actor.jvm.engine_life import JvmEngine
from actor.ports import (
    Control,
    LivePartition,
    RewriteOutcome,
    RewriteRequest,
    TableJob,
    TableJobControl,
    TableJobOutcome,
)
from actor.vacuum_steps import VacuumLimits
from shared.boundary import Boundary
from shared.errors import LakewrightError
from shared.formats.delta import FORMAT
from shared.table import CommitOrigin, PartitionKey

_log = structlog.get_logger(__name__)


class RewriteExecutor(Protocol):
    """One way to rewrite; `is_exact`: precisely the planned files are replaced."""

    is_exact: bool

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """See `actor.ports.TableEngine.rewrite`."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What the engine may do and how; see each field."""

    allow_s3: bool = False  # Only with a log store with mutual exclusion on every writer (see `preflight`).
    transaction: TransactionSettings = field(default_factory=TransactionSettings)
    vacuum: VacuumLimits = field(default_factory=VacuumLimits)
    secrets: tuple[str, ...] = field(default=(), repr=False)  # Secrets, removed from what the JVM printed.
    boundary: Boundary = field(default_factory=lambda: Boundary(real_path=os.path.realpath))


class DeltaEngine(JvmEngine):
    """`actor.ports.TableEngine` for Delta, on one Spark application; safe to call from several threads.

    It rewrites exactly. `use_optimize` changes to the fallback, for good.
    """

    format = FORMAT
    table_kinds: tuple[str, ...] = TABLE_KINDS

    def __init__(self, spark: SparkSession, settings: EngineSettings | None = None) -> None:
        self._settings = settings or EngineSettings()
        super().__init__(spark, secrets=self._settings.secrets)
        self._read_cache = ReadCache()
        self._snapshots = SnapshotCache()
        self._puts = ConditionalPuts(self._scala, spark)
        limits = TableJobLimits(self._settings.vacuum, self._settings.transaction.reserved_disk_bytes)
        self._table_jobs = TableJobs(self._scala, self._sessions, self._settings.boundary, limits)
        self.executor: RewriteExecutor = TransactionExecutor(
            self._scala, self._sessions, self._read_cache, self._snapshots, self._settings.transaction
        )

    def stop_copying(self) -> bool:
        """Copy no row groups from now on; returns whether that changes anything."""
        return isinstance(self.executor, TransactionExecutor) and self.executor.stop_copying()

    def use_optimize(self) -> None:
        """Rewrite by OPTIMIZE from now on, which is public API but not exact (see `optimize`)."""
        self.executor = OptimizeExecutor(self._scala, self._sessions, self._read_cache, self._snapshots)

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        """Return the live files of a partition at the newest version.

        Raises:
            OtherTable: the table is not the one of this id (empty: any).
            Unsupported: the table must not be rewritten; the message has the reason.
            InvalidInput: there is no Delta table.
            RetryableError: Spark or the store failed.
        """
        with self._log(location, "read") as log:
            seen = read_partition(log, partition, self._read_cache, table_uuid=table_uuid)
        metadata = seen.shape.metadata
        files = tuple(with_range(logged, metadata.sort_key) for logged in seen.files)
        self._settings.boundary.check_files(location, files)
        return LivePartition(seen.version, metadata, seen.shape.protocol, files)

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Replace the groups' files without changing data; see the executor for what it raises."""
        self._check_place(request.location)
        files = [file for group in request.groups for file in group.files]
        self._settings.boundary.check_files(request.location, files)
        self._settings.boundary.check_links(request.location, (file.path for file in files))
        with _translated(f"rewriting {request.location}"), self._snapshots.forgotten_on_error(request.location):
            self._puts.check(request.location)
            return self.executor.rewrite(request, control)

    def run_table_job(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """Run a vacuum or write metadata; see `TableEngine.run_table_job`."""
        self._check_place(job.location)
        with _translated(f"{job.kind} of {job.location}"):
            self._puts.check(job.location)
            return self._table_jobs.run(job, control)

    def find_commit(self, location: str, *, job: str, token: int, since_version: int) -> int | None:
        """Return the version above `since_version` that this job and token committed, None if there is none."""
        with self._log(location, "find") as log:
            return log.find_commit(CommitOrigin(job, token), since_version=since_version)

    def _check_place(self, location: str) -> None:
        check_location(location, allow_s3=self._settings.allow_s3)
        self._settings.boundary.check_table(location)

    @contextmanager
    def _log(self, location: str, doing: str) -> Iterator[TableLog]:
        self._check_place(location)
        lease = self._sessions.lease(tag=f"lakewright-{doing}")
        cached = self._snapshots.forgotten_on_error(location)
        with _translated(f"{doing} {location}"), cached, lease as owned, self._sessions.bound(owned) as session:
            yield TableLog(self._scala, session, location, self._snapshots)


def start_engine(spark: SparkSession, settings: EngineSettings, *, scratch: str) -> tuple[DeltaEngine, SelfTestResult]:
    """Return an engine that passed the self-test on a table below `scratch`, or uses the fallback if it failed.

    If it fails while it may copy row groups, it is tried again without.

    `scratch` is the URI of a directory that driver and executors can write to.
    """
    engine = DeltaEngine(spark, settings)
    verdict = self_test(spark, engine, scratch)
    if not verdict.passed and engine.stop_copying():
        reason, verdict = verdict.reason, self_test(spark, engine, scratch)
        if verdict.passed:
            warn_unavailable(spark, f"the self-test failed while row groups were copied: {reason}")
    if verdict.passed:
        _log.info("self_test_passed", took_ms=verdict.took_ms)
    else:
        _log.error("self_test_failed", reason=verdict.reason, took_ms=verdict.took_ms, fallback="optimize")
        engine.use_optimize()
    return engine, verdict


@contextmanager
def _translated(doing: str) -> Iterator[None]:
    """Let our own errors pass, and turn those of Spark and Delta into ours."""
    try:
        yield
    except LakewrightError:
        raise
    except Exception as error:
        raise translate(error, doing) from error
