"""Iceberg tables behind the worker's port: reads, rewrites and look-ups, each in a session of its own."""

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import SparkSession

from actor.engines import RUNNABLE_KINDS
from actor.formats.iceberg.catalogs import TableLoader
from actor.formats.iceberg.commit import IcebergCommit, IcebergCommitter, Signature
from actor.formats.iceberg.conflicts import is_token_refused, translate
from actor.formats.iceberg.inputs import InputGroup, files_at_read, resolve, still_live
from actor.formats.iceberg.java_manifests import JavaManifests
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.manifests_job import ManifestsJob
from actor.formats.iceberg.parquet_task import IcebergTasks
from actor.formats.iceberg.properties_job import IcebergPropertiesJob
from actor.formats.iceberg.row_group_copy import IcebergCopier
from actor.formats.iceberg.vacuum import IcebergVacuum
from actor.formats.iceberg.vacuum_table import JavaVacuumTable
from actor.formats.iceberg.write import SESSION_CONF, StagedWriter
from actor.formats.iceberg.write_groups import StagingContext, write_groups
from actor.formats.parquet.classes import ICEBERG_SOURCES, ParquetClasses
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits, CopyRule
from actor.jvm.engine_life import JvmEngine
from actor.ports import (
    Control,
    GroupOutcome,
    GroupStatus,
    LivePartition,
    RewriteOutcome,
    RewriteRequest,
    TableJob,
    TableJobControl,
    TableJobOutcome,
)
from actor.vacuum_steps import VacuumLimits
from shared import commit_metadata
from shared.boundary import Boundary
from shared.errors import Conflict, InvalidInput, LakewrightError, OtherTable, RetryableError, Unsupported
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import COMMIT_KEY, FORMAT
from shared.formats.iceberg.positions import newest_position, positions
from shared.formats.iceberg.refusal import refusal
from shared.formats.iceberg.support import JOB_KINDS
from shared.job_payload import REWRITE_MANIFESTS, SET_PROPERTIES
from shared.layout.planner import FileGroup
from shared.table import CommitOrigin, PartitionKey

FILES_WRITTEN = "files_written"
COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class IcebergEngineSettings:
    """What the engine may do and how; see each field."""

    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, hash=False)
    reads_folders: bool = False  # Only where one process commits to tables without a catalog.
    write_threads: int = 2  # Of groups, each of which needs a core at a time; more only share them.
    commit_attempts: int = 5  # Each attempt means that others committed on our files in the second before.
    secrets: tuple[str, ...] = field(default=(), repr=False)  # Secrets, removed from what the JVM printed.
    boundary: Boundary = field(default_factory=lambda: Boundary(real_path=os.path.realpath))
    vacuum: VacuumLimits = field(default_factory=VacuumLimits)
    copy_limits: CopyLimits = DEFAULT_LIMITS  # What outputs may be like whose row groups are copied, not encoded.


@dataclass(frozen=True, slots=True)
class _OpenedTable:
    """A table and the session of a call; each further thread that works for the call enters `bound`."""

    table: JavaTable
    session: SparkSession
    bound: Callable[[], AbstractContextManager[object]]


