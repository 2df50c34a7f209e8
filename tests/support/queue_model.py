"""What the queue is meant to do, in plain Python: a dictionary of jobs instead of scripts and indexes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shared.queue.model import (
    IMMEDIATE,
    Band,
    Claim,
    Debounce,
    Enqueued,
    EnqueueOutcome,
    FinishOutcome,
    JobId,
    JobKey,
    JobRequest,
    JobState,
    RunResult,
    Scope,
    Share,
)
from shared.queue.settings import QueueSettings

DUE_PER_CLAIM = 8
DUE_EVERY_MS = 10
TIMED = (JobState.LEASED, JobState.DELAYED, JobState.QUARANTINED)
MIB = 1 << 20

Flow = tuple[int, str, str]
"""Band, tenant and table."""


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """What is wanted of a job; merging is a maximum, field by field or as a whole."""

    tenant: str
    band: int
    priority: int
    cost: int
    version: int
    payload: str
    t0_ms: int
    precedence: int = 0
    extent: int = 0
    any_time: bool = False

    def merged(self, other: "StoredRequest") -> "StoredRequest":
        def rank(request: StoredRequest) -> tuple[int, int, bytes, bytes, int]:
            return (
                request.version,
                request.precedence,
                request.payload.encode(),
                request.tenant.encode(),
                request.cost,
            )

        return replace(
            max(self, other, key=rank),
            band=min(self.band, other.band),
            priority=min(self.priority, other.priority),
            t0_ms=min(self.t0_ms, other.t0_ms),
            extent=max(self.extent, other.extent),
            any_time=self.any_time or other.any_time,
        )


@dataclass(slots=True)
class Job:
    """A job as the model sees it; `at_ms` is its deadline or when it is ready."""

    key: JobKey
    request: StoredRequest
    state: JobState = JobState.QUEUED
    at_ms: int | None = None
    debounced: bool = False
    delay: Debounce = IMMEDIATE
    attempts: int = 0
    deaths: int = 0
    token: int | None = None
    pending: StoredRequest | None = None
    pending_delay: Debounce = IMMEDIATE
    stopping: bool = False
    revoked: bool = False
    preempted: int = 0


@dataclass(slots=True)
class QueueModel:
    """The queue; each method is a transition."""

    settings: QueueSettings
    now_ms: int
    jobs: dict[JobId, Job] = field(default_factory=dict)
    last_token: int = 0
    limits: dict[tuple[Scope, str], int] = field(default_factory=dict)
    paused: set[tuple[Scope, str]] = field(default_factory=set)
    held_back: set[str] = field(default_factory=set)
    refreshed_at_ms: int = 0
    strict_row: int = 0
    strict_row_while_weighted_wait: int = 0
    weights: dict[str, float] = field(default_factory=dict)
    owed_ms: dict[Flow, int] = field(default_factory=dict)
    """By table: what its jobs have cost at most since it began to wait, and no better job has arrived."""

    def of(self, state: JobState) -> dict[JobId, Job]:
        return {job_id: job for job_id, job in self.jobs.items() if job.state is state}

    def put(self, spec: JobRequest) -> Enqueued:
        request = StoredRequest(
            *(spec.tenant, int(spec.band), spec.priority, spec.cost_bytes, spec.version, spec.payload, self.now_ms),
            precedence=spec.precedence,
            extent=spec.extent,
            any_time=spec.any_time,
        )
        self._forget_debts()
        job = self.jobs.get(spec.id)
        if job is None:
            job = Job(spec.key, request)
            self._wait(job, spec.debounce)
            if job.state is JobState.QUEUED and self._aged(job) < self._first_rank(self._flow(job)):
                self.owed_ms.pop(self._flow(job), None)
            self.jobs[spec.id] = job
            return Enqueued(EnqueueOutcome.QUEUED, job.state)
        if job.state is JobState.LEASED:
            delay = spec.debounce if job.pending is None else shorter(job.pending_delay, spec.debounce)
            job.pending, job.pending_delay = request if job.pending is None else job.pending.merged(request), delay
            return Enqueued(EnqueueOutcome.RERUN_REQUESTED, job.state)
        merged, delay = job.request.merged(request), shorter(job.delay, spec.debounce)
        is_news = merged != job.request or delay != job.delay
        job.request = merged
        if job.state is JobState.DELAYED and job.debounced and is_news:
            self._wait(job, delay)
        return Enqueued(EnqueueOutcome.MERGED, job.state)

    def _wait(self, job: Job, delay: Debounce) -> None:
        at = min(job.request.t0_ms + delay.max_delay_ms, self.now_ms + delay.quiet_ms)
        job.state, job.at_ms, job.debounced, job.delay = JobState.QUEUED, None, False, delay
        if at > self.now_ms:
            job.state, job.at_ms, job.debounced = JobState.DELAYED, at, True

    def take_up_due(self, *, serves: bool) -> list[JobId]:
        """Do what time does before a claim; return the jobs whose leases ran out.

        A claim that serves no one writes nothing down, so that the next one looks again.
        """
        if self.now_ms - self.refreshed_at_ms < DUE_EVERY_MS:
            return []
        more = any(len(self._due(state)) == DUE_PER_CLAIM for state in TIMED)
        if serves:
            self.refreshed_at_ms = 0 if more else self.now_ms
        expired = self._due(JobState.LEASED)
        for job_id in expired:
            self._end(job_id, "expired", -1)
        for state in (JobState.DELAYED, JobState.QUARANTINED):
            for job_id in self._due(state):
                self._queue(self.jobs[job_id])
        return expired

    def _due(self, state: JobState) -> list[JobId]:
        timed = sorted((job.at_ms or 0, job_id) for job_id, job in self.of(state).items())
        return [job_id for at_ms, job_id in timed if at_ms <= self.now_ms][:DUE_PER_CLAIM]

    def _queue(self, job: Job) -> None:
        job.state, job.at_ms, job.debounced = JobState.QUEUED, None, False

    def in_flight(self, level: Scope, name: str) -> int:
        running = self.of(JobState.LEASED).values()
        return sum((job.key.table if level is Scope.TABLE else job.request.tenant) == name for job in running)

    def is_blocked(self, level: Scope, name: str) -> bool:
        limit = self.limits.get((level, name))
        return (level, name) in self.paused or (limit is not None and self.in_flight(level, name) >= limit)

    def ready(self) -> dict[JobId, Job]:
        """The jobs that a claim may hand out."""
        if (Scope.QUEUE, "") in self.paused:
            return {}
        return {
            job_id: job
            for job_id, job in self.of(JobState.QUEUED).items()
            if (Scope.BAND, str(job.request.band)) not in self.paused
            and not self.is_blocked(Scope.TENANT, job.request.tenant)
            and not self.is_blocked(Scope.TABLE, job.key.table)
        }

    def check_and_take(self, claim: Claim, lease_ms: int) -> None:
        """Check that this job was the right one to hand out, then hand it out."""
        self._check_band(claim)
        self._check_turn(claim)
        self._check_and_take(claim, lease_ms)
        self.held_back.discard(str(int(claim.band)))

    def check_and_take_along(self, before: Sequence[Claim], claim: Claim, lease_ms: int, share: Share) -> None:
        """Check that this job may share a transaction with those claimed before it in the same call."""
        assert self.fits(before, share) == claim.id, "another job was to be taken along, or none"
        self._check_and_take(claim, lease_ms)

    def fits(self, taken: Sequence[Claim], share: Share) -> JobId | None:
        """Return the next job of the flow if it may be taken along with those."""
        flow = self._flow(self.jobs[taken[0].id])
        waiting = [(self._aged(job), job_id) for job_id, job in self.ready().items() if self._flow(job) == flow]
        if not waiting or len(taken) == share.jobs or taken[0].attempts:
            return None
        _, job_id = min(waiting)
        job = self.jobs[job_id]
        bytes_taken = sum(claim.cost_bytes for claim in taken) + job.request.cost
        return None if job.attempts or bytes_taken > share.bytes else job_id

    def _check_and_take(self, claim: Claim, lease_ms: int) -> None:
        job = self.jobs[claim.id]
        assert job.state is JobState.QUEUED, f"{claim.id} was handed out while {job.state}"
        assert claim.id in self.ready(), "I6: handed out beyond a limit, or in spite of a pause"
        siblings = [
            self._aged(other) for other in self.of(JobState.QUEUED).values() if self._flow(other) == self._flow(job)
        ]
        assert self._aged(job) == min(siblings), "a job of lower aged priority was served first"
        assert claim.token > self.last_token, "tokens must increase"
        request = job.request
        assert (claim.key, claim.tenant, claim.band, claim.priority) == (
            job.key,
            request.tenant,
            request.band,
            request.priority,
        )
        assert (claim.version, claim.payload, claim.cost_bytes) == (request.version, request.payload, request.cost)
        assert claim.extent == request.extent
        assert (claim.enqueued_at_ms, claim.attempts, claim.previous_token) == (request.t0_ms, job.attempts, job.token)
        assert (claim.engine_crashes, claim.runs_exclusively) == (job.deaths, job.deaths >= 2)
        assert claim.lease_until_ms == self.now_ms + lease_ms
        self.last_token = claim.token
        self._owe(claim, self._units(claim, claim.cost_bytes))
        job.state, job.at_ms, job.token = JobState.LEASED, claim.lease_until_ms, claim.token

    def _check_band(self, claim: Claim) -> None:
        """I9: strict bands by rank, but at most `strict_in_row` claims in a row while a weighted band waits.

        The background only while nothing else is ready.
        """
        bands = {job.request.band for job in self.ready().values()}
        if bands != {Band.BACKGROUND}:
            assert claim.band != Band.BACKGROUND, "another band waits, but the background was served"
        bands.discard(Band.BACKGROUND)
        strict = {band for band in bands if band < self.settings.strict_bands}
        if claim.band < self.settings.strict_bands:
            assert claim.band == min(strict), "a better strict band waits"
            self.strict_row += 1
            self.strict_row_while_weighted_wait = self.strict_row_while_weighted_wait + 1 if bands - strict else 0
            assert self.strict_row_while_weighted_wait <= self.settings.strict_in_row, "I9: too many strict in a row"
            return
        if strict:
            assert self.strict_row >= self.settings.strict_in_row, "a strict band waits, but a later one was served"
        self.strict_row = self.strict_row_while_weighted_wait = 0

    def _check_turn(self, claim: Claim) -> None:
        """I10: of a tenant's tables, the one whose first job has the best rank, but for what the others owe."""
        self._forget_debts()
        taken = self.jobs[claim.id]
        band, tenant, _ = self._flow(taken)
        for other in self.ready().values():
            flow = self._flow(other)
            if flow[:2] == (band, tenant):
                turn = self._first_rank(flow) + self.owed_ms.get(flow, 0)
                assert self._aged(taken) <= turn, f"{flow[2]} was passed over by a job of worse rank"

    def _first_rank(self, flow: Flow) -> float:
        queued = self.of(JobState.QUEUED).values()
        return min((self._aged(job) for job in queued if self._flow(job) == flow), default=float("inf"))

    def _forget_debts(self) -> None:
        """Forget what tables owe that wait for nothing; late is on the safe side."""
        waiting = {self._flow(job) for job in self.of(JobState.QUEUED).values()}
        self.owed_ms = {flow: owed for flow, owed in self.owed_ms.items() if flow in waiting}

    def _units(self, claim: Claim, cost: int) -> int:
        return max(1, int(max(1, cost / MIB) * 1000 / self.weights.get(claim.key.table, 1) + 0.5))

    def _owe(self, claim: Claim, units: int) -> None:
        flow = (int(claim.band), claim.tenant, claim.key.table)
        self.owed_ms[flow] = self.owed_ms.get(flow, 0) + units

    def correct(self, claim: Claim, actual: int) -> None:
        """What a run cost more than estimated is owed, too."""
        self._owe(claim, max(0, self._units(claim, actual) - self._units(claim, claim.cost_bytes)))

    def promote(self, job_id: JobId, band: int) -> None:
        job = self.jobs[job_id]
        if job.state is JobState.LEASED:
            return
        job.request = replace(job.request, band=min(job.request.band, band), priority=0, any_time=True)
        self._queue(job)

    def requeue(self, job_id: JobId) -> None:
        job = self.jobs[job_id]
        if job.state in (JobState.DELAYED, JobState.QUARANTINED):
            job.attempts = job.deaths = 0
            self._queue(job)

    def _aged(self, job: Job) -> int:
        return job.request.t0_ms + job.request.priority * self.settings.aging_ms

    @staticmethod
    def _flow(job: Job) -> Flow:
        return (job.request.band, job.request.tenant, job.key.table)

    def holds(self, claim: Claim) -> bool:
        job = self.jobs.get(claim.id)
        return job is not None and job.state is JobState.LEASED and job.token == claim.token

    def finish(self, claim: Claim, verdict: RunResult, seen_version: int) -> FinishOutcome:
        if not self.holds(claim):
            return FinishOutcome.STALE
        return self._end(claim.id, verdict.value, seen_version)

    def _end(self, job_id: JobId, verdict: str, seen_version: int) -> FinishOutcome:
        job = self.jobs[job_id]
        if job.stopping and verdict != "done":
            verdict = "cancelled"
        pending, job.pending, job.stopping, job.revoked = job.pending, None, False, False
        if verdict == "done" and pending is not None and pending.version <= seen_version:
            pending = None if pending.extent <= job.request.extent else pending
        if verdict in ("done", "cancelled"):
            del self.jobs[job_id]
            if pending is None:
                return FinishOutcome.DELETED
            self.jobs[job_id] = again = Job(job.key, pending)
            self._wait(again, job.pending_delay)
            return FinishOutcome.REQUEUED if again.state is JobState.QUEUED else FinishOutcome.DELAYED
        if pending is not None:
            job.request = job.request.merged(pending)
        self._queue(job)
        if verdict == "yield":
            return FinishOutcome.REQUEUED
        job.attempts += 1
        job.deaths += verdict in ("crashed", "expired")
        died_alone = verdict == "crashed" and job.deaths > 2
        if verdict == "quarantine" or died_alone or job.attempts >= self.settings.max_attempts:
            job.state, job.at_ms = JobState.QUARANTINED, self.now_ms + self.settings.half_open_ms
            return FinishOutcome.QUARANTINED
        if verdict == "expired":
            return FinishOutcome.REQUEUED
        job.state, job.at_ms = JobState.DELAYED, self.now_ms + backoff_ms(self.settings, job_id, job.attempts)
        return FinishOutcome.DELAYED

    def cancel(self, job_id: JobId) -> None:
        job = self.jobs[job_id]
        if job.state is JobState.LEASED:
            job.stopping, job.pending = True, None
        else:
            del self.jobs[job_id]


def shorter(one: Debounce, other: Debounce) -> Debounce:
    return Debounce(min(one.quiet_ms, other.quiet_ms), min(one.max_delay_ms, other.max_delay_ms))


def backoff_ms(settings: QueueSettings, job_id: JobId, attempts: int) -> int:
    full = min(settings.backoff_cap_ms, settings.backoff_base_ms * 2 ** (attempts - 1))
    digest = hashlib.sha1(f"{job_id}:{attempts}".encode(), usedforsecurity=False).hexdigest()
    return int(full * (1 - int(digest[:8], 16) / 2**32 / 2))
