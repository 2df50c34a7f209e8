"""Jobs on a Delta table as a whole, by kind: each runs in a session whose commits name the job.

Writes a table's checkpoint where its writers do not, and cleans up its log; Delta's own code does both.

Log cleanup is Delta's, to the hour: it deletes commits older than the log's retention that a checkpoint covers, and
none where `delta.enableExpiredLogCleanup` is false.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from actor.cells.job import CellJob
from actor.formats.delta.actions import decode_metadata, decode_protocol
from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.cell_table import DeltaCells
from actor.formats.delta.cluster_job import StatementJob
from actor.formats.delta.deduplicate import Deduplication
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.expire import DeltaAgedTable
from actor.formats.delta.job_table import JobTable
from actor.formats.delta.log import TableLog
from actor.formats.delta.preflight import check_table
from actor.formats.delta.properties_job import PropertiesJob
from actor.formats.delta.table_files import DeltaTableFiles
from actor.formats.delta.table_store import TableStore
from actor.formats.delta.vacuum import Vacuum
from actor.formats.qbeast.delta_index import DeltaIndex
from actor.formats.qbeast.index_job import IndexJob
from actor.jvm.sessions import Sessions
from actor.not_wanted import SWITCHED_OFF
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.proofread.proofreader import Proofreader
from actor.rewrite.checks import check_identity
from actor.row_expiry import ExpiryJob
from actor.vacuum.steps import VacuumLimits
from shared.errors import RetryableError
from shared.formats.delta_vacuum_plan import log_retention_ms
from shared.formats.retention import reclaims
from shared.jobs.payload import CHECKPOINT, CLUSTER, DEDUPLICATE, EXPIRE, INDEX, SET_PROPERTIES, VACUUM
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.boundary import Boundary
from shared.policy.policy import ClusterMode
from shared.policy.properties import is_switched_off
from shared.table import TableMetadata

TABLE_KINDS = (VACUUM, CHECKPOINT, DEDUPLICATE, EXPIRE, CLUSTER, INDEX, SET_PROPERTIES)
"""Kinds of jobs on whole tables that this engine runs."""


@dataclass(frozen=True, slots=True)
class TableJobLimits:
    """Limits of jobs on whole tables.

    vacuum: rates and batches. reserved_disk_bytes: space that jobs which write files leave free on a table's own disk.
    """

    vacuum: VacuumLimits
    reserved_disk_bytes: int


_EACH_AFTER_A_COMMIT = frozenset({CLUSTER, INDEX})
"""Kinds of which a job runs after each few commits: it learns of them alone. Others read the log itself."""


class TableJobs:
    """Runs jobs on whole tables; safe to call from several threads."""

    def __init__(
        self,
        scala: DeltaScala,
        sessions: Sessions,
        boundary: Boundary,
        limits: TableJobLimits,
        proofreader: Proofreader,
        caches: DeltaCaches,
    ) -> None:
        self._scala = scala
        self._caches = caches
        self._sessions = sessions
        self._boundary = boundary
        self._proofreader = proofreader
        self._limits = limits

    def run(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """Run a job; raises RetryableError for a kind that only another release knows."""
        reserved = self._limits.reserved_disk_bytes
        given = self._scala, self._sessions, self._boundary, self._proofreader
        if job.kind == DEDUPLICATE:
            return Deduplication(*given, job, control, reserved).run()
        if job.kind == EXPIRE:
            return ExpiryJob(DeltaAgedTable(*given, job, control, reserved), job, control).run()
        if job.kind == CLUSTER and job.policy.cluster is not ClusterMode.CELLS:
            return StatementJob(*given, job, control, reserved).run()
        if job.kind == SET_PROPERTIES:
            return PropertiesJob(self._scala, self._sessions, job, control).run()
        lease = self._sessions.lease(tag=job.origin.job)
        with lease as owned, self._sessions.bound(owned) as session:
            cached = self._caches.snapshots if job.kind in _EACH_AFTER_A_COMMIT else None
            log = TableLog(self._scala, session, job.location, cached)
            return self._run_on(log, job, control)

    def _run_on(self, log: TableLog, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        if job.kind == VACUUM:
            return self._vacuum(log, job, control)
        if job.kind == CHECKPOINT:
            return CheckpointJob(self._scala, log, job, control).run()
        reserved = self._limits.reserved_disk_bytes
        table = JobTable(self._scala, log, self._proofreader, self._boundary, job, control, reserved, self._caches)
        if job.kind == CLUSTER:
            return CellJob(DeltaCells(table), job, control).run()
        if job.kind == INDEX:
            return IndexJob(DeltaIndex(table), self._boundary, job, control).run()
        raise RetryableError(f"this release runs no jobs of the kind {job.kind!r}; upgrade the actors")

    def _vacuum(self, log: TableLog, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        def end(mark: CommitMetadata, figures: Mapping[str, int]) -> int:
            metrics = {"numDeletedFiles": figures["files_deleted"], "numVacuumedDirectories": 0}
            lease = self._sessions.lease(tag=job.origin.job, user_metadata=mark.encode())
            with lease as owned, self._sessions.bound(owned) as session:
                return TableLog(self._scala, session, job.location).commit_vacuum_end(metrics)

        store = CheckedStore(self._scala, log, self._boundary)
        table = DeltaTableFiles(log, store, lambda snapshot: checked_metadata(job, snapshot), end=end)
        done = Vacuum(table, job, control, self._limits.vacuum).run()
        if not done.commits or not reclaims(done.metadata.configuration):
            return done
        cleaned = CheckpointJob(self._scala, log, replace(job, kind=CHECKPOINT), control).run()
        return replace(done, figures={**done.figures, "log_files_deleted": cleaned.figures["log_files_deleted"]})


class CheckedStore(TableStore):
    """A store that deletes nothing behind a link, wherever that leads: what may be read there is not the table's."""

    def __init__(self, scala: DeltaScala, log: TableLog, boundary: Boundary) -> None:
        super().__init__(scala, log)
        self._boundary = boundary
        self._location = log.location

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; raises Unsupported, and deletes none, if one lies behind a link."""
        self._boundary.check_not_linked(self._location, names)
        super().delete(names)


def checked_metadata(job: TableJob, snapshot: Any) -> TableMetadata:
    """Return the metadata of a snapshot; raises OtherTable or Unsupported for a table that must not be touched."""
    metadata, protocol = decode_metadata(snapshot.metadata().json()), decode_protocol(snapshot.protocol().json())
    check_identity(job.location, metadata, job.table_uuid)
    check_table(job.location, metadata, protocol, job.kind)
    return metadata


class CheckpointJob:
    """One run on one table."""

    def __init__(self, scala: DeltaScala, log: TableLog, job: TableJob, control: TableJobControl) -> None:
        self._scala = scala
        self._log = log
        self._job = job
        self._control = control

    def run(self) -> TableJobOutcome:
        """Write a checkpoint of the newest version unless it has one, then clean up the log."""
        snapshot = self._log.snapshot()
        shape, version = self._log.shape(snapshot), int(snapshot.version())
        check_identity(self._job.location, shape.metadata, self._job.table_uuid)
        check_table(self._job.location, shape.metadata, shape.protocol, self._job.kind)
        if is_switched_off(shape.metadata.configuration) and not self._job.even_if_disabled:
            return TableJobOutcome(version, shape.metadata, reason=SWITCHED_OFF)
        figures = {"written": 0, "log_files_deleted": 0}
        if self._checkpoint_version(snapshot) < version:
            self._control.reached("writing")
            self._control.may_change()
            self._log.checkpoint(snapshot)
            figures["written"] = 1
        newest = self._log.snapshot()
        kept_ms = log_retention_ms(self._job.policy, self._log.shape(newest).metadata)
        if kept_ms is None:
            return TableJobOutcome(version, shape.metadata, figures=figures, reason="the retention exceeds the log's")
        self._control.reached("cleaning")
        before = self._log_files()
        self._control.may_change()
        self._scala.checkpoint_file.cleanLog(self._log.delta_log, newest, kept_ms)
        figures["log_files_deleted"] = max(0, before - self._log_files())
        return TableJobOutcome(version, shape.metadata, figures=figures)

    def _checkpoint_version(self, snapshot: Any) -> int:
        return int(snapshot.checkpointProvider().version())

    def _log_files(self) -> int:
        return len(list(self._log.store.listStatus(self._log.log_folder)))
