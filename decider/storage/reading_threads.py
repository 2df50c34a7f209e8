"""Threads for reads of local files: one that hangs in the system holds back its caller for a while, and no other.

A read of a network or user-space file system may never return, and no thread can be ended from outside. The threads
that a process shares would soon be all taken. So each read has a deadline; a thread that misses it is left behind and
replaced. They are daemons: none of them keeps the process from ending.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from shared.errors import RetryableError

T = TypeVar("T")

READS_AT_ONCE = 16
"""Threads that read; as many tables are refreshed at once."""

READ_DEADLINE_S = 60.0
"""Time for one read, with the wait for its thread: the largest file at 10 MB/s."""

MAX_HANGING = 64
"""Threads left behind, at some 100 KB each; beyond, reads are refused until one of them returns."""


class ReadingThreads:
    """Runs functions that read local files; used from any number of event loops, one after another."""

    def __init__(
        self, *, at_once: int = READS_AT_ONCE, deadline_s: float = READ_DEADLINE_S, max_hanging: int = MAX_HANGING
    ) -> None:
        self._at_once = at_once
        self._deadline_s = deadline_s
        self._max_hanging = max_hanging
        self._calls: deque[_Call] = deque()
        self._lock = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._hanging = 0

    async def run(self, what: str, read: Callable[..., T], *arguments: Any) -> T:
        """Return what the function returns; raises RetryableError, with `what` was read, if that takes too long."""
        if self._hanging >= self._max_hanging:
            raise RetryableError(f"{what} is not read: {self._hanging} reads of local files hang")
        call = _Call(asyncio.get_running_loop(), read, arguments)
        self._start(call)
        try:
            async with asyncio.timeout(self._deadline_s):
                return await call.answer  # type: ignore[no-any-return]
        except TimeoutError:
            self._leave(call)
            raise RetryableError(
                f"{what} was not read within {self._deadline_s:g} s; does its file system answer?"
            ) from None

    def _start(self, call: "_Call") -> None:
        with self._lock:
            self._calls.append(call)
            if self._idle < len(self._calls) and self._threads < self._at_once:
                self._threads += 1
                threading.Thread(target=self._serve, name="local-read", daemon=True).start()
            self._lock.notify()

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
                self._lock.wait_for(lambda: self._calls)
                self._idle -= 1
                call = self._calls.popleft()
            call.run()
            with self._lock:
                if call.is_left:
                    self._hanging -= 1
                    return

    def _leave(self, call: "_Call") -> None:
        """Give up a call; a thread that hangs in it is no longer counted and ends once it returns."""
        with self._lock:
            if call.is_begun and not call.is_done:
                call.is_left = True
                self._hanging += 1
                self._threads -= 1
            call.is_given_up = True


class _Call:
    """One read, its answer in the loop of its caller, and how far it is."""

    def __init__(self, loop: asyncio.AbstractEventLoop, read: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._loop = loop
        self._read = read
        self._arguments = arguments
        self.answer: asyncio.Future[Any] = loop.create_future()
        self.is_begun = self.is_done = self.is_left = self.is_given_up = False

    def run(self) -> None:
        if self.is_given_up or self.answer.cancelled():
            return
        self.is_begun = True
        try:
            found, problem = self._read(*self._arguments), None
        except BaseException as raised:  # noqa: BLE001 - it is the caller's
            found, problem = None, raised
        self.is_done = True
        try:
            self._loop.call_soon_threadsafe(self._settle, found, problem)
        except RuntimeError:  # The loop is closed: no one waits.
            return

    def _settle(self, found: Any, problem: BaseException | None) -> None:
        if self.answer.done():
            return
        if problem is None:
            self.answer.set_result(found)
        else:
            self.answer.set_exception(problem)
