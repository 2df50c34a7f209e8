"""One slot of an actor: claim jobs, plan each on the live snapshot, rewrite, commit, finish. Control flow only.

A job names a partition; its files are chosen here, on the newest snapshot, again and again until the plan is empty. So
a plan is never stale, a job that ran twice finds nothing the second time, and a request that arrived while it ran is
either satisfied (reported with `seen_version`) or brings the job back.
"""

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TypeVar

import structlog

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat
from actor.job_run import JobRun
from actor.leased_run import LeasedRun
from actor.outage_log import OutageLog
from actor.ports import EngineDied, RewriteOutcome
from actor.queue_executor import SyncQueueExecutor
from actor.refused_files import refused_outcome
from actor.run_span import end_rewrite, end_run, start_rewrite
from actor.shared_commit import Portion, choose_portions, outcome_of, request_of
from actor.slot_gate import SlotGate, SlotTime
from actor.slot_queue import DEFAULT_SHARE, HeldJob, SlotQueue
from actor.table_job_run import TableJobProgress, TableJobRun
from shared import tracing
from shared.errors import LakewrightError, LeaseLost, RefusedFiles
from shared.layout.planner import Plan
from shared.queue import commands
from shared.queue.command import Command
from shared.queue.model import Claim, Finished, FinishOutcome, RunResult, Share
from shared.run_counters import RunCounter

log = structlog.get_logger()

R = TypeVar("R")
L = TypeVar("L", bound=LeasedRun)

