"""The heartbeat: its own thread and its own connection, because rewriting threads block inside the JVM.

It renews the leases of all slots in one call, learns from the replies which jobs are lost or shall stop, and decides
before each commit whether it is still allowed.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from actor.lease import Lease
from actor.queue_executor import SyncQueueExecutor
from shared.errors import LakewrightError, LeaseLost, RetryableError
from shared.queue import commands
from shared.queue.model import Claim, HeartbeatEntry, HeartbeatReply, HeartbeatStatus, JobId

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Times in seconds.

    A lease survives eleven missed beats; the margin covers a pause between check and commit. A job that was asked to
    stop is given the grace to end at a group boundary; then its rewrite is cancelled. With an urgent job's longest
    wait, the search for it and two beats, an urgent job gets a slot within 45 s.
    """

    lease_s: float = 60.0
    interval_s: float = 5.0
    margin_s: float = 10.0
    stop_grace_s: float = 30.0

    @property
    def lease_ms(self) -> int:
        """Length of a lease in milliseconds, for the queue's scripts."""
        return int(self.lease_s * 1000)


class Heartbeat:
    """Keeps leases alive until `close`; `queue` must not be shared with other threads."""

    def __init__(  # noqa: PLR0913 - what a heartbeat carries each way
        self,
        queue: SyncQueueExecutor,
        worker: str,
        times: LeaseTimes,
        clock: Callable[[], float] = time.monotonic,
        *,
        cancel: Callable[[JobId], None] | None = None,
        announce: Callable[[Sequence[JobId], int], None] | None = None,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_busy`: whether other programs use this machine, so that background jobs give way."""
        self._queue = queue
        self._worker = worker
        self._times = times
        self._clock = clock
        self._cancel = cancel
        self._announce = announce
        self.is_busy = is_busy
        self._cancelling: threading.Thread | None = None
        self._leases: dict[JobId, Lease] = {}
        self._lock = threading.Lock()
        self._connection = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._announce_presence(())
        self._thread.start()

    def close(self) -> None:
        """Stop beating; leases that are still held run out."""
        self._closing.set()
        self._thread.join()

    @property
    def lease_ms(self) -> int:
        """Length of the leases in milliseconds."""
        return self._times.lease_ms

    def valid_until_s(self, sent_at_s: float) -> float:
        """Return the local deadline of a lease that was granted or renewed by a call sent at this moment."""
        return sent_at_s + self._times.lease_s - self._times.margin_s

    def track(self, claim: Claim, *, sent_at_s: float) -> Lease:
        """Keep the lease of a claimed job alive; `sent_at_s` is the clock before the claim was sent."""
        lease = Lease(claim, valid_until_s=self.valid_until_s(sent_at_s), clock=self._clock)
        with self._lock:
            self._leases[claim.id] = lease
        return lease

    def release(self, lease: Lease) -> None:
        """Stop renewing a lease."""
        with self._lock:
            # Another slot of this actor may hold the job again by now.
            if self._leases.get(lease.job) is lease:
                del self._leases[lease.job]

    def revalidate(self, *leases: Lease) -> None:
        """Renew the leases of one commit now and raise LeaseLost unless all of them allow it.

        While Redis does not answer, tries again until the first deadline.
        """
        while True:
            _check_all(leases)
            try:
                self._send(leases)
            except RetryableError as problem:
                jobs = [lease.job for lease in leases]
                log.warning("pre_commit_heartbeat_failed", jobs=jobs, error=str(problem))
                if self._closing.wait(0.5):
                    raise LeaseLost(f"jobs {jobs}: the actor ends and cannot prove its leases") from problem
                continue
            _check_all(leases)
            return

    def _run(self) -> None:
        while not self._closing.wait(self._times.interval_s):
            with self._lock:
                leases = tuple(self._leases.values())
            try:
                self._beat(leases)
            except Exception:
                # Without this thread all leases run out and no commit succeeds any more, while the actor looks alive.
                log.exception("heartbeat_crashed", jobs=len(leases))

    def _beat(self, leases: Sequence[Lease]) -> None:
        self._announce_presence(leases)
        if not leases:
            return
        try:
            self._send(leases)
        except LakewrightError as problem:
            log.warning("heartbeat_failed", jobs=len(leases), error=str(problem))
        self._cancel_overdue(leases)

    def _announce_presence(self, leases: Sequence[Lease]) -> None:
        """Report that the actor is alive and what it runs; nothing depends on it, so a failure is only logged."""
        if self._announce is None:
            return
        try:
            self._announce([lease.job for lease in leases], len({lease.slot for lease in leases}))
        except LakewrightError as problem:
            log.warning("presence_update_failed", worker=self._worker, error=str(problem))

    def _cancel_overdue(self, leases: Sequence[Lease]) -> None:
        """Cancel the rewrites that did not end in time, beat after beat until they have; it may block in the JVM."""
        overdue = [lease.job for lease in leases if lease.is_overdue(self._times.stop_grace_s)]
        if self._cancel is None or not overdue or (self._cancelling is not None and self._cancelling.is_alive()):
            return
        log.warning("rewrites_cancelled", jobs=overdue)
        self._cancelling = threading.Thread(target=_each, args=(self._cancel, overdue), name="cancel", daemon=True)
        self._cancelling.start()

    def _send(self, leases: Sequence[Lease]) -> None:
        sent = self._clock()
        beats = [HeartbeatEntry(lease.job, lease.token, lease.progress) for lease in leases]
        with self._connection:
            replies = self._queue.run(
                commands.heartbeat(
                    self._queue.name,
                    worker=self._worker,
                    beats=beats,
                    lease_ms=self._times.lease_ms,
                    is_busy=self.is_busy(),
                )
            )
        for lease, reply in zip(leases, replies, strict=True):
            self._apply(lease, reply, sent)

    def _apply(self, lease: Lease, reply: HeartbeatReply, sent_at_s: float) -> None:
        if reply.status is HeartbeatStatus.LOST:
            lease.mark_lost("its lease ran out, and the job may be with another actor")
            return
        lease.extend(self.valid_until_s(sent_at_s))
        if reply.reason is not None:
            lease.request_stop(reply.reason)


def _check_all(leases: Sequence[Lease]) -> None:
    """Raise LeaseLost unless all leases are provably still ours."""
    for lease in leases:
        lease.check()


def _each(cancel: Callable[[JobId], None], jobs: Sequence[JobId]) -> None:
    for job in jobs:
        cancel(job)
