"""One slot of an actor: claim, plan on the live snapshot, rewrite, commit, finish. Control flow only.

A job names a partition; its files are chosen here, on the newest snapshot, again and again until the plan is empty. So
a plan is never stale, a job that ran twice finds nothing the second time, and a request that arrived while it ran is
either satisfied (reported with `seen_version`) or brings the job back.
"""

import json
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import structlog

from actor.engines import RUNNABLE_KINDS, EngineSet
from actor.heartbeat import Heartbeat
from actor.lease import Lease
from actor.outage_log import OutageLog
from actor.outcomes import FailedGroups, live_after
from actor.ports import EngineDied, RewriteOutcome, RewriteRequest
from actor.queue_executor import SyncQueueExecutor
from actor.report import RunReport
from actor.slot_gate import SlotGate
from shared.commit_metadata import CommitMetadata
from shared.errors import Conflict, LakewrightError, LeaseLost, OtherTable, PermanentError, RetryableError, Unsupported
from shared.job_payload import JobPayload, RewriteKind
from shared.layout.partition_stats import stats_of_files
from shared.layout.planner import FileGroup, Plan, plan, plan_full, plan_idle_compaction
from shared.policy import Policy, RowGroupCopy
from shared.properties import is_switched_off, policy_digest
from shared.queue import commands
from shared.queue.model import Claim, Finished, FinishOutcome, RunResult, StopReason
from shared.table import CommitOrigin, DataFile, PartitionKey

log = structlog.get_logger()

ProgressHook = Callable[[Claim, str], None]
"""Called at each labelled point of a run; progress for people, and the barrier that tests hold a run at."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Limits of one slot.

    groups_per_commit: groups that share a transaction; more save commits, fewer lose less to a conflict.
    max_rounds: plans of one job before it goes back to the queue, so that a busy partition does not hold a slot for
    ever. max_conflicts: rounds lost to others in a row before the job backs off.
    idle_s: pause between claims when nothing is ready; the latency that an idle queue adds.
    """

    groups_per_commit: int = 8
    max_rounds: int = 10
    max_conflicts: int = 3
    idle_s: float = 0.5


@dataclass(frozen=True, slots=True)
class ActorContext:
    """What the slots of one actor share: its name among the workers, its heartbeat, and requests to stop or drain.

    stopping: end at the next group boundary. draining: take no more jobs, finish those at hand, and stay.
    gate: lets a job that is suspected of killing the engine run alone.
    outage: logs a queue that does not answer, once for all slots.
    """

    name: str
    heartbeat: Heartbeat
    stopping: threading.Event
    draining: threading.Event = field(default_factory=threading.Event)
    gate: SlotGate = field(default_factory=SlotGate)
    outage: OutageLog = field(default_factory=OutageLog)


_FAILURES = frozenset({RunResult.FAIL, RunResult.QUARANTINE, RunResult.CRASHED})


class _JobEnd(StrEnum):
    """How a job ended without an error."""

    NOTHING_LEFT = "nothing_left"
    STOPPED = "stopped"
    SWITCHED_OFF = "switched_off"
    ROUNDS_USED_UP = "rounds_used_up"


