"""Calls of one catalog run in a few threads of its own, so that one that does not answer delays no other table.

pyiceberg waits for an answer in the thread of its caller. In the threads that the process shares, the calls to a silent
catalog would soon be all that runs there.
"""

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from shared.errors import RetryableError

T = TypeVar("T")

CALLS_AT_ONCE = 8
"""Half of the tables that a decider refreshes at once: the others wait for no catalog that is silent."""

PATIENCE_S = 5.0
"""A catalog is silent when all of its threads wait and none began or ended a call for so long."""


class CatalogCalls:
    """Runs functions that ask the catalog `name`; used from any number of event loops, one after another."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._threads = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix=f"catalog-{name}")
        self._lock = threading.Lock()
        self._unanswered = 0
        self._moved_s = 0.0  # Of time.monotonic, when a call last began or ended.

    async def run(self, ask: Callable[..., T], *arguments: Any) -> T:
        """Return what the function returns; raises RetryableError without a call while the catalog is silent."""
        if self._is_silent():
            raise self._unavailable()
        call = self._threads.submit(contextvars.copy_context().run, self._ask, ask, *arguments)
        answer: asyncio.Future[T] = asyncio.wrap_future(call)
        while not (await asyncio.wait([answer], timeout=PATIENCE_S))[0]:
            if self._is_silent() and call.cancel():  # It has not begun.
                raise self._unavailable()
        return answer.result()

    def _is_silent(self) -> bool:
        return self._unanswered >= CALLS_AT_ONCE and time.monotonic() - self._moved_s >= PATIENCE_S

    def _ask(self, ask: Callable[..., T], *arguments: Any) -> T:
        self._count(1)
        try:
            return ask(*arguments)
        finally:
            self._count(-1)

    def _count(self, calls: int) -> None:
        with self._lock:
            self._unanswered += calls
            self._moved_s = time.monotonic()

    def _unavailable(self) -> RetryableError:
        return RetryableError(f"catalog {self._name} leaves {self._unanswered} calls unanswered; asked again later")
