"""Attempts to commit beside others that commit, too: they are bounded by time, not by number.

The next one follows nearly at once, for who was faster has just had its turn; pauses grow where that does not help.
"""

import time
from collections.abc import Callable

from shared.retry import RetryPolicy

COMMIT_S = 120.0
"""Seconds after which a commit is not tried again. An attempt takes a tenth of a second on a disk and a few on a slow
store; what was written is lost with the last one, and lies there for as long as writers delete rows of its inputs."""

READS = 3
"""Times that rows to remove are searched at most: each time others changed a file of them before the commit."""

_PAUSES = RetryPolicy(max_attempts=None, first_s=0.02, longest_s=2.0)


class Attempts:
    """Attempts of one commit, the first of which is always made; `clock_s` counts seconds, and `pause` waits for some.

    made: how many were begun.
    """

    def __init__(
        self,
        clock_s: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
        within_s: float = COMMIT_S,
    ) -> None:
        self._clock_s = clock_s
        self._pause = pause
        self._within_s = within_s
        self._begun_s = clock_s()
        self.made = 0

    def again(self) -> bool:
        """Begin the next attempt, after a pause if one was refused; False if the time is over."""
        if self.made:
            if self._clock_s() - self._begun_s >= self._within_s:
                return False
            self._pause(_PAUSES.pause_s(self.made))
        self.made += 1
        return True

    @property
    def text(self) -> str:
        """Number of attempts and their time, for people."""
        return f"{self.made} times in {self._clock_s() - self._begun_s:.0f} s"
