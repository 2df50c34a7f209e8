"""The report of a run: what a job did, measured, in the form that `finish` sends."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actor.ports import GroupOutcome, GroupStatus, RewriteOutcome
from shared.job_payload import CALIBRATED_KINDS, COMPACT, JobPayload, RunMeasure
from shared.layout.partition_stats import PartitionStats
from shared.layout.planner import RewriteMode


@dataclass(slots=True)
class RunReport:
    """Filled while a job runs; sizes in bytes, times in milliseconds.

    Not `is_predicted`: the job does more than its newest request requested, which is all that was predicted.
    `traceparent`: context of the run's span, empty without traces.
    """

    payload: JobPayload
    kind: str = COMPACT
    is_predicted: bool = True
    traceparent: str = ""
    versions: list[int] = field(default_factory=list)
    recovered_version: int | None = None
    rounds: int = 0
    seen_version: int = -1
    policy_changed: bool = False
    conflicts: int = 0
    groups_committed: int = 0
    groups_conflicted: int = 0
    groups_promoted: int = 0
    groups_not_promoted: int = 0
    levels_not_reached: int = 0
    groups_failed: int = 0
    groups_copied: int = 0
    bytes_copied: int = 0
    groups_encoded_by_column: int = 0
    encoded_because: Counter[str] = field(default_factory=Counter)
    merged_bytes: int = 0
    merged_into_bytes: int = 0
    filled_bytes: int = 0
    filled_into_bytes: int = 0
    files_replaced: int = 0
    files_written: int = 0
    bytes_replaced: int = 0
    bytes_written: int = 0
    rows: int = 0
    prepare_ms: int = 0
    commit_ms: int = 0
    before: PartitionStats | None = None
    after: PartitionStats | None = None

    def record_snapshot(self, version: int, state: PartitionStats) -> None:
        """Note a snapshot that was planned on."""
        self.seen_version = version
        self.before = self.before or state
        self.after = state

    def record_rewrite(self, outcome: RewriteOutcome) -> None:
        """Add what a rewrite did."""
        self.conflicts += outcome.conflicts
        self.prepare_ms += outcome.prepare_ms
        self.commit_ms += outcome.commit_ms
        if outcome.version is not None:
            self.versions.append(outcome.version)
        for group in outcome.groups:
            if group.status is GroupStatus.CONFLICTED:
                self.groups_conflicted += 1
            if group.status is GroupStatus.FAILED:
                self.groups_failed += 1
            if group.status is not GroupStatus.COMMITTED:
                continue
            self.groups_committed += 1
            self.files_replaced += len(group.group.files)
            self.bytes_replaced += group.group.bytes
            self.files_written += len(group.outputs)
            self.bytes_written += sum(file.size_bytes for file in group.outputs)
            self.rows += group.rows or 0
            if group.is_copied:
                self.groups_copied += 1
                self.bytes_copied += group.group.bytes
            elif group.encoded_because:
                self.encoded_because[group.encoded_because] += 1
                self.groups_encoded_by_column += group.by_column
            self._compare(group)

    def _compare(self, outcome: GroupOutcome) -> None:
        """Compare a group's outputs with what was predicted: how much they shrank, and whether they were promoted."""
        group, size_levels = outcome.group, self.payload.policy.size_levels
        if outcome.outputs and all(file.dv_id is None for file in group.files):
            self._add_shrinking(group.bytes, sum(file.size_bytes for file in outcome.outputs))
        if group.mode in (RewriteMode.MINOR, RewriteMode.MAJOR) and outcome.outputs:
            largest_bytes = max(file.size_bytes for file in group.files)
            short = size_levels.levels_below_target(
                largest_bytes=largest_bytes, output_bytes=min(file.size_bytes for file in outcome.outputs)
            )
            self.levels_not_reached += short
            self.groups_not_promoted += short > 0
            self.groups_promoted += short == 0

    def _add_shrinking(self, read_bytes: int, written_bytes: int) -> None:
        """Add the size of a group and of its outputs to the sums of full files, or to those of smaller ones.

        They shrink by different factors: row groups are mostly copied until a file is full, and then merged.
        """
        if read_bytes >= self.payload.policy.size_levels.full_bytes:
            self.filled_bytes += read_bytes
            self.filled_into_bytes += written_bytes
        else:
            self.merged_bytes += read_bytes
            self.merged_into_bytes += written_bytes

    @property
    def satisfied_version(self) -> int:
        """The newest version whose requests this run has satisfied: none if the table's properties have changed since.

        The request that follows from the change was made under a policy that this run did not plan with.
        """
        return -1 if self.policy_changed else self.seen_version

    @property
    def cost_bytes(self) -> int:
        """Bytes that the run is charged with: those that it replaced."""
        return self.bytes_replaced

    @property
    def found_nothing(self) -> bool:
        """Whether the run found no work; finding an earlier run's commit counts as work."""
        return not self.groups_committed and not self.groups_conflicted and self.recovered_version is None

    def counters(self) -> dict[str, int]:
        """Counters that this run adds to the funnel."""
        counts = {
            "jobs_run": 1,
            "plans_empty": int(self.found_nothing),
            "commits_recovered": int(self.recovered_version is not None),
            "rewrites": len(self.versions),
            "files_replaced": self.files_replaced,
            "files_written": self.files_written,
            "bytes_replaced": self.bytes_replaced,
            "bytes_written": self.bytes_written,
            "conflicts": self.conflicts,
            "groups_committed": self.groups_committed,
            "groups_conflicted": self.groups_conflicted,
            "groups_failed": self.groups_failed,
            "groups_copied": self.groups_copied,
            "bytes_copied": self.bytes_copied,
            **self._encoded(),
            "groups_promoted": self.groups_promoted,
            "groups_not_promoted": self.groups_not_promoted,
            "levels_not_reached": self.levels_not_reached,
        }
        return {name: count for name, count in counts.items() if count}

    def _encoded(self) -> dict[str, int]:
        """Return how many groups had to be encoded, column by column and by reason."""
        reasons = {f"encoded_{reason}": count for reason, count in sorted(self.encoded_because.items())}
        return {"groups_encoded_by_column": self.groups_encoded_by_column, **reasons}

    def measures(self) -> dict[str, int]:
        """Measures for the decider: none, unless the kind is calibrated and the run rewrote what was predicted."""
        if self.kind not in CALIBRATED_KINDS or not self.groups_committed or not self.is_predicted:
            return {}
        predicted = self.payload.predicted
        return {
            RunMeasure.RUNS: 1,
            RunMeasure.PREDICTED_BYTES: predicted.uncalibrated_bytes,
            RunMeasure.MEASURED_BYTES: self.bytes_replaced,
            RunMeasure.PREDICTED_REMOVED: predicted.uncalibrated_files_removed,
            RunMeasure.MEASURED_REMOVED: max(0, self.files_replaced - self.files_written),
            RunMeasure.MERGED_BYTES: self.merged_bytes,
            RunMeasure.MERGED_INTO_BYTES: self.merged_into_bytes,
            RunMeasure.FILLED_BYTES: self.filled_bytes,
            RunMeasure.FILLED_INTO_BYTES: self.filled_into_bytes,
        }

    def encode(self) -> str:
        """Write the report as JSON text."""
        report: dict[str, Any] = {
            "table": self.payload.name,
            "reason": self.payload.reason,
            "versions": self.versions,
            "recovered_version": self.recovered_version,
            "rounds": self.rounds,
            "seen_version": self.seen_version,
            "predicted": {
                "files_replaced": self.payload.predicted.files_replaced,
                "files_removed": self.payload.predicted.files_removed,
                "bytes": self.payload.predicted.bytes,
            },
            "measured": {
                "files_replaced": self.files_replaced,
                "files_removed": self.files_replaced - self.files_written,
                "bytes": self.bytes_replaced,
                "bytes_written": self.bytes_written,
                "rows": self.rows,
                "prepare_ms": self.prepare_ms,
                "commit_ms": self.commit_ms,
                "groups_not_promoted": self.groups_not_promoted,
                "groups_copied": self.groups_copied,
                "bytes_copied": self.bytes_copied,
                **self._encoded(),
            },
            "conflicts": self.conflicts,
            "groups_conflicted": self.groups_conflicted,
            "groups_failed": self.groups_failed,
            "before": _state(self.before),
            "after": _state(self.after),
            **({"traceparent": self.traceparent} if self.traceparent else {}),
        }
        return json.dumps(report, separators=(",", ":"))


def _state(state: PartitionStats | None) -> Mapping[str, int] | None:
    if state is None:
        return None
    return {"files": state.files, "bytes": state.bytes, "small_files": state.small_files, "shortfall": state.shortfall}
