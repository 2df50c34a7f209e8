"""Jobs run side by side in an actor's slots, but one that is suspected of crashing the engine runs alone.

A job beside it would be blamed for the same crash, and an engine that crashes while one job runs alone was crashed by
that job. A slot enters before it claims and leaves when its jobs have ended; while one waits to be alone, no other
enters.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_S = 0.5
"""Seconds between two checks whether a job that waits to run alone gives up; a lease lasts much longer."""


class SlotGate:
    """Counts the busy slots; thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._active = 0
        self._waiting_for_exclusive = 0
        self._is_exclusive = False

    def enter(self) -> bool:
        """Enter beside others; False if another slot runs alone or waits to do so."""
        with self._changed:
            if self._waiting_for_exclusive:
                return False
            self._active += 1
            return True

    def leave(self) -> None:
        """Leave after `enter`."""
        with self._changed:
            self._active -= 1
            self._changed.notify_all()

    @property
    def is_exclusive_awaited(self) -> bool:
        """True if another slot is alone or waits to be, so that a slot must leave when its jobs have ended."""
        with self._changed:
            return self._waiting_for_exclusive > 0

    @contextmanager
    def exclusive(self, give_up: Callable[[], bool]) -> Iterator[bool]:
        """Wait until no other slot is busy, and run the block alone; for a slot that has entered.

        Yields False, without exclusion, if `give_up` returns True while it waits; what `give_up` raises passes.
        """
        with self._changed:
            self._active -= 1
            self._waiting_for_exclusive += 1
            self._changed.notify_all()
        is_alone = False
        try:
            is_alone = self._take(give_up)
            yield is_alone
        finally:
            with self._changed:
                self._is_exclusive = self._is_exclusive and not is_alone
                self._waiting_for_exclusive -= 1
                self._active += 1
                self._changed.notify_all()

    def _take(self, give_up: Callable[[], bool]) -> bool:
        while not give_up():
            with self._changed:
                if self._changed.wait_for(lambda: not self._active and not self._is_exclusive, timeout=POLL_S):
                    self._is_exclusive = True
                    return True
        return False
