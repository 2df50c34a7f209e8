"""The queue of property tests: its scripts on a real server, with a clock that tests set."""

from collections.abc import Iterator

import pytest

from actor.queue_executor import SyncQueueExecutor
from tests.support.queue_bench import QUEUE
from tests.support.queue_state import library_with_test_clock
from tests.support.redis_server import RedisServer


@pytest.fixture(scope="module")
def queue(redis_server: RedisServer) -> Iterator[SyncQueueExecutor]:
    """A queue for a file of tests: each example begins with `emptied`."""
    with redis_server.client() as client:
        yield SyncQueueExecutor(client, QUEUE, library=library_with_test_clock())
        client.flushdb()
