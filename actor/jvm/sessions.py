"""One Spark session belongs to one call at a time: a commit's userMetadata is session configuration.

Two rewrites that shared a session would sign each other's commits. Sessions are cheap to keep and slow to make, so a
small stack of idle ones is reused. In the JVM the active session, the scheduler pool and the job tags belong to a
thread, so each thread that works for a call enters `bound` first.
"""

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from pyspark.sql import SparkSession

from actor.jvm.scala import Scala, jvm_session

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"

COMMIT_RETRIES = 20
"""Times that Delta itself tries the next version inside one commit call, before the lease is checked again."""

EXACT_CONF: Mapping[str, str] = MappingProxyType(
    {
        # Partition values without a zone are read as UTC, which is how `shared.partitions` reads them.
        "spark.sql.session.timeZone": "UTC",
        # A rewrite must see every byte of its inputs or fail.
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.files.ignoreCorruptFiles": "false",
        # These two would cut or shuffle what is written, and auto-compaction would follow it.
        "spark.databricks.delta.optimizeWrite.enabled": "false",
        "spark.databricks.delta.autoCompact.enabled": "false",
        "spark.databricks.delta.stats.collect": "true",
        # Delta's timestamps are microseconds. INT96 has no statistics, and readers take it for nanoseconds.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Days and instants before 1582 and 1900 follow the Gregorian calendar, for each reader alike.
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.sql.legacy.parquet.nanosAsLong": "false",
        # Columns of files are found by id where Delta maps them so. Delta sets both itself, but only once a session
        # has analyzed a query, and a first rewrite has not.
        "spark.sql.parquet.fieldId.read.enabled": "true",
        "spark.sql.parquet.fieldId.write.enabled": "true",
    }
)
"""Settings under which rows are read and written again as they are, in place of the application's own."""

SESSION_CONF: Mapping[str, str] = MappingProxyType(
    {
        **EXACT_CONF,
        "spark.sql.files.maxRecordsPerFile": "0",  # One group is one output file.
        "spark.sql.parquet.writeLegacyFormat": "false",
        "spark.sql.parquet.int96TimestampConversion": "false",
        # Where outputs lie is found again by their paths (`output_paths`).
        "spark.databricks.delta.write.dataFilesToSubdir": "false",
        "spark.databricks.delta.maxCommitAttempts": str(COMMIT_RETRIES),
    }
)
"""Settings of every session in which Lakewright writes the files."""


@contextmanager
def changed(scala: Scala, session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session for a while; what was set before is set again."""
    if not values:
        yield
        return
    before = scala.session_settings.set(jvm_session(session), json.dumps(dict(values)))
    try:
        yield
    finally:
        before.restore()


@dataclass(frozen=True, slots=True)
class OwnedSession:
    """A session that one call owns, with the scheduler pool and the job tags its threads run under."""

    session: SparkSession
    pool: str
    tags: tuple[str, ...]


class Sessions:
    """The stack of idle sessions."""

    def __init__(self, scala: Scala, spark: SparkSession) -> None:
        self._scala = scala
        self._spark = spark
        self._lock = threading.Lock()
        self._thread = threading.local()  # `tags` of this thread: to iterate over the JVM's takes hundreds of calls.
        self._idle: list[tuple[SparkSession, str]] = []
        self._made = 0

    @contextmanager
    def lease(
        self,
        *,
        tag: str,
        more_tags: Iterable[str] = (),
        user_metadata: str = "",
        conf: Mapping[str, str] | None = None,
    ) -> Iterator[OwnedSession]:
        """Own a session whose commits carry `user_metadata`; `conf` is set for this lease only."""
        session, pool = self._take()
        own = {**(conf or {}), **({USER_METADATA: user_metadata} if user_metadata else {})}
        try:
            with changed(self._scala, session, own):
                yield OwnedSession(session, pool, (tag, *more_tags))
        finally:
            with self._lock:
                self._idle.append((session, pool))

    def _take(self) -> tuple[SparkSession, str]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            self._made += 1
            pool = f"lakewright-{self._made}"
        session = self._spark.newSession()
        for name, value in SESSION_CONF.items():
            session.conf.set(name, value)
        return session, pool

    @contextmanager
    def bound(self, owned: OwnedSession) -> Iterator[SparkSession]:
        """Make the session the active one of this thread, and mark the thread's Spark jobs with pool and tags.

        In a thread that works for it already, nothing is to be done.
        """
        outer = getattr(self._thread, "owned", None)
        if outer is owned:
            yield owned.session
            return
        # Those that a `bound` around this one has set stay, because it still wants them.
        outer_tags: frozenset[str] = getattr(self._thread, "tags", frozenset())
        new_tags = frozenset(owned.tags) - outer_tags
        enter = self._scala.bound_thread.enter
        bound = enter(jvm_session(owned.session), owned.pool, json.dumps(sorted(new_tags)))
        self._thread.tags, self._thread.owned = outer_tags | new_tags, owned
        try:
            yield owned.session
        finally:
            self._thread.tags, self._thread.owned = outer_tags, outer
            bound.leave()

    def cancel(self, tag: str) -> None:
        """Cancel all running Spark jobs and local tasks of this tag; what runs them fails with a RetryableError."""
        self._spark.sparkContext.cancelJobsWithTag(tag)
        self._scala.local_tasks.cancel(tag)
