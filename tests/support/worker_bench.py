"""A worker on a queue of its own with an engine in memory, which does what a table would and fails when asked to."""

import threading
from collections.abc import Callable
from dataclasses import replace

import redis

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat, LeaseTimes
from actor.queue_executor import SyncQueueExecutor, connect
from actor.worker import ActorContext, Worker, WorkerSettings
from shared.jobs.payload import JobPayload, PredictedCost
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from shared.policy.properties import policy_digest
from shared.queue import commands, queries
from shared.queue.model import ALONE, Band, JobKey, JobRequest, JobState, Share
from shared.table import PartitionKey
from tests.support.memory_engine import MemoryEngine
from tests.support.time_limits import scaled

POLICY = Policy(target_bytes=8 * MIB)
KEY = JobKey("t-1", "{}", "compact")
TIMES = LeaseTimes(lease_s=scaled(2.0), interval_s=0.2, margin_s=scaled(0.5), stop_grace_s=0.3)
"""A slot that waits for a core must not lose a lease by that."""

EIGHT = [100_000] * 8


def spec(version: int, partition: PartitionKey = WHOLE_TABLE) -> JobRequest:
    payload = JobPayload("memory://t", "t", POLICY, "eligible", PredictedCost(8, 7, 800_000), policy_digest({}))
    return JobRequest(replace(KEY, partition=partition), "default", Band.NORMAL, 5, 800_000, version, payload.encode())


class Bench:
    """A queue, and workers on it."""

    def __init__(self, url: str, engine: MemoryEngine) -> None:
        self.url = url
        self.engine = engine
        self.queue = SyncQueueExecutor(connect(url), "default")
        known = commands.ingest(
            "default", table="t-1", expected_version=-1, state_fields={"version": "0"}, partitions={}
        )
        self.queue.run(known)
        self.stopping = threading.Event()
        self._hearts: list[Heartbeat] = []

    def worker(
        self,
        name: str = "a-1",
        *,
        groups_per_commit: int = 8,
        share: Share = ALONE,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> Worker:
        beats = SyncQueueExecutor(connect(self.url), "default")
        heart = Heartbeat(beats, name, TIMES, cancel=self.engine.cancel, is_busy=is_busy)
        heart.start()
        self._hearts.append(heart)
        settings = WorkerSettings(idle_s=0.05, groups_per_commit=groups_per_commit, share=share)
        queue = SyncQueueExecutor(connect(self.url), "default")
        return Worker(EngineSet([self.engine]), queue, ActorContext(name, heart, self.stopping), settings)

    def enqueue(self, version: int, partition: PartitionKey = WHOLE_TABLE) -> None:
        self.queue.run(commands.enqueue("default", spec(version, partition)))

    def state(self, partition: PartitionKey = WHOLE_TABLE) -> JobState | None:
        view = self.queue.run(queries.job("default", spec(0, partition).id))
        return None if view is None else view.state

    def runs(self) -> list:
        return list(self.queue.run(queries.history("default")).runs)

    def close(self) -> None:
        for heart in self._hearts:
            heart.close()


def counters(bench: Bench) -> dict[str, int]:
    raw = redis.Redis.from_url(bench.url).hgetall("{lw:default}:count")
    return {name.decode(): int(value) for name, value in raw.items()}
