"""A share of one core for work in a thread: after each step it pauses for as long as keeps it within its share.

While something more important has work, the share is a tenth. A step is one replay, a fraction of a second.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

BUSY_SHARE = 0.1
"""Part of the share that is left while jobs or refreshes wait: work goes on, so that a busy fleet gets advice, too."""

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 - the name describes the event
    """The work is not to be continued."""


@dataclass(frozen=True, slots=True)
class CpuBudget:
    """How much CPU time background work may use: `share` of one core; `is_busy` returns whether others have work."""

    share: float
    is_busy: Callable[[], bool] = lambda: False

    @property
    def current_share(self) -> float:
        """The share of one core at this moment."""
        return self.share * (BUSY_SHARE if self.is_busy() else 1.0)

    def pause_s(self, used_s: float) -> float:
        """Return how long to pause after so many seconds of CPU time."""
        return used_s * (1 / self.current_share - 1)


@dataclass(slots=True)
class PacedThread:
    """Paces one piece of work: `tick` is called in its thread between two steps, `stop` from anywhere.

    cpu_s: CPU time of the calling thread. wait: returns whether `stop` was called, after so many seconds at most.
    """

    budget: CpuBudget
    cpu_s: Callable[[], float] = time.thread_time
    used_s: float = 0.0
    paused_s: float = 0.0
    _since_s: float | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)

    def tick(self, _step: str = "") -> None:
        """Pause for what has been used since the last call. Raises Stopped after `stop`."""
        now_s = self.cpu_s()
        used_s = 0.0 if self._since_s is None else now_s - self._since_s
        self.used_s += used_s
        pause_s = self.budget.pause_s(used_s)
        self.paused_s += pause_s
        if self._stopped.wait(pause_s):
            raise Stopped
        self._since_s = self.cpu_s()

    def end(self) -> float:
        """Return how many seconds to pause after the last step; called in the thread once it is done."""
        used_s = 0.0 if self._since_s is None else self.cpu_s() - self._since_s
        self.used_s += used_s
        return self.budget.pause_s(used_s)

    def stop(self) -> None:
        """End the work at its next step, and a pause at once."""
        self._stopped.set()


async def run_paced(
    budget: CpuBudget,
    work: Callable[[Callable[[str], None]], T],
    look: Callable[[], Awaitable[None]],
    *,
    every_s: float,
) -> T:
    """Run work in a thread within its budget and return its result; `work` is given the tick to call between steps.

    look: called every `every_s` seconds meanwhile. A cancellation, or an error of `look`, ends the work.
    """
    paced = PacedThread(budget)
    running = asyncio.ensure_future(asyncio.to_thread(lambda: (work(paced.tick), paced.end())))
    try:
        while not (await asyncio.wait({running}, timeout=every_s))[0]:
            await look()
    except BaseException:
        paced.stop()
        await asyncio.wait({running})
        # The result of stopped work is of no interest; its error is read, lest it be logged.
        running.exception()
        raise
    found, pause_s = running.result()
    await asyncio.sleep(pause_s)
    return found
