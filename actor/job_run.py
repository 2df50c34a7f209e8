"""One claimed job from its first plan to its end: what it plans, what its rewrites did, and how it is reported.

It decides nothing about other jobs: the worker lets several of one table plan, and commits what they planned at once.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum

import structlog

from actor.engines import RUNNABLE_KINDS, EngineSet
from actor.leased_run import LeasedRun, Report, stopped_result
from actor.not_wanted import has_left
from actor.outcomes import FailedGroups, live_after
from actor.ports import GroupStatus, LivePartition, RewriteOutcome
from actor.refused_files import RefusedInRun
from actor.report import RunReport
from actor.slot_queue import HeldJob
from shared import tracing
from shared.errors import Conflict, PermanentError, RefusedFiles, RetryableError, Unsupported
from shared.formats.registry import support_of
from shared.jobs.payload import SORT, JobPayload, RewriteKind
from shared.layout.partition_stats import stats_of_files
from shared.layout.planner import Plan, plan, plan_rewrite
from shared.layout.sort_planner import plan_sort
from shared.policy.properties import is_switched_off, policy_digest
from shared.queue.model import Claim, FinishOutcome, RunResult
from shared.run_counters import RunCounter
from shared.table import DataFile, PartitionKey
from shared.tracing import Attribute

log = structlog.get_logger()


class _JobEnd(StrEnum):
    """How a job ended without an error."""

    NOTHING_LEFT = "nothing_left"
    STOPPED = "stopped"
    SWITCHED_OFF = "switched_off"
    LEFT_FILTER = "left_filter"
    ROUNDS_USED_UP = "rounds_used_up"


class JobRun(LeasedRun):
    """One run; not safe to share between threads.

    max_rounds: rewrites before the job goes back to the queue. max_conflicts: rewrites in a row that others made futile
    before it backs off. `commits_alone`: it shares no commit with other jobs. `commits_single_groups`: each commit has
    one group.
    """

    def __init__(self, held: HeldJob, engines: EngineSet, *, max_rounds: int, max_conflicts: int) -> None:
        super().__init__(held)
        self.report: RunReport | None = None
        self.commits_single_groups = self.commits_alone = held.claim.runs_exclusively
        self._engines = engines
        self._max_rounds = max_rounds
        self._max_conflicts = max_conflicts
        self._live: LivePartition | None = None
        self._conflicts_in_row = 0
        self._failed = FailedGroups()
        self._refused = RefusedInRun(held.claim.refusals, _now_ms, self.log)

    @property
    def result(self) -> Report | None:
        """The report as far as it goes; None before `open`."""
        return self.report

    @property
    def refusals(self) -> str | None:
        """Refusals of the partition's files to be remembered; None: nothing new."""
        commit_step = 1 if self.report is None else support_of(self.payload.format).commit_step
        return self._refused.to_remember(self.claim.version, commit_step)

    def fail(self, failure: Exception) -> None:
        """End the job; what refuses the partition as a whole is remembered, and is no failure of the job."""
        super().fail(failure)
        if self.report is None or self.verdict is not RunResult.CANCELLED or not isinstance(failure, Unsupported):
            return
        self._refused.note_whole(failure, self.payload)
        self.report.record_refusals(self._refused.new)
        if isinstance(failure, RefusedFiles):
            self.verdict, self.error = RunResult.DONE, ""

    @property
    def payload(self) -> JobPayload:
        """Payload of the job; read by `open`."""
        return self._opened.payload

    @property
    def partition(self) -> PartitionKey:
        """The partition that the job is about."""
        return PartitionKey(self.claim.key.partition)

    @property
    def _opened(self) -> RunReport:
        if self.report is None:
            raise RuntimeError(f"job {self.claim.id} was not opened")
        return self.report

    def open(self) -> None:
        """Read what the job requests, and the live files of its partition."""
        _require_known_kind(self.claim)
        newest = JobPayload.decode(self.claim.payload)
        payload = newest.with_extent(self.claim.extent)
        is_predicted = payload.rewrite_kind is newest.rewrite_kind
        self.report = RunReport(
            payload, kind=self.claim.key.kind, is_predicted=is_predicted, traceparent=tracing.context_of(self.span)
        )
        tracing.describe(self.span, {Attribute.TABLE: payload.name})
        if payload.is_contended:
            self.commits_single_groups = self.commits_alone = True
        self._live = self._read()
        self.report.recovered_version = self._previous_commit()

    def plan(self, should_stop: Callable[[], bool]) -> Plan | None:
        """Plan the next rewrite on the newest snapshot; None if the job is over."""
        report, payload = self._opened, self.payload
        live = self._live or self._read()
        self._live = live
        if report.rounds >= self._max_rounds:
            report.record_snapshot(live.version, stats_of_files(live.files, payload.policy.size_levels))
            self._end(_JobEnd.ROUNDS_USED_UP)
            return None
        if is_switched_off(live.metadata.configuration) and not payload.even_if_disabled:
            # The decider has not read the commit that disabled the table yet; then it cancels waiting jobs.
            self._end(_JobEnd.SWITCHED_OFF)
            return None
        if has_left(payload, self.partition, live.metadata.partition_columns, _now_ms()):
            self.log.info("partition_left_filter", filter=payload.policy.filter)
            self._end(_JobEnd.LEFT_FILTER)
            return None
        left = self._refused.left(live, payload)
        planned = self._failed.without(_plan(self.claim.key.kind, self.partition, left, payload))
        report.record_snapshot(live.version, planned.before)
        report.policy_changed = policy_digest(live.metadata.configuration) != payload.policy_digest
        if not planned.groups:
            self._failed.raise_first()
            self._end(_JobEnd.NOTHING_LEFT)
        elif should_stop():
            self._end(_JobEnd.STOPPED)
        else:
            return planned
        return None

    def begin_round(self) -> None:
        """Count a rewrite that is about to begin."""
        self._opened.rounds += 1

    @property
    def rounds(self) -> int:
        """Number of rewrites that were begun."""
        return self._opened.rounds

    def record(self, planned: Plan, outcome: RewriteOutcome) -> None:
        """Add what a rewrite did to this job's groups; raises Conflict if others were faster too often."""
        report = self._opened
        report.record_rewrite(outcome)
        self._failed.note(outcome)
        self._refused.note(outcome, self.payload)
        report.record_refusals(self._refused.new)
        is_refused = any(end.status is GroupStatus.REFUSED for end in outcome.groups)
        self._conflicts_in_row = 0 if outcome.version is not None or is_refused else self._conflicts_in_row + 1
        if outcome.version is not None and planned.is_truncated and report.cost_bytes >= planned.bytes:
            self._end(_JobEnd.ROUNDS_USED_UP)  # the policy's bytes for one job are spent; the rest is the next job's
            return
        if self._conflicts_in_row > self._max_conflicts:
            raise Conflict(
                f"table {self.payload.name}: others changed the planned files {self._conflicts_in_row} times",
                kind="Stale",
            )
        self._live = None if self._live is None else live_after(self._live, outcome)

    def commit_single_groups(self) -> None:
        """Commit each group by itself: of several in a commit, the engine does not say which one it refuses."""
        self.commits_single_groups = self.commits_alone = True

    def commit_alone(self) -> None:
        """Share no more commits, and plan on a new snapshot: a rewrite that several jobs shared failed."""
        self.commits_alone, self._live = True, None

    def stop(self) -> None:
        """End the job where it is, as it was asked to."""
        self._end(_JobEnd.STOPPED)

    def log_end(self, outcome: FinishOutcome) -> None:
        """Log how the job was reported."""
        versions = self.report.versions if self.report else []
        self.log.info("job_finished", run_result=self.verdict, outcome=outcome, versions=versions)

    def set_progress(self, point: str, planned: int) -> None:
        """Report how far the run is; `planned`: groups of its newest plan, of which none is recorded yet.

        The share done determines what a preemption of the run costs.
        """
        landed = self._opened.counts[RunCounter.GROUPS_COMMITTED]
        share = landed / (landed + planned)
        progress = {"point": point, "round": self._opened.rounds, "groups_committed": landed, "share": round(share, 3)}
        self.lease.set_progress(json.dumps(progress))

    def _end(self, end: _JobEnd) -> None:
        self.is_over, self.verdict = True, _run_result(end, self.lease.stop_reason)

    def _read(self) -> LivePartition:
        payload = self.payload
        engine = self._engines.of(payload.format)
        return engine.read_partition(payload.location, self.partition, table_uuid=payload.table_uuid)

    def _previous_commit(self) -> int | None:
        """Return the version that an earlier run of the job committed before it ended without a report.

        It is for the report alone, and nothing depends on it: such a commit is in the snapshot that this run plans on.
        """
        claim, payload = self.claim, self.payload
        if claim.previous_token is None:
            return None
        try:
            return self._engines.of(payload.format).find_commit(
                payload.location, job=claim.id, token=claim.previous_token, since_version=max(0, claim.version - 1)
            )
        except PermanentError as too_far_back:
            self.log.info("previous_commit_lookup_skipped", reason=str(too_far_back))
            return None


