"""A lease, as its holder may rely on it: a local deadline on a monotonic clock, never the server's word alone.

The deadline is counted from the moment before the heartbeat was sent, less a margin, so it lies before the one that
Redis keeps whatever the network does. Past it nothing may be committed, even if Redis cannot be reached to ask.
"""

import threading
from collections.abc import Callable, Sequence

from shared.errors import LeaseLost
from shared.queue.model import Claim, JobId, StopReason, Token


class Lease:
    """One held lease; thread-safe. `clock` is monotonic and in seconds."""

    def __init__(self, claim: Claim, *, valid_until_s: float, clock: Callable[[], float]) -> None:
        self.job: JobId = claim.id
        self.token: Token = claim.token
        self._clock = clock
        self._lock = threading.Lock()
        self._valid_until_s = valid_until_s
        self._lost_reason: str | None = None
        self._stop_reason: str | None = None
        self._stop_requested_at_s: float | None = None
        self._progress = "{}"
        self._slot: Sequence[Lease] = (self,)

    def share_slot(self, leases: "Sequence[Lease]") -> None:
        """Name the leases of all jobs that hold one slot, this one among them: when the slot is wanted, all stop."""
        self._slot = tuple(leases)

    @property
    def slot(self) -> Token:
        """Identity of the slot among the held ones: the token of the first job that was claimed for it."""
        return self._slot[0].token

    def extend(self, valid_until_s: float) -> None:
        """Extend the lease after a successful heartbeat; a lost lease stays lost."""
        with self._lock:
            self._valid_until_s = max(self._valid_until_s, valid_until_s)

    def mark_lost(self, reason: str) -> None:
        """Mark the lease as lost: another worker has the job."""
        with self._lock:
            self._lost_reason = self._lost_reason or reason

    def request_stop(self, reason: str) -> None:
        """Request that the job ends at the next group boundary; a preemption is one of all jobs of the slot."""
        for lease in self._slot if reason == StopReason.PREEMPT else (self,):
            lease._note_stop(reason)  # noqa: SLF001 - of this class

    def _note_stop(self, reason: str) -> None:
        with self._lock:
            self._stop_reason = self._stop_reason or reason
            # A window that has closed is no reason to lose the group that is being written.
            if reason != StopReason.WINDOW and self._stop_requested_at_s is None:
                self._stop_requested_at_s = self._clock()

    @property
    def stop_reason(self) -> str | None:
        """Why the job shall end, None if it may go on."""
        with self._lock:
            return self._stop_reason

    def is_overdue(self, stop_grace_s: float) -> bool:
        """Return whether the job has exceeded the time that it had to stop."""
        with self._lock:
            return self._stop_requested_at_s is not None and self._clock() - self._stop_requested_at_s >= stop_grace_s

    @property
    def progress(self) -> str:
        """Progress that the next heartbeat reports, as JSON text."""
        with self._lock:
            return self._progress

    def set_progress(self, progress: str) -> None:
        """Set the progress that the next heartbeat reports."""
        with self._lock:
            self._progress = progress

    def check(self) -> None:
        """Raise LeaseLost unless the lease is provably still ours."""
        with self._lock:
            if self._lost_reason is not None:
                raise LeaseLost(f"job {self.job}: {self._lost_reason}; nothing more is committed for it")
            late_s = self._clock() - self._valid_until_s
            if late_s >= 0:
                raise LeaseLost(
                    f"job {self.job}: no heartbeat was answered in time, the lease ran out {late_s:.1f} s ago; "
                    "nothing more is committed for it"
                )
