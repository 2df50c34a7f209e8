"""The time of a slot, in milliseconds of one core, divided among the jobs that it runs.

Cores are counted as they are paid for: a slot has its share of its actor's cores for as long as it runs jobs, whether
it computes or waits for the store. Jobs that share the slot share its time evenly, and each millisecond is one job's.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

from actor.leased_run import LeasedRun

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
        """Count the time since the last step, and that of this one, for the runs that share the slot now."""
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