class Worker:
    """Runs jobs one after another in the calling thread until `stopping` is set."""

    def __init__(
        self,
        engines: EngineSet,
        queue: SyncQueueExecutor,
        actor: ActorContext,
        settings: WorkerSettings,
        reached: ProgressHook = lambda _claim, _point: None,
    ) -> None:
        self._engines = engines
        self._queue = queue
        self._heartbeat = actor.heartbeat
        self._stopping = actor.stopping
        self._draining = actor.draining
        self._gate = actor.gate
        self._outage = actor.outage
        self._name = actor.name
        self._settings = settings
        self._reached = reached

    def run(self) -> None:
        """Work until stopped; wait while the queue does not answer or refuses. Raises EngineDied."""
        while not self._stopping.is_set():
            try:
                ran = not self._draining.is_set() and self.run_next()
            except EngineDied:
                raise
            except LakewrightError as problem:
                self._outage.failed(worker=self._name, error=str(problem))
                ran = False
            else:
                self._outage.succeeded()
            if not ran:
                self._stopping.wait(self._settings.idle_s)

    def run_next(self) -> bool:
        """Claim one job and run it; False if nothing is ready, or another slot's job runs alone. Raises EngineDied."""
        if not self._gate.enter():
            return False
        try:
            return self._claim_and_run()
        finally:
            self._gate.leave()

    def _claim_and_run(self) -> bool:
        if not self._engines.is_alive():
            # Before a job is claimed, which would be blamed for it.
            raise EngineDied(f"the engine died between jobs: {self._cause_of_death()}")
        sent = time.monotonic()
        claims = self._queue.run(
            commands.claim(
                self._queue.name,
                worker=self._name,
                nonce=uuid.uuid4().hex,
                slots=1,
                lease_ms=self._heartbeat.lease_ms,
                abilities=self._engines.abilities,
            )
        )
        for claim in claims:
            self._run_claim(claim, self._heartbeat.track(claim, sent_at_s=sent))
        return bool(claims)

    def _run_claim(self, claim: Claim, lease: Lease) -> None:
        logger = log.bind(job=claim.id, token=claim.token)
        verdict, error, report = RunResult.FAIL, "", None
        try:
            _require_known_kind(claim)
            newest = JobPayload.decode(claim.payload)
            payload = newest.with_extent(claim.extent)
            is_predicted = payload.rewrite_kind is newest.rewrite_kind
            report = RunReport(payload, kind=claim.key.kind, is_predicted=is_predicted)
            verdict = _run_result(self._work_shared_or_exclusive(claim, lease, report), lease)
        except LeaseLost as lost:
            logger.warning("lease_lost", error=str(lost))
            return
        except Exception as failure:
            if not self._engines.is_alive():
                raise self._engine_died(claim, report, failure) from failure
            error = f"{type(failure).__name__}: {failure}"
            if lease.stop_reason is not None:
                # Cancelled inside a group, because it did not end when it was asked to: that is no failure of the job.
                verdict = _run_result(_JobEnd.STOPPED, lease)
            elif _is_fault_of_table(failure):
                verdict, error = RunResult.CANCELLED, str(failure)
            elif isinstance(failure, PermanentError):
                verdict = RunResult.QUARANTINE
            logger.warning("job_failed", verdict=verdict, error=error, exc_info=verdict is RunResult.FAIL)
        finally:
            self._heartbeat.release(lease)
        finished = self._finish(claim, verdict, report, error)
        versions = report.versions if report else []
        logger.info("job_finished", verdict=verdict, outcome=finished.outcome, versions=versions)

    def _engine_died(self, claim: Claim, report: RunReport | None, failure: Exception) -> EngineDied:
        """Report the job with the cause of the engine's death; an engine that cannot be ended may still commit.

        Then nothing is reported: the lease expires, and another actor claims the job.
        """
        death = self._engines.bury()
        if death is None:
            return EngineDied(f"the engine died while job {claim.id} ran and cannot be ended: {failure}")
        finished = self._finish(
            claim, RunResult.YIELD if death.was_requested else RunResult.CRASHED, report, death.cause
        )
        log.error(
            "job_engine_crashed",
            job=claim.id,
            cause=death.cause,
            engine_crashes=claim.engine_crashes,
            outcome=finished.outcome,
        )
        return EngineDied(f"the engine died while job {claim.id} ran: {death.cause}")

    def _cause_of_death(self) -> str:
        death = self._engines.bury()
        return "it does not answer and cannot be ended" if death is None else death.cause

    def _work_shared_or_exclusive(self, claim: Claim, lease: Lease, report: RunReport) -> _JobEnd:
        """Work beside the other slots, or alone if engines died while running this job before."""
        if not claim.runs_exclusively:
            return self._work(claim, lease, report)

        def give_up() -> bool:
            lease.check()
            return self._should_stop(lease)

        log.warning("job_isolated", job=claim.id, engine_crashes=claim.engine_crashes)
        with self._gate.exclusive(give_up) as is_alone:
            return self._work(claim, lease, report) if is_alone else _JobEnd.STOPPED

    def _work(self, claim: Claim, lease: Lease, report: RunReport) -> _JobEnd:
        """Plan and rewrite until nothing is left to do."""
        payload = report.payload
        partition = PartitionKey(claim.key.partition)
        engine = self._engines.of(payload.format)
        live = engine.read_partition(payload.location, partition, table_uuid=payload.table_uuid)
        report.recovered_version = self._previous_commit(claim, payload)
        lost = 0
        failed = FailedGroups()
        for _ in range(self._settings.max_rounds):
            if is_switched_off(live.metadata.configuration) and not payload.even_if_disabled:
                # The decider has not read the commit that disabled the table yet; then it cancels waiting jobs.
                return _JobEnd.SWITCHED_OFF
            planned = failed.without(_plan(partition, live.files, payload))
            report.record_snapshot(live.version, planned.before)
            report.policy_changed = policy_digest(live.metadata.configuration) != payload.policy_digest
            if not planned.groups:
                failed.raise_first()
                return _JobEnd.NOTHING_LEFT
            if self._should_stop(lease):
                return _JobEnd.STOPPED
            report.rounds += 1
            outcome = self._rewrite(claim, planned, lease, report)
            report.record_rewrite(outcome)
            failed.note(outcome)
            lost = 0 if outcome.version is not None else lost + 1
            if outcome.version is not None and planned.is_truncated and report.bytes_replaced >= planned.bytes:
                return _JobEnd.ROUNDS_USED_UP  # the policy's bytes for one job are spent; the rest is the next job's
            if lost > self._settings.max_conflicts:
                raise Conflict(f"table {payload.name}: others changed the planned files {lost} times", kind="Stale")
            live = live_after(live, outcome) or engine.read_partition(
                payload.location, partition, table_uuid=payload.table_uuid
            )
        report.record_snapshot(live.version, stats_of_files(live.files, payload.policy.size_levels))
        return _JobEnd.ROUNDS_USED_UP

    def _previous_commit(self, claim: Claim, payload: JobPayload) -> int | None:
        """Return the version that an earlier run of the job committed before it ended without a report.

        It is for the report alone, and nothing depends on it: such a commit is in the snapshot that this run plans on.
        """
        if claim.previous_token is None:
            return None
        try:
            return self._engines.of(payload.format).find_commit(
                payload.location, job=claim.id, token=claim.previous_token, since_version=max(0, claim.version - 1)
            )
        except PermanentError as too_far_back:
            log.info("previous_commit_lookup_skipped", job=claim.id, reason=str(too_far_back))
            return None

    def _rewrite(self, claim: Claim, planned: Plan, lease: Lease, report: RunReport) -> RewriteOutcome:
        at_once = 1 if report.payload.is_contended or claim.runs_exclusively else self._settings.groups_per_commit
        groups = planned.groups[:at_once]
        mark = _commit_metadata(claim, planned, groups, report.payload.policy, round_number=report.rounds)
        policy = report.payload.policy
        request = RewriteRequest(
            report.payload.location,
            groups,
            mark.encode(),
            report.payload.table_uuid,
            may_copy=policy.row_group_copy is RowGroupCopy.AUTO,
            full_bytes=policy.size_levels.full_bytes,
        )
        control = RunControl(
            revalidate=lambda: self._heartbeat.revalidate(lease),
            should_stop=lambda: self._should_stop(lease),
            reached=lambda point: self._report_progress(claim, lease, report, point, planned=len(planned.groups)),
        )
        return self._engines.of(report.payload.format).rewrite(request, control)

    def _should_stop(self, lease: Lease) -> bool:
        return self._stopping.is_set() or lease.stop_reason is not None

    def _report_progress(self, claim: Claim, lease: Lease, report: RunReport, point: str, *, planned: int) -> None:
        """Report how far the run is; `planned`: groups that this round still has to do.

        The share done determines what a preemption of the run costs.
        """
        share = report.groups_committed / (report.groups_committed + planned)
        landed = report.groups_committed
        progress = {"point": point, "round": report.rounds, "groups_committed": landed, "share": round(share, 3)}
        lease.set_progress(json.dumps(progress))
        self._reached(claim, point)

    def _finish(self, claim: Claim, verdict: RunResult, report: RunReport | None, error: str) -> Finished:
        """Report the end; retry while the lease may still be valid, then leave the job to the next actor."""
        transition = commands.finish(
            self._queue.name,
            worker=self._name,
            nonce=uuid.uuid4().hex,
            id=claim.id,
            token=claim.token,
            run_result=verdict,
            cost_bytes=report.bytes_replaced if report else 0,
            seen_version=report.satisfied_version if report else -1,
            result=report.encode() if report else "{}",
            counters=(report.counters() if report else {}) | ({"jobs_failed": 1} if verdict in _FAILURES else {}),
            measures=report.measures() if report and verdict is RunResult.DONE else {},
            error=error,
        )
        until = time.monotonic() + self._heartbeat.lease_ms / 1000
        while True:
            try:
                return self._queue.run(transition)
            except RetryableError as problem:
                if time.monotonic() >= until:
                    log.warning("finish_undeliverable", job=claim.id, error=str(problem))
                    return Finished(FinishOutcome.STALE)
                self._stopping.wait(self._settings.idle_s)


