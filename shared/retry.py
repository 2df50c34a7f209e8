"""Exponential backoff, written once: how often to try, how long to wait in between, and the rule of jitter.

A policy is a value; what retries counts its failures, waits on its own clock and draws its own random numbers. The
queue's scripts delay failed jobs by the same rule (`backoff_ms` in `queue/lua/include/run_end.lua`), on the server.
"""

import math
from dataclasses import dataclass

_MAX_DOUBLINGS = 64
"""Doublings of a pause; more of them leave the range of a float during an outage of days."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of tries and the pauses between them.

    max_attempts: tries, the first included; None for no end. first_s: pause after the first failure, which doubles with
    each further one. longest_s: bound of a pause.
    """

    max_attempts: int | None
    first_s: float
    longest_s: float = math.inf

    def is_exhausted(self, failures: int) -> bool:
        """Return whether so many failures in a row were the last try."""
        return self.max_attempts is not None and failures >= self.max_attempts

    def pause_s(self, failures: int, *, draw: float = 0.0) -> float:
        """Return the seconds to wait after so many failures in a row, 1 or more.

        draw: random number from 0 to 1 that takes off up to half, so that clients which failed together do not return
        together; 0 for a client that is alone.
        """
        full_s: float = min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))
        return full_s * (1 - draw / 2)
