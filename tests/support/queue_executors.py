"""Both executors behind one face, so that one suite can hold them to the same behaviour."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Protocol, TypeVar

from actor import queue_executor as for_threads
from decider.store.redis import queue_executor as for_asyncio
from shared.queue.command import Command
from shared.queue.lua_library import ScriptLibrary
from shared.retry import RetryPolicy
from tests.support.time_limits import scaled

R = TypeVar("R")


class Executor(Protocol):
    """Runs transitions of one queue."""

    def run(self, transition: Command[R]) -> R:
        """Carry out one transition."""


class _Asyncio:
    def __init__(self, queue: for_asyncio.AsyncQueueExecutor, runner: asyncio.Runner) -> None:
        self._queue = queue
        self._runner = runner

    def run(self, transition: Command[Any]) -> Any:
        return self._runner.run(self._queue.run(transition))


@contextmanager
def sync_executor(url: str, queue: str, library: ScriptLibrary | None, tries: RetryPolicy) -> Iterator[Executor]:
    with closing(for_threads.connect(url, timeout_s=scaled(2.0))) as client:
        yield for_threads.SyncQueueExecutor(client, queue, library=library, retry_policy=tries)


@contextmanager
def async_executor(url: str, queue: str, library: ScriptLibrary | None, tries: RetryPolicy) -> Iterator[Executor]:
    with asyncio.Runner() as runner:
        client = for_asyncio.connect(url, timeout_s=scaled(2.0))
        try:
            yield _Asyncio(for_asyncio.AsyncQueueExecutor(client, queue, library=library, retry_policy=tries), runner)
        finally:
            runner.run(client.aclose())


EXECUTORS = {"sync": sync_executor, "async": async_executor}
