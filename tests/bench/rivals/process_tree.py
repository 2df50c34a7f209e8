"""CPU seconds and resident memory of this process and of all that it starts, JVMs and readers included."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread, Timer
from types import TracebackType
from typing import Self

import psutil

SAMPLED_EACH_S = 0.1


class TreeMeter:
    """Counts from its beginning to its end; of processes that have ended meanwhile, too, once they are reaped.

    has_own: whether this process does work that counts itself, and not only those that it starts.
    """

    def __init__(self, *, has_own: bool = True) -> None:
        self._process = psutil.Process()
        self._has_own = has_own
        self._is_over = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._before_s = 0.0
        self.cpu_s = 0.0
        self.peak_mib = 0.0
        """Most resident memory that any sample found, pages that processes share counted in each of them."""

    def __enter__(self) -> Self:
        self._before_s = self._used_s()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()
        self.cpu_s = max(self.cpu_s, self._used_s() - self._before_s)

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLED_EACH_S):
            resident = sum(self._each(lambda one: one.memory_info().rss))
            self.peak_mib = max(self.peak_mib, resident / 2**20)

    def _used_s(self) -> float:
        used_s = sum(self._each(lambda one: sum(one.cpu_times()[:4])))  # With those of its children that were reaped.
        return used_s if self._has_own else used_s + sum(self._process.cpu_times()[2:4])

    def _each(self, read: Callable[[psutil.Process], float]) -> Iterator[float]:
        """Yield a figure of each process; one that ends meanwhile has none."""
        own = [self._process] if self._has_own else []
        for one in (*own, *self._process.children(recursive=True)):
            with suppress(psutil.Error):
                yield read(one)


@contextmanager
def children_killed_after(limit_s: float) -> Iterator[Event]:
    """Kill all that this process starts meanwhile, after so many seconds, and set the event: what waits fails."""
    is_over, before = Event(), set(psutil.Process().children(recursive=True))

    def end() -> None:
        is_over.set()
        for one in set(psutil.Process().children(recursive=True)) - before:
            with suppress(psutil.NoSuchProcess):
                one.kill()

    timer = Timer(limit_s, end)
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()
