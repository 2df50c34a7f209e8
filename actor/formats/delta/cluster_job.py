"""Has Delta cluster the files of a table with `CLUSTER BY`: its own OPTIMIZE, and nothing of ours, writes them.

Before the statement, the decider's rule is asked again on the live files, so a job that waited does not rewrite the
table for a few new files. OPTIMIZE commits by itself and checks for conflicts as it always does, so its rows can be
compared only after the commit: where they differ, the error names the version to restore.
"""

import time
from dataclasses import dataclass
from typing import Any

from actor.formats.delta.actions import decode_adds
from actor.formats.delta.free_space import require_free_space
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.optimize_statement import MAX_FILE_SIZE, OptimizeStatement
from actor.formats.delta.preflight import check_identity, check_table
from actor.jvm.scala import Scala
from actor.jvm.sessions import Sessions
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from shared.boundary import Boundary
from shared.cluster_options import ClusterOptions
from shared.commit_metadata import CommitMetadata
from shared.errors import Unsupported
from shared.formats.delta import CLUSTERING, FORMAT
from shared.layout.clustered_files import ClusteredFiles, ClusterReason
from shared.layout.partition_stats import CUBE_TAG
from shared.locations import hadoop_path
from shared.sql_text import table_name


@dataclass(slots=True)
class ClusterJob:
    """One run on one table; `reserved_disk_bytes` stay free on a local disk."""

    scala: Scala
    sessions: Sessions
    boundary: Boundary
    job: TableJob
    control: TableJobControl
    reserved_disk_bytes: int

    def run(self) -> TableJobOutcome:
        """Cluster the table if that is due, or was requested; raises Unsupported for a table without `CLUSTER BY`."""
        origin, target_bytes = self.job.origin, self.job.policy.target_bytes
        mark = CommitMetadata(
            origin, mode=self.job.kind, started_ms=int(time.time() * 1000), traceparent=self.job.trace or None
        )
        conf = {MAX_FILE_SIZE: str(target_bytes)}
        lease = self.sessions.lease(tag=origin.job, user_metadata=mark.encode(), conf=conf)
        with lease as owned, self.sessions.bound(owned) as session:
            log = TableLog(self.scala, session, self.job.location)
            snapshot = log.snapshot()
            version, shape = int(snapshot.version()), log.shape(snapshot)
            reason = self._not_wanted(shape)
            if reason:
                return TableJobOutcome(version, shape.metadata, reason=reason)
            self._require_columns(log)
            files = self._files(log, snapshot)
            need = files.need(self.job.policy)
            if not need.is_due and (need is ClusterReason.NOTHING or not self._is_forced):
                return TableJobOutcome(version, shape.metadata, reason=f"clustering is not due: {need}")
            require_free_space(log, files.rewritten_bytes, reserved_bytes=self.reserved_disk_bytes)
            self.control.reached("clustering")
            self.control.may_change()
            optimize = OptimizeStatement(self.scala, log)
            committed = optimize.run(f"OPTIMIZE {table_name(hadoop_path(log.location), FORMAT)}", origin, version)
            if committed is None:
                return TableJobOutcome(version, shape.metadata, reason="OPTIMIZE found nothing to cluster")
            self.control.reached("comparing")
            optimize.check_rows(snapshot, (), committed)
            figures = _figures(log, committed)
        return TableJobOutcome(version, shape.metadata, (committed,), figures)

    @property
    def _is_forced(self) -> bool:
        return ClusterOptions.decode(self.job.options).force

    def _not_wanted(self, shape: TableShape) -> str:
        """Return why the job has nothing to do; raises OtherTable or Unsupported for a table not to be touched."""
        check_identity(self.job.location, shape.metadata, self.job.table_uuid)
        check_table(self.job.location, shape.metadata, shape.protocol, self.job.kind)
        features = shape.protocol.reader_features | shape.protocol.writer_features
        if CLUSTERING not in features:
            raise Unsupported(
                f"{self.job.location} has no CLUSTER BY: OPTIMIZE would compact it by its own rules", field=CLUSTERING
            )
        return reason_not_wanted(self.job, shape.metadata)

    def _require_columns(self, log: TableLog) -> None:
        """Raise Unsupported after `CLUSTER BY NONE`, where OPTIMIZE compacts by its own rules."""
        detail = (
            log.session.sql(f"DESCRIBE DETAIL {table_name(hadoop_path(log.location), FORMAT)}")
            .select("clusteringColumns")
            .collect()
        )
        if not detail[0][0]:
            raise Unsupported(
                f"{self.job.location} no longer has clustering columns (CLUSTER BY NONE): unset lakewright.cluster, "
                f"or drop the feature {CLUSTERING!r}, and the table is compacted as others are",
                field=CLUSTERING,
            )

    def _files(self, log: TableLog, snapshot: Any) -> ClusteredFiles:
        """Count the live files; raises Unsupported if one of them lies where it must not be read."""
        files = [logged.file for logged in decode_adds(log.files(snapshot), ())]
        self.boundary.check_files(self.job.location, files)
        self.boundary.check_links(self.job.location, (file.path for file in files))
        return ClusteredFiles.of((file.size_bytes, CUBE_TAG in file.tags) for file in files)


def _figures(log: TableLog, version: int) -> dict[str, int]:
    """Return what the commit replaced and wrote."""
    actions = log.actions(version)
    removed = [action["remove"] for action in actions if "remove" in action]
    added = [action["add"] for action in actions if "add" in action]
    return {
        "files_replaced": len(removed),
        "bytes_replaced": sum(remove.get("size") or 0 for remove in removed),
        "files_written": len(added),
        "bytes_written": sum(add["size"] for add in added),
    }
