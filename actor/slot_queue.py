"""A slot's calls to the queue: jobs are leased and ended here, and their leases are kept by the heartbeat.

A slot that would claim again at once ends its job and claims the next one in one round trip.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog
from opentelemetry.trace import INVALID_SPAN, Span

from actor.heartbeat import Heartbeat
from actor.lease import Lease
from actor.queue_executor import SyncQueueExecutor
from actor.run_span import start_run
from shared import tracing
from shared.errors import RetryableError
from shared.queue import commands
from shared.queue.command import Command
from shared.queue.model import Claim, Finished, FinishOutcome, JobId, Share

log = structlog.get_logger()

R = TypeVar("R")

DEFAULT_SHARE = Share(jobs=8, bytes=128 << 20)
"""Jobs that share a commit: as many as file groups do, and together about the bytes of one full file, so that they hold
a slot no longer than one usual job."""


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A claimed job, its lease, which the heartbeat keeps alive, and the span of its run."""

    claim: Claim
    lease: Lease
    span: Span = INVALID_SPAN


class SlotQueue:
    """Leases and ends jobs for one slot."""

    def __init__(
        self, queue: SyncQueueExecutor, worker: str, heartbeat: Heartbeat, abilities: Sequence[str], share: Share
    ) -> None:
        """`worker`: the actor's name; `abilities`: what it can run, each as `format/kind`."""
        self.queue = queue
        self.worker = worker
        self._heartbeat = heartbeat
        self._abilities = abilities
        self._share = share
        self._unanswered: tuple[Command[tuple[Claim, ...]], float] | None = None
        self._silent_since_s: float | None = None

    def claim(self) -> tuple[HeldJob, ...]:
        """Claim the next job, and those that share its commit; none if nothing is ready.

        Raises RetryableError if the queue does not answer. Then the next call repeats this one: jobs that it was given
        without knowing would otherwise wait for the end of their leases, and each would count an attempt.
        """
        now_s = time.monotonic()
        command, sent_at_s = self._unanswered or (self._claim(), now_s)
        if now_s - sent_at_s >= self._lease_s:
            command, sent_at_s = self._claim(), now_s
        self._unanswered = (command, sent_at_s)
        claims = self.queue.run(command)
        self._unanswered = self._silent_since_s = None
        return self._hold(claims, sent_at_s)

    def finish(self, job: JobId, end: Command[Finished], pause: Callable[[], object]) -> Finished:
        """End a job; retry while its lease may still be valid, then leave the job to the next actor.

        pause: waits between two tries.
        """
        return self._deliver(job, end, pause) or Finished(FinishOutcome.STALE)

    def finish_and_claim(
        self, job: JobId, end: Command[Finished], pause: Callable[[], object]
    ) -> tuple[Finished, tuple[HeldJob, ...]]:
        """End a job as `finish` does, and claim as `claim` does; none if nothing is ready, or the end was refused.

        The leases of the next jobs count from before the first try, because any of them may have claimed it.
        """
        sent_at_s = time.monotonic()
        answer = self._deliver(job, commands.finish_and_claim(end, self._claim()), pause)
        if answer is None:
            return Finished(FinishOutcome.STALE), ()
        finished, claims = answer
        return finished, self._hold(claims, sent_at_s)

    def _claim(self) -> Command[tuple[Claim, ...]]:
        return commands.claim(
            self.queue.name,
            worker=self.worker,
            nonce=uuid.uuid4().hex,
            slots=1,
            lease_ms=self._heartbeat.lease_ms,
            abilities=self._abilities,
            share=self._share,
            is_busy=self._heartbeat.is_busy(),
        )

    def _hold(self, claims: Sequence[Claim], sent_at_s: float) -> tuple[HeldJob, ...]:
        leases = tuple(self._heartbeat.track(claim, sent_at_s=sent_at_s) for claim in claims)
        held = tuple(
            HeldJob(claim, lease, self._start_span(claim)) for claim, lease in zip(claims, leases, strict=True)
        )
        for lease in leases:
            lease.share_slot(leases)
        return held

    def _start_span(self, claim: Claim) -> Span:
        if not tracing.is_on():
            return INVALID_SPAN
        return start_run(self.queue.name, claim, self.queue.traces(claim.id))

    @property
    def _lease_s(self) -> float:
        return self._heartbeat.lease_ms / 1000

    def _deliver(self, job: JobId, command: Command[R], pause: Callable[[], object]) -> R | None:
        """Send the end of a job until the queue answers; None if it was silent for as long as any lease of ours lasts.

        The silence counts over all jobs that end one after the other, so that eight wait no longer than one.
        """
        while True:
            sent_at_s = time.monotonic()
            try:
                answer = self.queue.run(command)
            except RetryableError as problem:
                if self._silent_since_s is None:
                    self._silent_since_s = sent_at_s
                if time.monotonic() - self._silent_since_s >= self._lease_s:
                    log.warning("finish_undeliverable", job=job, worker=self.worker, error=str(problem))
                    return None
                pause()
            else:
                self._silent_since_s = None
                return answer
