"""Has Delta cluster the files of a table with `CLUSTER BY`: its own OPTIMIZE, and nothing of ours, writes them.

Before the statement, the decider's rule is asked again on the live files, so a job that waited does not rewrite the
table for a few new files. What OPTIMIZE wrote is compared with what it replaces before it is committed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_adds, read_paths
from actor.formats.delta.clustered_table import clustering_columns, clustering_not_wanted
from actor.formats.delta.commit import DeltaTarget
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.footers import Footers
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.staged_clustering import MAX_FILE_SIZE, StagedClustering
from actor.jvm.sessions import Sessions
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.proofread.proofreader import Proofreader
from actor.rewrite.checks import require_free_space, require_single_entries
from actor.rewrite.commit import Committer
from actor.rewrite.job_permission import JobPermission
from shared.errors import Conflict
from shared.formats.delta import FORMAT
from shared.jobs.options import ClusterOptions
from shared.layout.clustered_files import ClusteredFiles, ClusterReason
from shared.layout.partition_stats import CUBE_TAG
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.paths.locations import hadoop_path
from shared.paths.sql_text import table_name


@dataclass(slots=True)
class StatementJob:
    """One run of the statement on one table; `reserved_disk_bytes` stay free on a local disk."""

    scala: DeltaScala
    sessions: Sessions
    boundary: Boundary
    proofreader: Proofreader
    job: TableJob
    control: TableJobControl
    reserved_disk_bytes: int

    def run(self) -> TableJobOutcome:
        """Cluster the table if that is due, or was requested; raises Unsupported for a table without `CLUSTER BY`."""
        origin, target_bytes = self.job.origin, self.job.policy.target_bytes
        conf = {MAX_FILE_SIZE: str(target_bytes)}
        lease = self.sessions.lease(tag=origin.job, user_metadata=self.job.mark().encode(), conf=conf)
        with lease as owned, self.sessions.bound(owned) as session:
            log = TableLog(self.scala, session, self.job.location)
            snapshot = log.snapshot()
            version, shape = int(snapshot.version()), log.shape(snapshot)
            reason = clustering_not_wanted(self.job, shape)
            if reason:
                return TableJobOutcome(version, shape.metadata, reason=reason)
            clustering_columns(self.scala, snapshot, self.job.location)
            live = self._live(log, snapshot)
            files = ClusteredFiles.of((one.file.size_bytes, CUBE_TAG in one.file.tags) for one in live)
            need = files.need(self.job.policy)
            if not need.is_due and (need is ClusterReason.NOTHING or not self._is_forced):
                return TableJobOutcome(version, shape.metadata, reason=f"clustering is not due: {need}")
            require_free_space(log.location, files.rewritten_bytes, reserved_bytes=self.reserved_disk_bytes)
            self.control.reached("clustering")
            self.control.may_change()
            return self._cluster(log, snapshot, shape, live)

    def _cluster(self, log: TableLog, snapshot: Any, shape: TableShape, live: Sequence[LoggedFile]) -> TableJobOutcome:
        """Write, compare and commit; raises Conflict where others took the files."""
        version, origin = int(snapshot.version()), self.job.origin
        target = DeltaTarget(self.scala, log, shape, origin)
        committer = Committer(target, JobPermission(self.control))
        footers = FooterReader(self.scala, log)
        proofs = Proofs(self.proofreader, log, shape, self.job.policy.proofread, origin.job, footers)
        output = OutputFormat(Footers(self.scala, log, footers), shape, log.location)
        staged = StagedClustering(self.scala, output, proofs)
        written = staged.write(f"OPTIMIZE {table_name(hadoop_path(log.location), FORMAT)}", snapshot, live)
        if written is None:
            return TableJobOutcome(version, shape.metadata, reason="OPTIMIZE found nothing to cluster")
        target.operation = staged.operation
        landed = committer.commit([written])
        if landed.version is None:
            raise Conflict(
                f"others replaced files of {log.location} while they were clustered; nothing was committed, and it is "
                "tried again later",
                kind="Stale",
            )
        self.control.reached("committed")
        return TableJobOutcome(version, shape.metadata, (landed.version,), written.figures)

    @property
    def _is_forced(self) -> bool:
        return ClusterOptions.decode(self.job.options).force

    def _live(self, log: TableLog, snapshot: Any) -> Sequence[LoggedFile]:
        """Return the live files.

        Raises Unsupported if one of them lies where it must not be read, RefusedFiles for one that is live twice.
        """
        live = tuple(decode_adds(log.files(snapshot), ()))
        files = tuple(logged.file for logged in live)
        self.boundary.check_files(self.job.location, files)
        self.boundary.check_links(self.job.location, read_paths(live))
        group = LiveGroup(FileGroup(WHOLE_TABLE, files, RewriteMode.FULL), live, int(snapshot.version()), None)
        require_single_entries(self.job.location, group, [group])
        return live
