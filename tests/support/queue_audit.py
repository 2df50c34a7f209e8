"""A whole audit from a test's thread: the keys by SCAN, then each call with its further pages."""

from collections.abc import Iterator
from typing import Any

import redis

from shared.queue import audit, keys
from shared.queue.command import Command
from tests.support.queue_executors import Executor


def repaired(queue: Any, client: redis.Redis) -> Iterator[int]:
    """Yield the number of things that each call repaired."""
    yield from repaired_by(queue, queue.name, client)


def repaired_by(executor: Executor, queue: str, client: redis.Redis) -> Iterator[int]:
    """The same by an executor that does not say which queue it serves."""
    found = [one for key in client.scan_iter(match=keys.all_keys(queue)) if (one := audit.parse_key(queue, key))]
    for asked in (*audit.steps(queue, found), *audit.final_steps(queue, found)):
        yield from _pages(executor, asked)


def _pages(queue: Executor, asked: Command[Any]) -> Iterator[int]:
    call: Command[Any] | None = asked
    while call is not None:
        reply = queue.run(call)
        if isinstance(reply, int):
            yield reply
            return
        yield reply.repaired
        call = audit.next_page(call, reply)
