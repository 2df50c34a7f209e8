"""The report of a run: what a job did, measured, in the form that `finish` sends."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actor.ports import GroupOutcome, GroupStatus, RewriteOutcome
from actor.proofread.model import PROOF_COUNTERS, Proof
from shared.jobs.payload import CALIBRATED_KINDS, COMPACT, JobPayload, RunMeasure
from shared.layout.partition_stats import PartitionStats
from shared.layout.planner import RewriteMode
from shared.partition_refusals import FileRefusal
from shared.prices import Usage
from shared.run_counters import RunCounter

MOST_REASONS = 5
"""Different reasons for unverified groups that a report keeps: they are sentences, and one run rarely has two."""

REFUSALS_SHOWN = 10
"""Refusals that the report of a run names; all are remembered with the partition."""

_COUNTERS = {
    GroupStatus.COMMITTED: RunCounter.GROUPS_COMMITTED,
    GroupStatus.CONFLICTED: RunCounter.GROUPS_CONFLICTED,
    GroupStatus.FAILED: RunCounter.GROUPS_FAILED,
    GroupStatus.REFUSED: RunCounter.GROUPS_REFUSED,
}
_SHRINKING = (
    *(RunMeasure.MERGED_BYTES, RunMeasure.MERGED_INTO_BYTES),
    *(RunMeasure.FILLED_BYTES, RunMeasure.FILLED_INTO_BYTES),
)
_ENCODED = "encoded_"
"""Begins the counters of groups that had to be encoded; the reason follows."""
_CONFLICTED = "conflicted_"
"""Begins the counters of groups that could not land beside what others did."""


@dataclass(slots=True)
class RunReport:
    """Filled while a job runs; sizes in bytes, times in milliseconds.

    Not `is_predicted`: the job does more than its newest request requested, which is all that was predicted.
    `traceparent`: context of the run's span, empty without traces. counts: by `RunCounter`, `encoded_REASON` and
    `conflicted_REASON`; shrinking: sizes of inputs and outputs, by `RunMeasure`.
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
    refusals: tuple[FileRefusal, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)
    shrinking: Counter[str] = field(default_factory=Counter)
    unverified_because: Counter[str] = field(default_factory=Counter)
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
        self.counts[RunCounter.CONFLICTS] += outcome.conflicts
        self.prepare_ms += outcome.prepare_ms
        self.commit_ms += outcome.commit_ms
        if outcome.version is not None:
            self.versions.append(outcome.version)
        for group in outcome.groups:
            if group.status in _COUNTERS:
                self.counts[_COUNTERS[group.status]] += 1
            if group.status is GroupStatus.COMMITTED:
                self._add_committed(group)
            elif group.conflicted_because:
                self.counts[f"{_CONFLICTED}{group.conflicted_because}"] += 1

    def _add_committed(self, group: GroupOutcome) -> None:
        self.counts[RunCounter.FILES_REPLACED] += len(group.group.files)
        self.counts[RunCounter.BYTES_REPLACED] += group.group.bytes
        self.counts[RunCounter.FILES_WRITTEN] += len(group.outputs)
        self.counts[RunCounter.BYTES_WRITTEN] += sum(file.size_bytes for file in group.outputs)
        self.rows += group.rows or 0
        self.counts[RunCounter.LATE_ROWS_HIDDEN] += group.late_rows
        if group.is_copied:
            self.counts[RunCounter.GROUPS_COPIED] += 1
            self.counts[RunCounter.BYTES_COPIED] += group.group.bytes
        elif group.encoded_because:
            self.counts[f"{_ENCODED}{group.encoded_because}"] += 1
            self.counts[RunCounter.GROUPS_ENCODED_BY_COLUMN] += group.by_column
        if group.proof is not None:
            self._add_proof(group.proof)
        self._compare(group)

    def _add_proof(self, proof: Proof) -> None:
        self.counts.update(proof.figures)
        is_kept = proof.unverified_because in self.unverified_because or len(self.unverified_because) < MOST_REASONS
        if proof.unverified_because and is_kept:
            self.unverified_because[proof.unverified_because] += 1

    def record_refusals(self, refusals: tuple[FileRefusal, ...]) -> None:
        """Note what the run has refused so far."""
        self.refusals = refusals[:REFUSALS_SHOWN]

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
            self.counts[RunCounter.LEVELS_NOT_REACHED] += short
            self.counts[RunCounter.GROUPS_NOT_PROMOTED if short else RunCounter.GROUPS_PROMOTED] += 1

    def _add_shrinking(self, read_bytes: int, written_bytes: int) -> None:
        """Add the size of a group and of its outputs to the sums of full files, or of smaller ones.

        They shrink by different factors: row groups are mostly copied until a file is full, and then merged.
        """
        is_full = read_bytes >= self.payload.policy.size_levels.full_bytes
        self.shrinking[RunMeasure.FILLED_BYTES if is_full else RunMeasure.MERGED_BYTES] += read_bytes
        self.shrinking[RunMeasure.FILLED_INTO_BYTES if is_full else RunMeasure.MERGED_INTO_BYTES] += written_bytes

    @property
    def satisfied_version(self) -> int:
        """The newest version whose requests this run has satisfied: none if the table's properties have changed since.

        The request that follows from the change was made under a policy that this run did not plan with.
        """
        return -1 if self.policy_changed else self.seen_version

    @property
    def cost_bytes(self) -> int:
        """Bytes that the run is charged with: those that it replaced."""
        return self.counts[RunCounter.BYTES_REPLACED]

    @property
    def files_removed(self) -> int:
        """Decrease of the number of files."""
        return self.counts[RunCounter.FILES_REPLACED] - self.counts[RunCounter.FILES_WRITTEN]

    @property
    def found_nothing(self) -> bool:
        """True if the run found no work; finding an earlier run's commit counts as work."""
        tried = self.counts[RunCounter.GROUPS_COMMITTED] + self.counts[RunCounter.GROUPS_CONFLICTED]
        return not tried and not self.refusals and self.recovered_version is None

    def counters(self) -> dict[str, int]:
        """Counters that this run adds to the funnel."""
        counts = {
            RunCounter.JOBS_RUN: 1,
            RunCounter.PLANS_EMPTY: int(self.found_nothing),
            RunCounter.COMMITS_RECOVERED: int(self.recovered_version is not None),
            RunCounter.REWRITES: len(self.versions),
            **self.counts,
        }
        return {name: count for name, count in counts.items() if count}

    def _encoded(self) -> dict[str, int]:
        """Return how many groups had to be encoded, column by column and by reason."""
        reasons = {name: count for name, count in sorted(self.counts.items()) if name.startswith(_ENCODED)}
        return {**self._counts(RunCounter.GROUPS_ENCODED_BY_COLUMN), **reasons}

    def _counts(self, *names: RunCounter) -> dict[str, int]:
        return {name: self.counts[name] for name in names}

    def measures(self) -> dict[str, int]:
        """Measures for the decider: none, unless the kind is calibrated and the run rewrote what was predicted."""
        if self.kind not in CALIBRATED_KINDS or not self.counts[RunCounter.GROUPS_COMMITTED] or not self.is_predicted:
            return {}
        predicted = self.payload.predicted
        return {
            RunMeasure.RUNS: 1,
            RunMeasure.PREDICTED_BYTES: predicted.uncalibrated_bytes,
            RunMeasure.MEASURED_BYTES: self.cost_bytes,
            RunMeasure.PREDICTED_REMOVED: predicted.uncalibrated_files_removed,
            RunMeasure.MEASURED_REMOVED: max(0, self.files_removed),
            **{measure: self.shrinking[measure] for measure in _SHRINKING},
        }

    @property
    def usage(self) -> Usage:
        """Usage of the store by the rewrites."""
        return Usage(
            bytes_read=self.counts[RunCounter.BYTES_REPLACED],
            bytes_written=self.counts[RunCounter.BYTES_WRITTEN],
            reads=self.counts[RunCounter.FILES_REPLACED],
            writes=self.counts[RunCounter.FILES_WRITTEN] + len(self.versions),
        )

    def encode(self, usage: Usage) -> str:
        """Write the report as JSON text; usage: all that the run used."""
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
                **self._counts(RunCounter.FILES_REPLACED, RunCounter.BYTES_WRITTEN),
                "files_removed": self.files_removed,
                "bytes": self.cost_bytes,
                "rows": self.rows,
                "prepare_ms": self.prepare_ms,
                "commit_ms": self.commit_ms,
                **self._counts(RunCounter.GROUPS_NOT_PROMOTED, RunCounter.GROUPS_COPIED, RunCounter.BYTES_COPIED),
                **self._encoded(),
                **self._counts(*PROOF_COUNTERS.values(), RunCounter.PROOFREAD_CPU_MS),
            },
            **({"unverified_because": dict(self.unverified_because)} if self.unverified_because else {}),
            "usage": usage.encode(),
            **self._counts(RunCounter.CONFLICTS, RunCounter.GROUPS_CONFLICTED),
            **self._counts(RunCounter.GROUPS_FAILED, RunCounter.GROUPS_REFUSED),
            "refusals": [{"reason": one.reason, "message": one.message, "files": one.count} for one in self.refusals],
            "before": _state(self.before),
            "after": _state(self.after),
            **({"traceparent": self.traceparent} if self.traceparent else {}),
        }
        return json.dumps(report, separators=(",", ":"))


def _state(state: PartitionStats | None) -> Mapping[str, int] | None:
    if state is None:
        return None
    return {"files": state.files, "bytes": state.bytes, "small_files": state.small_files, "shortfall": state.shortfall}