def _now_ms() -> int:
    """Return milliseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1_000_000


def _plan(kind: str, partition: PartitionKey, files: Sequence[DataFile], payload: JobPayload) -> Plan:
    """Plan what the job requests; a partition is idle-compacted only when no promotion in it is eligible any more.

    If readers may take files for files of several partitions, a plan has one of these; another round has another.
    """
    if len(spellings := sorted({file.spelling for file in files})) > 1:
        plans = [_plan(kind, partition, [one for one in files if one.spelling == kept], payload) for kept in spellings]
        found = next((one for one in plans if one.groups), plans[0])
        return replace(found, before=stats_of_files(files, payload.policy.size_levels))
    if kind == SORT:
        return plan_sort(partition, files, payload.policy)
    rewrite_kind, policy, before = payload.rewrite_kind, payload.policy, None
    if rewrite_kind is RewriteKind.IDLE:
        promotions = plan(partition, files, policy)
        if promotions.groups:
            return promotions
        before = promotions.before
    return plan_rewrite(rewrite_kind, partition, files, policy, before, ended_by_ms=payload.ended_by_ms)


def _require_known_kind(claim: Claim) -> None:
    """Raise RetryableError for a job of another kind: only a newer release knows what its partition and payload mean.

    Such a job is claimed only where nothing is known of its table: the queue sets aside what this actor cannot do. It
    backs off like any failure, so that a newer actor may claim it, and ends in quarantine with this reason otherwise.
    """
    if claim.key.kind not in RUNNABLE_KINDS:
        raise RetryableError(
            f"job {claim.id} is of the kind {claim.key.kind!r}, and this release runs only "
            f"{'/'.join(RUNNABLE_KINDS)!r}: nothing was done; upgrade the actors, then `lakewright jobs requeue` it"
        )


def _run_result(end: _JobEnd, stop_reason: str | None) -> RunResult:
    if end is _JobEnd.NOTHING_LEFT:
        return RunResult.DONE
    if end in (_JobEnd.SWITCHED_OFF, _JobEnd.LEFT_FILTER):
        return RunResult.CANCELLED
    return stopped_result(stop_reason)
