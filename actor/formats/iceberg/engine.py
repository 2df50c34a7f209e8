"""Iceberg tables behind the worker's port: reads, rewrites and look-ups, each in a session of its own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import SparkSession

from actor.cells.job import CellJob
from actor.engines import RUNNABLE_KINDS
from actor.formats.iceberg.catalogs import TableLoader
from actor.formats.iceberg.cell_table import CellTarget, IcebergCells
from actor.formats.iceberg.commit import IcebergTarget
from actor.formats.iceberg.conflicts import FAILURES, is_token_refused
from actor.formats.iceberg.convert_deletes import Conversion
from actor.formats.iceberg.expire import IcebergAgedTable
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.inputs import InputGroup, resolve, still_live
from actor.formats.iceberg.java_cells import JavaCells
from actor.formats.iceberg.java_deletes import JavaDeletes
from actor.formats.iceberg.java_manifests import JavaManifests
from actor.formats.iceberg.java_statistics import JavaStatistics, keep_statistics
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.manifests_job import ManifestsJob
from actor.formats.iceberg.merge_deletes_job import MergeDeletesJob
from actor.formats.iceberg.output_check import OutputCheck
from actor.formats.iceberg.parquet_task import IcebergTasks
from actor.formats.iceberg.properties_job import IcebergPropertiesJob
from actor.formats.iceberg.row_group_copy import IcebergCopier
from actor.formats.iceberg.statistics_job import StatisticsJob
from actor.formats.iceberg.vacuum import IcebergVacuum
from actor.formats.iceberg.vacuum_table import JavaVacuumTable
from actor.formats.iceberg.write import SESSION_CONF, StagedWriter
from actor.formats.parquet.classes import ParquetClasses
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits, CopyRule
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
from actor.rewrite.checks import check_identity
from actor.rewrite.late_rows import Comparisons
from actor.rewrite.run import ExactRewrite, RewriteSettings
from actor.row_expiry import ExpiryJob, proofread_of
from actor.vacuum.steps import VacuumLimits
from shared.errors import Conflict, InvalidInput, RetryableError, Unsupported
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import COMMIT_KEY, FORMAT
from shared.formats.iceberg.positions import main_versions, newest_position
from shared.formats.iceberg.refusal import refusal
from shared.formats.iceberg.support import JOB_KINDS
from shared.jobs.payload import CLUSTER, EXPIRE, SET_PROPERTIES
from shared.layout import commit_metadata
from shared.layout.planner import FileGroup
from shared.layout.upkeep import COMPUTE_STATISTICS, CONVERT_DELETES, MERGE_DELETES, REWRITE_MANIFESTS
from shared.paths.boundary import Boundary
from shared.paths.locations import canonical_location
from shared.policy.policy import Proofread, RowGroupCopy
from shared.table import CommitOrigin, PartitionKey


@dataclass(frozen=True, slots=True)
class IcebergEngineSettings:
    """Settings of the engine; see each field."""

    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, hash=False)
    reads_folders: bool = False  # Only where one process commits to tables without a catalog.
    rewrite: RewriteSettings = field(default_factory=RewriteSettings)
    secrets: tuple[str, ...] = field(default=(), repr=False)  # Secrets, removed from what the JVM printed.
    boundary: Boundary = field(default_factory=local_boundary)
    vacuum: VacuumLimits = field(default_factory=VacuumLimits)
    copy_limits: CopyLimits = DEFAULT_LIMITS  # What outputs may be like whose row groups are copied, not encoded.


@dataclass(frozen=True, slots=True)
class _OpenedTable:
    """A table and the session of a call, its own where Spark jobs may run; further threads enter `bound`."""

    table: JavaTable
    session: SparkSession
    bound: Callable[[], AbstractContextManager[object]]


class IcebergEngine(JvmEngine):
    """`actor.ports.TableEngine` for Iceberg, on one Spark application; safe to call from several threads."""

    format = FORMAT
    table_kinds: tuple[str, ...] = tuple(kind for kind in JOB_KINDS if kind not in RUNNABLE_KINDS)

    def __init__(
        self,
        spark: SparkSession,
        settings: IcebergEngineSettings | None = None,
        proofreader: Proofreader | None = None,
    ) -> None:
        self._settings = settings or IcebergEngineSettings()
        self._boundary = self._settings.boundary.for_literal_paths()
        self._scala = IcebergScala(spark)
        super().__init__(spark, self._scala, secrets=self._settings.secrets, proofreader=proofreader)
        self._classes = ParquetClasses()
        self._tables = TableLoader(
            self._scala, spark, self._settings.catalogs, reads_folders=self._settings.reads_folders
        )

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        """Return the live files of a partition at the newest snapshot of main.

        Raises OtherTable, Unsupported, InvalidInput where there is no table, RetryableError where Spark, the catalog or
        the store failed.
        """
        with self._opened(location) as opened:
            table = opened.table
            head = table.head()
            _check(head, location, table_uuid)
            live = (
                {} if head.current is None else table.inputs(head, head.current, partitions=(partition,), floats=True)
            )
            files = tuple(one.file for one in live.values())
            self._boundary.check_files(head.location, files)
            return LivePartition(newest_position(head).version, head.metadata, head.protocol, files)

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Replace the groups' files in one snapshot; see `ExactRewrite.run`. Raises InvalidInput, too."""
        ours = commit_metadata.decode(request.user_metadata)
        if ours is None:
            raise InvalidInput(f"the metadata {request.user_metadata!r} names no job and token", field="user_metadata")
        tags = [origin.job for origin in ours.origins]
        with self._opened(request.location, *tags) as opened:
            table, given = opened.table, self._settings
            head = table.head()
            _check(head, table.location, request.table_uuid)
            self._check_plain(head, request.location)
            rule = CopyRule(request.may_copy, request.full_bytes, given.copy_limits)
            writer, reader = self._writer(opened, head, rule, request.proofread, " ".join(tags))
            same = partial(_check, location=request.location, table_uuid=request.table_uuid)
            check = _HeadCheck(same, request.location, head.protocol.min_writer)
            rewrite = ExactRewrite(
                _IcebergFiles(table, head),
                writer,
                IcebergTarget(table, check, head, request.user_metadata, Comparisons(reader.check_places)),
                self._boundary,
                given.rewrite,
            )
            outcome = rewrite.run(request, control)
            if outcome.version is not None:
                keep_statistics(self._scala, opened.table)
            return outcome

    def _check_plain(self, head: TableHead, location: str) -> None:
        if canonical_location(head.location) != canonical_location(location):
            self._settings.boundary.check_plain(head.location)  # Of a table in a folder, it was when it was opened.

    def _writer(
        self, opened: _OpenedTable, head: TableHead, rule: CopyRule, proofread: Proofread, tag: str
    ) -> tuple[StagedWriter, OutputCheck]:
        """Return what writes groups of a table as of these metadata, and what compares them."""
        table = opened.table
        tasks = IcebergTasks(self._scala, opened.session, table)
        copier = IcebergCopier(table, head, tasks, self._classes, rule)
        reader = OutputCheck(table, head, tasks, copier.columns, self.proofreader, proofread, tag)
        return StagedWriter(table, opened.session, copier, head, reader, opened.bound), reader

    def run_table_job(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """Run a job on the whole table; raises RetryableError for a kind that only another release knows."""
        if job.kind not in self.table_kinds:
            raise RetryableError(f"this release runs no {job.kind} of Iceberg tables; upgrade the actors")
        check = partial(_check, location=job.location, table_uuid=job.table_uuid)
        with self._opened(job.location, job.origin.job) as opened:
            outcome = self._table_job(opened, job, control, check)
            if outcome.commits:
                keep_statistics(self._scala, opened.table)
            return outcome

    def _table_job(
        self, opened: _OpenedTable, job: TableJob, control: TableJobControl, check: Callable[[TableHead], None]
    ) -> TableJobOutcome:
        table = opened.table
        if job.kind == REWRITE_MANIFESTS.kind:
            return ManifestsJob(JavaManifests(self._scala, table, opened.session), job, control, check).run()
        if job.kind in (MERGE_DELETES.kind, CONVERT_DELETES.kind):
            return self._merge_deletes(opened, job, control, check)
        if job.kind == COMPUTE_STATISTICS.kind:
            return StatisticsJob(JavaStatistics(self._scala, table, opened.session), job, control, check).run()
        if job.kind == SET_PROPERTIES:
            return IcebergPropertiesJob(table, job, control, check).run()
        if job.kind in (EXPIRE, CLUSTER):
            run = self._expire if job.kind == EXPIRE else self._cluster
            return run(opened, job, control, check)
        store = JavaVacuumTable(self._scala, table, check, self._boundary)
        return IcebergVacuum(store, job, control, self._settings.vacuum).run()

    def _expire(
        self, opened: _OpenedTable, job: TableJob, control: TableJobControl, check: Callable[[TableHead], None]
    ) -> TableJobOutcome:
        def writer(head: TableHead) -> StagedWriter:
            self._check_plain(head, job.location)
            rule = CopyRule(False, 0, self._settings.copy_limits)  # noqa: FBT003 - rows that stay are encoded
            return self._writer(opened, head, rule, proofread_of(job.policy), job.origin.job)[0]

        reserved = self._settings.rewrite.reserved_disk_bytes
        aged = IcebergAgedTable(*(opened.table, opened.session, self._boundary, job, control), check, writer, reserved)
        return ExpiryJob(aged, job, control).run()

    def _cluster(
        self, opened: _OpenedTable, job: TableJob, control: TableJobControl, check: Callable[[TableHead], None]
    ) -> TableJobOutcome:
        check_place = self._checked_place(check, job.location)

        def open_for(head: TableHead) -> tuple[StagedWriter, CellTarget]:
            rule = CopyRule(job.policy.row_group_copy is RowGroupCopy.AUTO, limits=self._settings.copy_limits)
            writer, reader = self._writer(opened, head, rule, job.policy.proofread, job.origin.job)
            same = _HeadCheck(check_place, job.location, head.protocol.min_writer)
            mark, compared = job.mark().encode(), Comparisons(reader.check_places)
            return writer, CellTarget(opened.table, same, head, mark, compared)

        reserved, manifests = self._settings.rewrite.reserved_disk_bytes, JavaCells(self._scala, opened.table)
        given = job, control, self._boundary
        cells = IcebergCells(opened.table, manifests, *given, check_place, open_for, reserved)
        return CellJob(cells, job, control).run()

    def _checked_place(self, check: Callable[[TableHead], None], location: str) -> Callable[[TableHead], None]:
        """Return a check that raises for odd files of the table, too."""

        def check_place(head: TableHead) -> None:
            check(head)
            self._check_plain(head, location)

        return check_place

    def _merge_deletes(
        self, opened: _OpenedTable, job: TableJob, control: TableJobControl, check: Callable[[TableHead], None]
    ) -> TableJobOutcome:
        table, check_place = opened.table, self._checked_place(check, job.location)
        prove = partial(self.proofreader.check_deletes, mode=proofread_of(job.policy), tag=job.origin.job)
        deletes = JavaDeletes(self._scala, table)
        source = IcebergTasks(self._scala, opened.session, table)
        converts = job.kind == CONVERT_DELETES.kind
        conversion = Conversion(deletes, table.columns, source, prove) if converts else None
        return MergeDeletesJob(
            table, deletes, job, control, check_place, self._boundary, prove, conversion=conversion
        ).run()

    def find_commit(self, location: str, *, job: str, token: int, since_version: int) -> int | None:
        """Return the version above `since_version` that this job and token committed, None if there is none."""
        wanted = CommitOrigin(job, token)
        with self._opened(location) as opened:
            head = opened.table.head()
            at = main_versions(head)
            for snapshot in head.chain():
                ours = commit_metadata.decode(snapshot.summary.get(COMMIT_KEY))
                if at[snapshot.id] > since_version and ours is not None and wanted in ours.origins:
                    return at[snapshot.id]
        return None

    @contextmanager
    def _opened(self, location: str, *tags: str) -> Iterator[_OpenedTable]:
        """Open a table for what is canceled by these tags; without any, no Spark job is to run for it."""
        self._settings.boundary.check_table(location)
        with FAILURES.translated(f"{location}"), ExitStack() as stack:
            session = self._spark
            bound: Callable[[], AbstractContextManager[object]] = nullcontext
            if tags:
                stack.callback(self._tables.forget_scans, location)
                lease = self._sessions.lease(tag=tags[0], more_tags=tags[1:], conf=SESSION_CONF)
                owned = stack.enter_context(lease)
                session, bound = stack.enter_context(self._sessions.bound(owned)), partial(self._sessions.bound, owned)
            table = self._tables.load(location)
            try:
                yield _OpenedTable(table, session, bound)
            except Exception as error:
                if is_token_refused(error):
                    raise RetryableError(f"{location}: the catalog no longer accepts the token of this run") from error
                raise


class _IcebergFiles:
    """`actor.rewrite.ports.LiveGroups` for one snapshot."""

    def __init__(self, table: JavaTable, head: TableHead) -> None:
        self.folder = head.location
        self._table = table
        self._snapshot = head.current

    def resolve(self, groups: Sequence[FileGroup]) -> tuple[InputGroup, ...]:
        """Return the groups that are live in the snapshot; none in a table that has no snapshot."""
        return () if self._snapshot is None else resolve(groups, self._table.live(self._snapshot, groups))

    def is_live(self, live: InputGroup) -> bool:
        """Return whether a group is live in the newest snapshot."""
        head = self._table.refresh()
        return head.current is not None and still_live(live, self._table.live(head.current, [live.group]))


@dataclass(frozen=True, slots=True)
class _HeadCheck:
    """Checks, before each attempt, that the table is still the same one; `same` raises for any other.

    Outputs that were written under version 2 hold no ids of rows; inputs have got theirs with the first commit under
    version 3, and would lose them.
    """

    same: Callable[[TableHead], None]
    location: str
    format_version: int

    def check(self, head: TableHead) -> None:
        """Raise Unsupported or OtherTable, and Conflict if the format version is not the one that was read."""
        self.same(head)
        found = head.protocol.min_writer
        if found != self.format_version:
            raise Conflict(
                f"{self.location} had format version {self.format_version} when it was read, and has {found} "
                "now; plan it again",
                kind="FormatVersion",
            )


def _check(head: TableHead, location: str, table_uuid: str) -> None:
    check_identity(location, head.metadata, table_uuid)
    found = refusal(head.metadata, head.protocol)
    if found is not None:
        raise Unsupported(f"{location}: {found.message}", field=found.subject)