ProgressHook = Callable[[Claim, str], None]
"""Called at each labelled point of a run; progress for people, and the barrier that tests hold a run at."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Limits of one slot.

    groups_per_commit: groups that share a commit; more save commits, fewer lose less to a conflict.
    max_rounds: rewrites of one job before it goes back to the queue, so that a busy partition does not hold a slot for
    ever. max_conflicts: rewrites of one job in a row that others made futile, before it backs off.
    idle_s: pause between claims when nothing is ready; the latency that an idle queue adds.
    share: jobs of one table that are claimed together, to commit what they have to do at once.
    cores: cores that the slot has of its actor's, which its time is counted by.
    """

    groups_per_commit: int = 8
    max_rounds: int = 10
    max_conflicts: int = 3
    idle_s: float = 0.5
    share: Share = DEFAULT_SHARE
    cores: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class ActorContext:
    """Context of the slots of one actor: its name among the workers, its heartbeat, and requests to stop or drain.

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


def _never() -> bool:
    return False


_FAILURES = frozenset({RunResult.FAIL, RunResult.QUARANTINE, RunResult.CRASHED})


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
        self._queue = SlotQueue(queue, actor.name, actor.heartbeat, engines.abilities, settings.share)
        self._heartbeat = actor.heartbeat
        self._stopping = actor.stopping
        self._draining = actor.draining
        self._gate = actor.gate
        self._outage = actor.outage
        self._settings = settings
        self._reached = reached

    def run(self) -> None:
        """Work until stopped; wait while the queue does not answer or refuses. Raises EngineDied."""
        while not self._stopping.is_set():
            try:
                ran = not self._draining.is_set() and self._run_jobs(self._wants_more)
            except EngineDied:
                raise
            except LakewrightError as problem:
                self._outage.failed(worker=self._queue.worker, error=str(problem))
                ran = False
            else:
                self._outage.succeeded()
            if not ran:
                self._stopping.wait(self._settings.idle_s)

    def run_next(self) -> bool:
        """Claim once and run the jobs; False if none is ready, or another slot's job runs alone. Raises EngineDied."""
        return self._run_jobs(_never)

    def _run_jobs(self, wants_more: Callable[[], bool]) -> bool:
        """Claim and run jobs, and then the next ones as long as `wants_more`; False if nothing is ready now."""
        if not self._gate.enter():
            return False
        try:
            return self._claim_and_run(wants_more)
        finally:
            self._gate.leave()

    def _claim_and_run(self, wants_more: Callable[[], bool]) -> bool:
        if not self._engines.is_alive():
            # Before a job is claimed, which would be blamed for it.
            raise EngineDied(f"the engine died between jobs: {self._cause_of_death()}")
        held: tuple[HeldJob, ...] | None = self._queue.claim()
        while held:
            self._outage.succeeded()
            # Jobs that are claimed together are of one kind.
            is_on_table = held[0].claim.key.kind in self._engines.table_kinds
            held = self._run_on_table(held, wants_more) if is_on_table else self._run_held(held, wants_more)
        return held is None

    def _wants_more(self) -> bool:
        """Return whether this slot would claim at once, so that the call that ends its last job may claim."""
        is_free = not self._stopping.is_set() and not self._draining.is_set() and not self._gate.is_exclusive_awaited
        return is_free and self._engines.is_alive()

    def _run_held(self, held: Sequence[HeldJob], wants_more: Callable[[], bool]) -> tuple[HeldJob, ...] | None:
        """Run jobs that were claimed together, and end each as soon as it is over.

        Returns the next ones, () if none is ready, None if the queue was not asked.
        """
        limits = {"max_rounds": self._settings.max_rounds, "max_conflicts": self._settings.max_conflicts}
        left = [JobRun(job, self._engines, **limits) for job in held]
        advance = self._advance_exclusively if left[0].claim.runs_exclusively else self._advance
        return self._run_all(left, lambda: advance(left), wants_more)

    def _run_on_table(self, held: Sequence[HeldJob], wants_more: Callable[[], bool]) -> tuple[HeldJob, ...] | None:
        """Run jobs on tables as a whole, one after the other, and end each as soon as it is over."""
        left = [TableJobRun(job, self._engines) for job in held]
        return self._run_all(left, lambda: self._work_on_table(left[0]), wants_more)

    def _run_all(
        self, left: list[L], advance: Callable[[], None], wants_more: Callable[[], bool]
    ) -> tuple[HeldJob, ...] | None:
        """Advance runs until none is left, and report each that is over."""
        following: tuple[HeldJob, ...] | None = None
        slot_time = SlotTime(self._settings.cores, time.monotonic_ns)
        try:
            while left:
                with slot_time.shared_by(left):
                    advance()
                while over := next((run for run in left if run.is_over), None):
                    left.remove(over)
                    self._heartbeat.release(over.lease)
                    following = self._end(over, wants_more if not left else _never)
        except Exception as failure:
            if self._engines.is_alive():
                raise
            raise self._engine_died(left, failure) from failure
        finally:
            for run in left:
                self._heartbeat.release(run.lease)
                tracing.end(run.span)
        return following

    def _work_on_table(self, run: TableJobRun) -> None:
        control = TableJobProgress(
            revalidate=lambda: self._heartbeat.revalidate(run.lease),
            must_stop=partial(self._must_stop, run),
            set_progress=run.lease.set_progress,
            hook=partial(self._reached, run.claim),
        )
        self._guarded(run, partial(run.work, control))

    def _advance(self, runs: Sequence[JobRun]) -> None:
        """Let each job plan, and rewrite what the first one and those like it have planned, in one commit."""
        planned: list[tuple[JobRun, Plan]] = []
        for run in runs:
            if run.report is None:
                self._guarded(run, run.open)
            made = None if run.is_over else self._guarded(run, partial(run.plan, partial(self._must_stop, run)))
            if made is not None:
                planned.append((run, made))
        if planned:
            self._rewrite(choose_portions(planned, self._settings.groups_per_commit))

    def _advance_exclusively(self, runs: Sequence[JobRun]) -> None:
        """Work alone in this actor on a job under which engines have died before, until it is over."""
        (run,) = runs

        def give_up() -> bool:
            run.lease.check()
            return self._must_stop(run)

        def work() -> None:
            log.warning("job_isolated", job=run.claim.id, engine_crashes=run.claim.engine_crashes)
            with self._gate.exclusive(give_up) as is_alone:
                if not is_alone:
                    run.stop()
                while not run.is_over:
                    self._advance(runs)

        self._guarded(run, work)

    def _guarded(self, run: LeasedRun, step: Callable[[], R]) -> R | None:
        """Take a step of one job; what it raises ends this job and no other, unless the engine died."""
        try:
            return step()
        except LeaseLost as lost:
            run.lose(lost)
        except Exception as failure:
            if not self._engines.is_alive():
                raise
            run.fail(failure)
        return None

    def _must_stop(self, run: LeasedRun) -> bool:
        """Return whether a job begins no further rewrite: its actor ends, or it was asked to stop."""
        return self._stopping.is_set() or run.lease.stop_reason is not None

    def _engine_died(self, runs: Sequence[LeasedRun], failure: Exception) -> EngineDied:
        """Report the jobs with the cause of the engine's death; an engine that cannot be ended may still commit.

        Then nothing is reported: the leases expire, and another actor claims the jobs. A job that was over
        before ends as it would have.
        """
        held = [run for run in runs if not run.is_lost]
        jobs = ", ".join(run.claim.id for run in held if not run.is_over)
        death = self._engines.bury()
        if death is None:
            return EngineDied(f"the engine died while job {jobs} ran and cannot be ended: {failure}")
        verdict = RunResult.YIELD if death.was_requested else RunResult.CRASHED
        for run in held:
            tracing.fail(run.span, "EngineDied")
            if run.is_over:
                self._end(run, _never)
            elif ended := self._report_end(run, verdict, death.cause, _never):
                log.error(
                    "job_engine_crashed",
                    job=run.claim.id,
                    cause=death.cause,
                    engine_crashes=run.claim.engine_crashes,
                    outcome=ended[0].outcome,
                )
        return EngineDied(f"the engine died while job {jobs} ran: {death.cause}")

    def _cause_of_death(self) -> str:
        death = self._engines.bury()
        return "it does not answer and cannot be ended" if death is None else death.cause

    def _rewrite(self, portions: Sequence[Portion]) -> None:
        """Rewrite the groups of all portions in one commit, and let each job note what became of its own."""
        runs = [portion.run for portion in portions]
        for run in runs:
            run.begin_round()
        control = RunControl(
            revalidate=lambda: self._heartbeat.revalidate(*(run.lease for run in runs)),
            should_stop=lambda: all(self._must_stop(run) for run in runs),
            reached=lambda point: self._report_progress(portions, point),
        )
        engine = self._engines.of(runs[0].payload.format)
        span = start_rewrite([run.span for run in runs], sum(len(portion.groups) for portion in portions))
        rewrite = partial(engine.rewrite, request_of(portions, tracing.context_of(span)), control)
        outcome = None
        try:
            if len(runs) == 1:
                outcome = self._guarded(runs[0], partial(_refusing, portions[0], rewrite))
            else:
                outcome = self._shared(runs, rewrite)
        finally:
            end_rewrite(span, outcome)
        if outcome is None:
            return
        for portion in portions:
            own = outcome_of(portion, outcome, shared_by=len(runs))
            self._guarded(portion.run, partial(portion.run.record, portion.planned, own))

    def _shared(self, runs: Sequence[JobRun], rewrite: Callable[[], RewriteOutcome]) -> RewriteOutcome | None:
        """Rewrite for several jobs; if it fails, each of them goes on alone, and the one that is to blame ends so."""
        try:
            return rewrite()
        except Exception as failure:
            if not self._engines.is_alive():
                raise
            log.warning("shared_rewrite_failed", jobs=[run.claim.id for run in runs], error=str(failure))
            for run in runs:
                run.commit_alone()
            return None

    def _report_progress(self, portions: Sequence[Portion], point: str) -> None:
        for portion in portions:
            portion.run.set_progress(point, len(portion.planned.groups))
            self._reached(portion.run.claim, point)

    def _end(self, run: LeasedRun, wants_more: Callable[[], bool]) -> tuple[HeldJob, ...] | None:
        """Report the end of a job, unless it is another actor's; returns what `_run_held` does."""
        ended = None if run.is_lost else self._report_end(run, run.verdict, run.error, wants_more)
        end_run(run.span, "lost" if run.is_lost else run.verdict, run.result.cost_bytes if run.result else 0)
        if ended is None:
            return None
        finished, held = ended
        run.log_end(finished.outcome)
        return None if finished.outcome is FinishOutcome.STALE else held

    def _report_end(
        self, run: LeasedRun, verdict: RunResult, error: str, wants_more: Callable[[], bool]
    ) -> tuple[Finished, tuple[HeldJob, ...] | None] | None:
        """Send the end of a job; None if it is refused: then its lease ends it, and no other job of the slot."""
        try:
            end = self._finish(run, verdict, error)
            if wants_more():
                return self._queue.finish_and_claim(run.claim.id, end, self._pause)
            return self._queue.finish(run.claim.id, end, self._pause), None
        except LakewrightError as problem:
            log.exception("finish_refused", job=run.claim.id, error=str(problem))
            return None

    def _finish(self, run: LeasedRun, verdict: RunResult, error: str) -> Command[Finished]:
        report = run.result
        return commands.finish(
            self._queue.queue.name,
            worker=self._queue.worker,
            nonce=uuid.uuid4().hex,
            id=run.claim.id,
            token=run.claim.token,
            run_result=verdict,
            cost_bytes=report.cost_bytes if report else 0,
            seen_version=report.satisfied_version if report else -1,
            result=report.encode(run.usage) if report else "{}",
            counters=(report.counters() | run.usage.counters() if report else {})
            | ({RunCounter.JOBS_FAILED: 1} if verdict in _FAILURES else {}),
            measures=report.measures() if report and verdict is RunResult.DONE else {},
            error=error,
            refusals=run.refusals,
        )

    def _pause(self) -> None:
        self._stopping.wait(self._settings.idle_s)


def _refusing(portion: Portion, rewrite: Callable[[], RewriteOutcome]) -> RewriteOutcome | None:
    """Rewrite; a refusal that an engine raises becomes the outcome of the groups that it is about.

    None: it does not say which of several, so that each is tried by itself.
    """
    try:
        return rewrite()
    except RefusedFiles as refused:
        if len(portion.groups) > 1 and not refused.files:
            portion.run.commit_single_groups()
            return None
        return refused_outcome(portion.groups, refused)


@dataclass(frozen=True, slots=True)
class RunControl:
    """The worker's implementation of `actor.ports.Control`."""

    revalidate: Callable[[], None]
    should_stop: Callable[[], bool]
    reached: Callable[[str], None]

    def may_commit(self) -> None:
        """Raise LeaseLost unless a commit is still allowed."""
        self.revalidate()