@dataclass(frozen=True, slots=True)
class RunControl:
    """The worker's implementation of `actor.ports.Control`."""

    revalidate: Callable[[], None]
    should_stop: Callable[[], bool]
    reached: Callable[[str], None]

    def may_commit(self) -> None:
        """Raise LeaseLost unless a commit is still allowed."""
        self.revalidate()


def _plan(partition: PartitionKey, files: Sequence[DataFile], payload: JobPayload) -> Plan:
    """Plan what the job requests; a partition is idle-compacted only when no promotion in it is eligible any more."""
    if payload.rewrite_kind is RewriteKind.FULL:
        return plan_full(partition, files, payload.policy)
    planned = plan(partition, files, payload.policy)
    if planned.groups or payload.rewrite_kind is RewriteKind.LEVELS:
        return planned
    return plan_idle_compaction(partition, files, payload.policy, planned.before, ended_by_ms=payload.ended_by_ms)


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


def _is_fault_of_table(failure: Exception) -> bool:
    """Whether no actor can ever run the job; a location that this one cannot access is another matter."""
    return isinstance(failure, OtherTable) or (isinstance(failure, Unsupported) and failure.field != "location")


def _run_result(end: _JobEnd, lease: Lease) -> RunResult:
    if end is _JobEnd.NOTHING_LEFT:
        return RunResult.DONE
    if end is _JobEnd.SWITCHED_OFF or lease.stop_reason == StopReason.CANCEL:
        return RunResult.CANCELLED
    return RunResult.YIELD


def _commit_metadata(
    claim: Claim, planned: Plan, groups: tuple[FileGroup, ...], policy: Policy, *, round_number: int
) -> CommitMetadata:
    """Name job and token in the commit, with what its actions do not contain: the table's own log is the history."""
    return CommitMetadata(
        origin=CommitOrigin(claim.id, claim.token),
        partition=planned.partition,
        round=round_number,
        mode=max(group.mode for group in groups),
        started_ms=time.time_ns() // 1_000_000,
        size_levels=policy.size_levels,
        partition_files=planned.before.files,
        partition_small_files=planned.before.small_files,
    )
