"""Tables with a Qbeast index behind the worker's port: one kind of job, in a session of its own for each run."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from actor.formats.delta.conflicts import translate
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.preflight import check_location
from actor.formats.qbeast.index_job import IndexJob
from actor.formats.qbeast.library import CHECK, JvmIndexLibrary
from actor.jvm.engine_life import JvmEngine
from actor.jvm.scala import jvm_session
from actor.jvm.sessions import EXACT_CONF
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
from shared.errors import LakewrightError, RetryableError
from shared.formats.delta import FORMAT
from shared.jobs.payload import INDEX
from shared.paths.boundary import Boundary
from shared.table import CommitOrigin, PartitionKey

SESSION_CONF: Mapping[str, str] = {
    **EXACT_CONF,
    # The library reads its files as plain Parquet. Without this, columns that only some of them have would be lost.
    "spark.sql.parquet.mergeSchema": "true",
    # Names that differ in case alone are one column to Delta.
    "spark.sql.caseSensitive": "false",
}
"""Settings of every session in which the library rewrites files."""


@dataclass(frozen=True, slots=True)
class QbeastEngineSettings:
    """Settings of the engine; see each field."""

    allow_s3: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)  # Removed from what the JVM printed.
    boundary: Boundary = field(default_factory=local_boundary)


class QbeastEngine(JvmEngine):
    """`actor.ports.TableEngine` for indexes, on one Spark application; safe to call from several threads."""

    format = FORMAT
    partition_kinds: tuple[str, ...] = ()
    table_kinds: tuple[str, ...] = (INDEX,)

    def __init__(self, spark: SparkSession, settings: QbeastEngineSettings | None = None) -> None:
        self._settings = settings or QbeastEngineSettings()
        self._scala = DeltaScala(spark)
        super().__init__(spark, self._scala, secrets=self._settings.secrets)
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._check = self._scala.resolve(CHECK)

    def run_table_job(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """Optimize an index; raises RetryableError for a kind that this engine does not run."""
        if job.kind != INDEX:
            raise RetryableError(f"this actor runs no jobs of the kind {job.kind!r}, only of {INDEX!r}")
        with self.library(job.location, tag=job.origin.job, key=f"{job.origin.job}/{job.origin.token}") as library:
            return IndexJob(library, self._settings.boundary, job, control).run()

    @contextmanager
    def library(self, location: str, *, tag: str, key: str) -> Iterator[JvmIndexLibrary]:
        """Open a table in a session of its own, which is this thread's active one; `tag` cancels its Spark jobs."""
        check_location(location, allow_s3=self._settings.allow_s3)
        self._settings.boundary.check_table(location)
        session = self._spark.newSession()
        for name, value in SESSION_CONF.items():
            session.conf.set(name, value)
        active, context = self._scala.resolve("org.apache.spark.sql.SparkSession"), self._spark.sparkContext
        with self._lock:
            self._running.add(key)
        try:
            active.setActiveSession(jvm_session(session))
            context.addJobTag(tag)
            yield JvmIndexLibrary(self._scala, session, location)
        except LakewrightError:
            raise
        except Exception as error:
            raise translate(error, f"the index of {location}") from error
        finally:
            with self._lock:
                self._running.discard(key)
                self._check.end(key)
            context.removeJobTag(tag)
            active.clearActiveSession()

    def cancel(self, job: str) -> None:
        """Forbid the commit of this job's call, and cancel its Spark jobs."""
        with self._lock:
            for key in self._running:
                if key.rpartition("/")[0] == job:
                    self._check.cancel(key)
        super().cancel(job)

    def find_commit(self, location: str, *, job: str, token: int, since_version: int) -> int | None:
        """Return the version above `since_version` that this job and token committed, None if there is none."""
        origin = CommitOrigin(job, token)
        with self.library(location, tag="lakewright-find", key=f"find/{job}/{token}") as library:
            found = (commit.version for commit in library.commits(since_version) if _is_of(commit.write_id, origin))
            return next(found, None)

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        """Raise RetryableError: only whole tables are optimized."""
        raise RetryableError(f"this actor reads no partitions, as of {location} ({partition}, {table_uuid})")

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Raise RetryableError: only the library rewrites."""
        raise RetryableError(f"this actor runs no rewrites of {request.location}, {control} allowed or not")


def _is_of(write_id: str, origin: CommitOrigin) -> bool:
    return write_id.startswith(f"{origin.job}/{origin.token}/")