class IcebergEngine(JvmEngine):
    """`actor.ports.TableEngine` for Iceberg, on one Spark application; safe to call from several threads."""

    format = FORMAT
    table_kinds: tuple[str, ...] = tuple(kind for kind in JOB_KINDS if kind not in RUNNABLE_KINDS)

    def __init__(self, spark: SparkSession, settings: IcebergEngineSettings | None = None) -> None:
        self._settings = settings or IcebergEngineSettings()
        super().__init__(spark, secrets=self._settings.secrets)
        self.classes = ParquetClasses(ICEBERG_SOURCES, "lakewright-iceberg.jar")
        self._tables = TableLoader(
            self._scala, spark, self._settings.catalogs, reads_folders=self._settings.reads_folders
        )

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        """Return the live files of a partition at the newest snapshot of main.

        Raises OtherTable, Unsupported, InvalidInput where there is no table, RetryableError where Spark, the catalog or
        the store failed.
        """
        with self._opened(location, "read") as opened:
            table = opened.table
            head = table.head()
            self._check(head, location, table_uuid)
            live = {} if head.current is None else table.inputs(head, head.current, partitions=(partition,))
            files = tuple(one.file for one in live.values())
            self._settings.boundary.check_files(head.location, files)
            return LivePartition(newest_position(head).version, head.metadata, head.protocol, files)

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Replace the groups' files in one snapshot; those whose inputs changed return CONFLICTED.

        Raises:
            LeaseLost: the control forbade the commit; nothing was committed, our files are deleted.
            Conflict: others won every attempt.
            Corrupt: rows in and rows out differ; nothing was committed.
            RetryableError: Spark failed, or the outcome of the commit is unknown and the table does not show it.
        """
        ours = commit_metadata.decode(request.user_metadata)
        if ours is None:
            raise InvalidInput(f"the metadata {request.user_metadata!r} names no job and token", field="user_metadata")
        tags = [origin.job for origin in ours.origins]
        with self._opened(request.location, *tags) as opened:
            started = time.monotonic()
            return _Rewrite(self, opened, request, control).finish(started)

    def run_table_job(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """Run a job on the whole table; raises RetryableError for a kind that only another release knows."""
        if job.kind not in self.table_kinds:
            raise RetryableError(f"this release runs no {job.kind} of Iceberg tables; upgrade the actors")
        check = partial(self._check, location=job.location, table_uuid=job.table_uuid)
        with self._opened(job.location, job.origin.job) as opened:
            table = opened.table
            if job.kind == REWRITE_MANIFESTS:
                return ManifestsJob(JavaManifests(self._scala, table, opened.session), job, control, check).run()
            if job.kind == SET_PROPERTIES:
                return IcebergPropertiesJob(table, job, control, check).run()
            store = JavaVacuumTable(self._scala, table, check, self._settings.boundary)
            return IcebergVacuum(store, job, control, self._settings.vacuum).run()

    def find_commit(self, location: str, *, job: str, token: int, since_version: int) -> int | None:
        """Return the version above `since_version` that this job and token committed, None if there is none."""
        wanted = CommitOrigin(job, token)
        with self._opened(location, "find") as opened:
            head = opened.table.head()
            at = positions(head)
            for snapshot in head.chain():
                ours = commit_metadata.decode(snapshot.summary.get(COMMIT_KEY))
                if at[snapshot.id].version > since_version and ours is not None and wanted in ours.origins:
                    return at[snapshot.id].version
        return None

    @property
    def settings(self) -> IcebergEngineSettings:
        """What this engine may do."""
        return self._settings

    def _check(self, head: TableHead, location: str, table_uuid: str) -> None:
        if table_uuid and head.metadata.table_uuid != table_uuid:
            raise OtherTable(
                f"{location} is the table {head.metadata.table_uuid}, and the job is about {table_uuid}: it was "
                "dropped and created again since; nothing was changed",
                field="table_uuid",
                allowed=table_uuid,
            )
        found = refusal(head.metadata, head.protocol)
        if found is not None:
            raise Unsupported(f"{location}: {found.message}", field=found.subject)

    @contextmanager
    def _opened(self, location: str, tag: str, *more_tags: str) -> Iterator[_OpenedTable]:
        self._settings.boundary.check_table(location)
        lease = self._sessions.lease(tag=tag, more_tags=more_tags, conf=SESSION_CONF)
        with _translated(f"{location}"), lease as owned, self._sessions.bound(owned) as session:
            table = self._tables.load(location)
            table.with_classes = partial(self._with_classes, session)
            try:
                yield _OpenedTable(table, session, partial(self._sessions.bound, owned))
            except Exception as error:
                if is_token_refused(error):
                    raise RetryableError(f"{location}: the catalog no longer accepts the token of this run") from error
                raise

    def _with_classes(self, session: SparkSession, call: Callable[[], object]) -> object:
        """Return what a call of our Java classes returns, None in a JVM that cannot use them."""
        if not self.classes.are_usable(session):
            return None
        try:
            return call()
        except Exception as problem:  # noqa: BLE001 - raised again unless a JVM refused the classes
            self.classes.give_up_if_refused(session, problem)
            return None


class _Rewrite:
    """One rewrite: what it read, what it wrote, and how its commit ended."""

    def __init__(self, engine: IcebergEngine, opened: _OpenedTable, request: RewriteRequest, control: Control) -> None:
        self._engine = engine
        self._request = request
        self._control = control
        self._table = _CheckedTable(opened.table, engine, request)
        self._java = opened.table
        self._session = opened.session
        self._bound = opened.bound

    def finish(self, started: float) -> RewriteOutcome:
        """Write, commit, and return the outcome."""
        head = self._java.head()
        self._table.check(head)
        if head.current is None:
            return self._outcome((), IcebergCommit(None, (), (), 0), started, started)
        live = resolve(self._request.groups, self._java.live(head.current, self._request.groups))
        boundary = self._engine.settings.boundary
        inputs = [one.file for group in live for one in group.inputs]
        boundary.check_files(head.location, inputs)
        boundary.check_links(head.location, (file.path for file in inputs))
        signature = Signature(self._request.user_metadata, str(uuid.uuid4()))
        committer = IcebergCommitter(
            self._table, signature, self._control, since=head.current, at_read=files_at_read(self._java, head, live)
        )
        context = StagingContext(
            writer=StagedWriter(self._java, self._session, self._copier(head)),
            threads=self._engine.settings.write_threads,
            bound=self._bound,
            should_stop=self._control.should_stop,
            is_live=self._is_live,
            discard=committer.discard,
        )
        written, skipped = write_groups(context, live)
        written_at = time.monotonic()
        try:
            boundary.check_files(head.location, [file for group in written for file in group.outputs])
            if written:
                self._control.reached(FILES_WRITTEN)
        except BaseException:
            committer.discard(written)
            raise
        result = IcebergCommit(None, (), (), 0)
        if written:
            result = committer.commit(written, attempts=self._engine.settings.commit_attempts)
            if result.version is not None:
                self._control.reached(COMMITTED)
        return self._outcome(skipped, result, started, written_at)

    def _copier(self, head: TableHead) -> IcebergCopier:
        tasks = IcebergTasks(self._engine._scala, self._session, self._java)  # noqa: SLF001 - of the same module
        rule = CopyRule(self._request.may_copy, self._request.full_bytes, self._engine.settings.copy_limits)
        return IcebergCopier(self._java, head, tasks, self._engine.classes, rule)

    def _is_live(self, group: InputGroup) -> bool:
        head = self._java.refresh()
        return head.current is not None and still_live(group, self._java.live(head.current, [group.group]))

    def _outcome(
        self,
        skipped: Sequence[FileGroup],
        result: IcebergCommit,
        started: float,
        written_at: float,
    ) -> RewriteOutcome:
        done = {
            one.live.group: GroupOutcome(
                one.live.group,
                GroupStatus.COMMITTED,
                one.outputs,
                one.rows,
                is_copied=one.encoded_because is None,
                encoded_because=one.encoded_because or "",
            )
            for one in result.committed
        }
        known = done | {group: GroupOutcome(group, GroupStatus.SKIPPED) for group in skipped}
        return RewriteOutcome(
            version=result.version,
            groups=tuple(
                known.get(group) or GroupOutcome(group, GroupStatus.CONFLICTED) for group in self._request.groups
            ),
            prepare_ms=round((written_at - started) * 1000),
            commit_ms=round((time.monotonic() - written_at) * 1000),
            conflicts=result.conflicts,
        )


class _CheckedTable:
    """`CommitTarget` that checks, before each attempt, that the table is still the one of the request."""

    def __init__(self, table: JavaTable, engine: IcebergEngine, request: RewriteRequest) -> None:
        self._engine = engine
        self._request = request
        self._format_version: int | None = None
        self.location = table.location
        self.refresh = table.refresh
        self.live = table.live
        self.commit = table.commit
        self.delete = table.delete

    def check(self, head: TableHead) -> None:
        """Raise Unsupported or OtherTable, and Conflict if the format version is not that of the first check.

        Outputs that were written under version 2 hold no ids of rows; inputs have got theirs with the first commit
        under version 3, and would lose them.
        """
        self._engine._check(head, self.location, self._request.table_uuid)  # noqa: SLF001 - of the same module
        found, read = head.protocol.min_writer, self._format_version
        if read is not None and found != read:
            raise Conflict(
                f"{self.location} had format version {read} when it was read, and has {found} now; plan it again",
                kind="FormatVersion",
            )
        self._format_version = found


@contextmanager
def _translated(doing: str) -> Iterator[None]:
    """Let our own errors pass, and turn those of Spark and Iceberg into ours."""
    try:
        yield
    except LakewrightError:
        raise
    except Exception as error:
        raise translate(error, doing) from error
