"""CPU seconds and resident memory of this process and of all that it starts, JVMs and readers included."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread, Timer
from types import TracebackType
from typing import Self

import psutil

SAMPLED_EACH_S = 0.1


class TreeMeter:
    """Counts from its beginning to its end; of processes that have ended meanwhile, too, once they are reaped."""

    def __init__(self) -> None:
        self._process = psutil.Process()
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
            resident = sum(one.memory_info().rss for one in self._living())
            self.peak_mib = max(self.peak_mib, resident / 2**20)

    def _used_s(self) -> float:
        times = (one.cpu_times() for one in self._living())
        return sum(one.user + one.system + one.children_user + one.children_system for one in times)

    def _living(self) -> Iterator[psutil.Process]:
        """Yield the processes whose figures can be read: one that ends meanwhile has none."""
        for one in (self._process, *self._process.children(recursive=True)):
            if psutil.pid_exists(one.pid):
                yield one


@contextmanager
def children_killed_after(limit_s: float) -> Iterator[Event]:
    """Kill all that this process has started after so many seconds, and set the event: what waits for them fails."""
    is_over = Event()

    def end() -> None:
        is_over.set()
        for one in psutil.Process().children(recursive=True):
            one.kill()

    timer = Timer(limit_s, end)
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()
