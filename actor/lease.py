"""A lease, as its holder may rely on it: a local deadline on a monotonic clock, never the server's word alone.

The deadline is counted from the moment before the heartbeat was sent, less a margin, so it lies before the one that
Redis keeps whatever the network does. Past it nothing may be committed, even if Redis cannot be reached to ask.
"""

import threading
from collections.abc import Callable

from shared.errors import LeaseLost
from shared.queue.model import Claim, JobId, Token


class Lease:
    """One held lease; thread-safe. `clock` is monotonic and in seconds."""

    def __init__(self, claim: Claim, *, until: float, clock: Callable[[], float]) -> None:
        self.job: JobId = claim.id
        self.token: Token = claim.token
        self._clock = clock
        self._lock = threading.Lock()
        self._until = until
        self._lost: str | None = None
        self._stop: str | None = None
        self._told: float | None = None
        self._progress = "{}"

    def extend(self, until: float) -> None:
        """Note a heartbeat that was answered; a lease that was lost stays lost."""
        with self._lock:
            self._until = max(self._until, until)

    def lose(self, why: str) -> None:
        """Note that the job belongs to somebody else."""
        with self._lock:
            self._lost = self._lost or why

    def stop(self, reason: str) -> None:
        """Note that the job shall end at the next group boundary."""
        with self._lock:
            self._stop = self._stop or reason
            self._told = self._clock() if self._told is None else self._told

    @property
    def stop_reason(self) -> str | None:
        """Why the job shall end, None if it may go on."""
        with self._lock:
            return self._stop

    def is_overdue(self, grace_s: float) -> bool:
        """Say whether the job was told to end longer ago than it was given for that."""
        with self._lock:
            return self._told is not None and self._clock() - self._told >= grace_s

    @property
    def progress(self) -> str:
        """What the next heartbeat reports, as JSON text."""
        with self._lock:
            return self._progress

    def note(self, progress: str) -> None:
        """Set what the next heartbeat reports."""
        with self._lock:
            self._progress = progress

    def check(self) -> None:
        """Raise LeaseLost unless the lease is provably still ours."""
        with self._lock:
            if self._lost is not None:
                raise LeaseLost(f"job {self.job}: {self._lost}; nothing more is committed for it")
            late_s = self._clock() - self._until
            if late_s >= 0:
                raise LeaseLost(
                    f"job {self.job}: no heartbeat was answered in time, the lease ran out {late_s:.1f} s ago; "
                    "nothing more is committed for it"
                )
