"""Delta tables behind the worker's port: reads, rewrites and look-ups, each in a session of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from actor.formats.delta.actions import with_range
from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.conditional_put import ConditionalPuts
from actor.formats.delta.conflicts import FAILURES
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableLog
from actor.formats.delta.preflight import check_location
from actor.formats.delta.read import read_partition
from actor.formats.delta.rewriting import DeltaRewriter, DeltaRewriteSettings
from actor.formats.delta.self_test import self_test
from actor.formats.delta.table_jobs import TABLE_KINDS, TableJobLimits, TableJobs
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits
from actor.jvm.engine_life import JvmEngine
from actor.odd_files import local_boundary
from actor.ports import (
    Control,
    LivePartition,
    RewriteOutcome,
    RewriteRequest,
    TableJob,
    TableJobControl,
    TableJobOutcome,
)
from actor.proofread.proofreader import Proofreader
from actor.rewrite.run import RewriteSettings
from actor.vacuum.steps import VacuumLimits
from shared.errors import PermanentError
from shared.formats.delta import FORMAT
from shared.paths.boundary import Boundary
from shared.table import CommitOrigin, PartitionKey


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of the engine; see each field."""

    allow_s3: bool = False  # Only with a log store with mutual exclusion on every writer (see `preflight`).
    rewrite: RewriteSettings = field(default_factory=RewriteSettings)
    copy_limits: CopyLimits = DEFAULT_LIMITS  # What outputs may be like whose row groups are copied, not encoded.
    vacuum: VacuumLimits = field(default_factory=VacuumLimits)
    secrets: tuple[str, ...] = field(default=(), repr=False)  # Secrets, removed from what the JVM printed.
    boundary: Boundary = field(default_factory=local_boundary)
    proofreader: Proofreader | None = field(default=None, hash=False)  # One for all engines of an actor; None: its own.


class DeltaEngine(JvmEngine):
    """`actor.ports.TableEngine` for Delta, on one Spark application; safe to call from several threads."""

    format = FORMAT
    table_kinds: tuple[str, ...] = TABLE_KINDS

    def __init__(self, spark: SparkSession, settings: EngineSettings | None = None) -> None:
        self._settings = settings or EngineSettings()
        self._scala = DeltaScala(spark)
        super().__init__(spark, self._scala, secrets=self._settings.secrets, proofreader=self._settings.proofreader)
        self._caches = DeltaCaches()
        self._puts = ConditionalPuts(self._scala, spark)
        given, caches = self._settings, self._caches
        limits = TableJobLimits(given.vacuum, given.rewrite.reserved_disk_bytes)
        self._table_jobs = TableJobs(self._scala, self._sessions, given.boundary, limits, self.proofreader, caches)
        rewrites = DeltaRewriteSettings(given.rewrite, given.boundary, given.copy_limits)
        self._rewriter = DeltaRewriter(self._scala, self._sessions, caches, rewrites, self.proofreader)

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        """Return the live files of a partition at the newest version.

        Raises:
            OtherTable: the table is not the one of this id (empty: any).
            Unsupported: the table must not be rewritten; the message has the reason.
            InvalidInput: there is no Delta table.
            RetryableError: Spark or the store failed.
        """
        with self._log(location, "read") as log:
            seen = read_partition(log, partition, self._caches.reads, table_uuid=table_uuid)
        metadata = seen.shape.metadata
        files = tuple(with_range(logged, metadata.sort_key) for logged in seen.files)
        self._settings.boundary.check_files(location, files)
        return LivePartition(seen.version, metadata, seen.shape.protocol, files)

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Replace the groups' files without changing data; see `DeltaRewriter.rewrite` for what it raises."""
        self._check_place(request.location)
        with self._doing("rewriting", request.location):
            self._puts.check(request.location)
            return self._rewriter.rewrite(request, control)

    def run_table_job(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """Run a vacuum or write metadata; see `TableEngine.run_table_job`."""
        self._check_place(job.location)
        with self._doing(f"{job.kind} of", job.location):
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
    def _doing(self, what: str, location: str) -> Iterator[None]:
        """Say what failed, and have Delta read the table's log the next time."""
        with FAILURES.translated(f"{what} {location}"), self._caches.snapshots.forgotten_on_error(location):
            yield

    @contextmanager
    def _log(self, location: str, doing: str) -> Iterator[TableLog]:
        self._check_place(location)
        lease = self._sessions.lease(tag=f"lakewright-{doing}")
        with self._doing(doing, location), lease as owned, self._sessions.bound(owned) as session:
            yield TableLog(self._scala, session, location, self._caches.snapshots)


def start_engine(spark: SparkSession, settings: EngineSettings, *, scratch: str) -> tuple[DeltaEngine, int]:
    """Return an engine that passed the self-test on a table below `scratch`, and how long that took in ms.

    Raises PermanentError if it fails: no rewrite of this Spark and Delta can be trusted.

    `scratch` is the URI of a directory that driver and executors can write to.
    """
    engine = DeltaEngine(spark, settings)
    verdict = self_test(spark, engine, scratch)
    if not verdict.passed:
        raise PermanentError(
            f"the exact rewrite does not work with the installed Spark and Delta, so no table is touched: "
            f"{verdict.reason}. Install the versions that Lakewright pins; on a cluster, let "
            "LAKEWRIGHT_SELF_TEST_LOCATION be a place that executors write to"
        )
    return engine, verdict.took_ms
