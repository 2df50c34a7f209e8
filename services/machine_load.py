"""How much of this machine other programs use: background work gives way to them.

Load averages and the pressure of a cgroup count the work of the asking program, which then would stop for itself. So
the time of this process and of all below it, such as a JVM, is taken off the time of all cores. The rest belongs to
others, with what a hypervisor gave to other virtual machines.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

PROC = Path("/proc")

SAMPLE_S = 5.0
"""Seconds between two samples at least: one reads a small file for each process of the machine."""

WINDOW_S = 15.0
"""Seconds over which the load is averaged: a compiler that runs for a moment stops nothing, and an actor whose rewrite
is cancelled half a minute after it was asked to stop is still out of the way within a minute."""

CALM_AGAIN = 0.8
"""Share of the limit below which a busy machine is calm again: a load near the limit does not stop and start work."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CpuTicks:
    """Ticks since the machine started, over all cores: all, those in use, and those that our processes used."""

    total: int
    used: int
    own: int


class MachineLoad:
    """Share of all cores that others used of late; safe to share between threads.

    limit: the share, 0 to 1, above which the machine is busy; 1: never. read: reads the ticks, None where they are not
    known. clock: monotonic, in seconds.
    """

    def __init__(
        self,
        limit: float,
        read: Callable[[], CpuTicks | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._read = read or read_ticks
        self._clock = clock
        self._lock = threading.Lock()
        self._samples: deque[tuple[float, CpuTicks]] = deque()
        self._is_busy = False

    def is_busy(self) -> bool:
        """Return whether others use more than the limit; False as long as nothing is known."""
        if self._limit >= 1:
            return False
        with self._lock:
            now_s = self._clock()
            if not self._samples or now_s - self._samples[-1][0] >= SAMPLE_S:
                self._sample(now_s)
            return self._is_busy

    def _sample(self, now_s: float) -> None:
        ticks = self._read()
        if ticks is None:
            return
        self._samples.append((now_s, ticks))
        while len(self._samples) > 2 and now_s - self._samples[1][0] >= WINDOW_S:  # noqa: PLR2004 - two make a share
            self._samples.popleft()
        load = others(self._samples[0][1], ticks)
        was_busy = self._is_busy
        self._is_busy = load > self._limit * (CALM_AGAIN if was_busy else 1.0)
        if self._is_busy is not was_busy:
            log.info("machine_busy" if self._is_busy else "machine_calm", others=round(load, 2), limit=self._limit)


def others(first: CpuTicks, last: CpuTicks) -> float:
    """Return the share of all cores, 0 to 1, that others used between two samples; 0 if no time has passed."""
    total = last.total - first.total
    used = (last.used - first.used) - max(0, last.own - first.own)
    return min(1.0, max(0.0, used / total)) if total > 0 else 0.0


def read_ticks(proc: Path = PROC) -> CpuTicks | None:
    """Read the ticks from Linux; None on other systems."""
    try:
        cores = proc.joinpath("stat").read_text("ascii").split("\n", 1)[0].split()[1:]
        # user nice system idle iowait irq softirq steal; what follows are parts of the first two.
        ticks = [int(one) for one in cores[:8]]
        own = _own_ticks(proc)
    except (OSError, ValueError):
        return None
    return CpuTicks(sum(ticks), sum(ticks) - sum(ticks[3:5]), own)


def _own_ticks(proc: Path) -> int:
    """Add up the ticks of this process and of those below it, ended ones included."""
    ticks, children = dict[int, int](), dict[int, list[int]]()
    for entry in os.scandir(proc):
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # A process may end meanwhile.
            # The name, in parentheses, may have any bytes; behind it are the state, the parent, and so on.
            fields = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    ours, found = [os.getpid()], 0
    while ours:
        process = ours.pop()
        found += ticks.get(process, 0)
        ours += children.get(process, ())
    return found
