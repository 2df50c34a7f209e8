"""Jobs run side by side in an actor's slots, but one that is under suspicion of killing the engine runs alone.

What runs beside it would be blamed for the same death, and an engine that dies while one job runs alone has died of
that job. A slot enters before it claims and leaves when its job has ended; while one wants to be alone nobody enters.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_S = 0.5
"""Seconds between two looks at whether a job that waits to be alone shall give up; a lease lasts much longer."""


class SlotGate:
    """Counts the slots that are at work; thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._active = 0
        self._waiting_for_exclusive = 0
        self._is_exclusive = False

    def enter(self) -> bool:
        """Begin to work beside others; False if somebody is alone or wants to be."""
        with self._changed:
            if self._waiting_for_exclusive:
                return False
            self._active += 1
            return True

    def leave(self) -> None:
        """End the work that `enter` began."""
        with self._changed:
            self._active -= 1
            self._changed.notify_all()

    @contextmanager
    def exclusive(self, give_up: Callable[[], bool]) -> Iterator[bool]:
        """Wait until nobody else works, and be alone inside the block; for a slot that has entered.

        Yields False, and is not alone, if `give_up` says so while it waits; what `give_up` raises passes.
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
