"""An outage is logged when it begins, every half minute, and when it ends; not at each try of each thread."""

import threading
import time
from collections.abc import Callable

import structlog

EVERY_S = 30.0
"""Seconds between two lines about one outage: slots and heartbeat together try several times a second."""

log = structlog.get_logger()


class OutageLog:
    """Logs failures of one service that several threads try; safe to share between them."""

    def __init__(self, *, every_s: float = EVERY_S, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._began_s: float | None = None
        self._logged_s = 0.0
        self._failures = 0

    def failed(self, **about: object) -> None:
        """Note a try that failed; `about` is logged with the line that is due."""
        with self._lock:
            now_s = self._clock_s()
            self._failures += 1
            if self._began_s is None:
                self._began_s = now_s
            elif now_s - self._logged_s < self._every_s:
                return
            self._logged_s = now_s
            log.warning("queue_unavailable", failures=self._failures, for_s=round(now_s - self._began_s), **about)

    def succeeded(self) -> None:
        """Note a try that succeeded: an outage that was logged has ended."""
        with self._lock:
            if self._began_s is None:
                return
            log.info("queue_available", failures=self._failures, after_s=round(self._clock_s() - self._began_s))
            self._began_s, self._failures = None, 0
