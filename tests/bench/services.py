"""The decider's tracker and an actor's worker in one process, with a real Redis between them."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat, LeaseTimes
from actor.ports import TableEngine
from actor.queue_executor import SyncQueueExecutor
from actor.queue_executor import connect as connect_actor
from actor.worker import ActorContext, Worker, WorkerSettings
from decider.formats.registry import TableFormats, table_formats
from decider.formats.table_format import StorageAccess
from decider.state.effective_policy import PolicyDefaults
from decider.storage.object_reads import ReadMeter
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.queue_executor import connect as connect_decider
from decider.tracking.tracker import TableTracker
from shared.policy.policy import Policy
from tests.support.queue_state import TestClock, library_with_test_clock
from tests.support.redis_server import RedisServer
from tests.support.timed_world import Alone

T = TypeVar("T")


class Services:
    """A tracker and a worker on one queue; `close` lets the server go."""

    def __init__(
        self,
        engine: TableEngine,
        queue: str,
        policy: Policy,
        formats: TableFormats | None = None,
        *,
        begins_ms: int | None = None,
    ) -> None:
        """`begins_ms`: decider and queue go by a clock that begins then, and that `pass_time` turns."""
        self.redis = RedisServer(appendfsync="everysec").start()
        self._loop = asyncio.new_event_loop()
        self._client = connect_decider(self.redis.url)
        library = None if begins_ms is None else library_with_test_clock()
        self._clock = None if begins_ms is None else TestClock(self.redis.client(), queue, begins_ms)
        self.queue = AsyncQueueExecutor(self._client, queue, library=library)
        opened = formats or table_formats(StorageAccess(ReadMeter()))
        self.tracker = TableTracker(self.queue, opened.open, self.now_ms, Alone(PolicyDefaults(policy)))
        beating = SyncQueueExecutor(connect_actor(self.redis.url), queue, library=library)
        self._heartbeat = Heartbeat(beating, "bench", LeaseTimes())
        self._heartbeat.start()
        actor = ActorContext("bench", self._heartbeat, threading.Event())
        executor = SyncQueueExecutor(connect_actor(self.redis.url), queue, library=library)
        self.worker = Worker(EngineSet([engine]), executor, actor, WorkerSettings())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run what the decider does."""
        return self._loop.run_until_complete(work)

    def pass_time(self, by_ms: int) -> None:
        """Turn the clock."""
        if self._clock is not None:
            self._clock.advance(by_ms)

    def now_ms(self) -> int:
        """Return the time that the decider goes by."""
        return time.time_ns() // 1_000_000 if self._clock is None else self._clock.now_ms

    def close(self) -> None:
        """End the heartbeat, the connections and the server."""
        self._heartbeat.close()
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()
        self.redis.close()
