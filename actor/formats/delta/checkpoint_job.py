"""Writes a table's checkpoint where its writers do not, and cleans up its log; Delta's own code does both.

Log cleanup is Delta's, to the hour: it deletes commits older than the log's retention that a checkpoint covers, and
none where `delta.enableExpiredLogCleanup` is false.
"""

from typing import Any

from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableLog
from actor.formats.delta.preflight import check_table
from actor.not_wanted import SWITCHED_OFF
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.rewrite.checks import check_identity
from shared.formats.delta_vacuum_plan import log_retention_ms
from shared.policy.properties import is_switched_off


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
