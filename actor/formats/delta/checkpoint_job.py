"""Writes a table's checkpoint where its writers do not, and cleans up its log; Delta's own code does both.

Log cleanup is Delta's: it deletes commits older than `delta.logRetentionDuration` that a checkpoint covers, and none
where `delta.enableExpiredLogCleanup` is false. Where the table's files are kept longer than that, no commit is deleted.
"""

from typing import Any

from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableLog
from actor.formats.delta.preflight import check_table
from actor.not_wanted import SWITCHED_OFF
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.rewrite.checks import check_identity
from shared.errors import InvalidInput
from shared.formats.delta_vacuum_plan import retention_ms
from shared.jobs.options import VacuumOptions
from shared.policy.parsers import interval
from shared.policy.properties import is_switched_off
from shared.table import TableMetadata

LOG_RETENTION = "delta.logRetentionDuration"
"""Delta's property: how long commits are kept that a checkpoint covers."""

DEFAULT_LOG_RETENTION_S = 30 * 86_400
"""Delta's default of it."""


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
        if self._keeps_longer(shape.metadata):
            return TableJobOutcome(version, shape.metadata, figures=figures, reason="the retention exceeds the log's")
        self._control.reached("cleaning")
        before = self._log_files()
        self._control.may_change()
        self._log.delta_log.doLogCleanup(self._log.snapshot(), self._scala.none)
        figures["log_files_deleted"] = max(0, before - self._log_files())
        return TableJobOutcome(version, shape.metadata, figures=figures)

    def _keeps_longer(self, metadata: TableMetadata) -> bool:
        """Return whether files are kept longer than Delta keeps commits: without its commit no version can be read."""
        spelled = metadata.configuration.get(LOG_RETENTION)
        try:
            kept_s = DEFAULT_LOG_RETENTION_S if spelled is None else interval(spelled)
            # By the newest properties, as a vacuum computes it.
            return retention_ms(self._job.policy, metadata, VacuumOptions()) > kept_s * 1000
        except (ValueError, InvalidInput):
            return True

    def _checkpoint_version(self, snapshot: Any) -> int:
        return int(snapshot.checkpointProvider().version())

    def _log_files(self) -> int:
        return len(list(self._log.store.listStatus(self._log.log_folder)))
