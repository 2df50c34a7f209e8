"""The slots of an actor: jobs run side by side in them, or one alone that may crash the engine, and share their time.

Cores are counted as they are paid for: a slot has its share of its actor's cores for as long as it runs jobs, whether
it computes or waits for the store. Jobs that share the slot share its time evenly, and each millisecond is one job's.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

from actor.leased_run import LeasedRun

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


NS_PER_MS = 1_000_000


class SlotTime:
    """Time of one slot since its jobs were claimed."""

    def __init__(self, cores: Fraction, now_ns: Callable[[], int]) -> None:
        self._cores = cores
        self._now_ns = now_ns
        self._since_ns = now_ns()
        self._left = Fraction(0)

    @contextmanager
    def shared_by(self, runs: Sequence[LeasedRun]) -> Iterator[None]:
        """Count the time since the last step, and what this one takes, for the runs that share the slot now."""
        sharing = tuple(runs)
        try:
            yield
        finally:
            now_ns = self._now_ns()
            exact_ms = self._left + self._cores * (now_ns - self._since_ns) / NS_PER_MS
            self._since_ns, whole_ms = now_ns, int(exact_ms)
            self._left = exact_ms - whole_ms
            each_ms, more = divmod(whole_ms, len(sharing))
            for place, run in enumerate(sharing):
                run.core_ms += each_ms + (place < more)
