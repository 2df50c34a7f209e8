"""History outlives Redis: what the API tells of our rewrites comes from the table's log, and from nowhere else."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat, LeaseTimes
from actor.queue_executor import SyncQueueExecutor, connect
from actor.worker import ActorContext, Worker, WorkerSettings
from tests.support.delta_lab import DeltaLab
from tests.support.live_decider import POLICY, LiveDecider, WrittenTable, decider_settings
from tests.support.redis_server import RedisServer

pytestmark = [pytest.mark.spark, pytest.mark.redis]


@pytest.fixture
def decider(redis_url: str) -> Iterator[LiveDecider]:
    with LiveDecider(decider_settings(redis_url)) as live:
        yield live


def work_off(lab: DeltaLab, redis_url: str) -> None:
    """Run jobs as an actor does until none is ready."""
    heartbeat = Heartbeat(SyncQueueExecutor(connect(redis_url), "default"), "a-1", LeaseTimes())
    heartbeat.start()
    worker = Worker(
        EngineSet([lab.engine]),
        SyncQueueExecutor(connect(redis_url), "default"),
        ActorContext("a-1", heartbeat, threading.Event()),
        WorkerSettings(),
    )
    try:
        while worker.run_next():
            pass
    finally:
        heartbeat.close()


def test_history_rebuilt_after_flushall_equals_the_history_before(
    lab: DeltaLab, decider: LiveDecider, redis_server: RedisServer, redis_url: str
) -> None:
    table = WrittenTable(lab.directory / "orders", days=("2026-01-01", "2026-01-02"))
    for day in table.days:
        table.append(9, days=(day,), rows=100)
    name = decider.register(table.path, "orders")
    work_off(lab, redis_url)

    def history() -> list[dict[str, Any]]:
        with_files = decider.get(f"/v1/tables/{name}/optimizations", files=True)
        assert with_files["before"] is None
        return list(with_files["optimizations"])

    before = history()
    with redis_server.client() as client:
        client.flushall()
    decider.register(table.path, "orders")
    assert history() == before

    (event,) = before  # The jobs of both partitions share one commit, and its files name the partitions.
    assert (event["partition_label"], len(event["other_jobs"])) == (None, 1)
    assert {path.split("/")[0] for path in event["output"]["files"]} == {"dt=2026-01-01", "dt=2026-01-02"}
    shown = {
        int(row.version): row.operationMetrics
        for row in lab.sql(f"DESCRIBE HISTORY delta.`{table.path}`")
        if row.operation == "OPTIMIZE"
    }
    assert sorted(shown) == sorted(event["version"] for event in before)
    for event in before:
        metrics = shown[event["version"]]
        for side, word in (("input", "Removed"), ("output", "Added")):
            assert event[side]["num_files"] == int(metrics[f"num{word}Files"]) == len(event[side]["files"])
            assert event[side]["bytes"] == int(metrics[f"num{word}Bytes"])
            assert sum(event[side]["levels"]) == event[side]["num_files"]
        assert event["input"]["element_count"] == event["output"]["element_count"] > 0
        assert event["target_bytes"] == POLICY.target_bytes
        assert event["started_at"] <= event["finished_at"]
        assert event["process_time_ms"] >= 0
        assert event["entropy_removed_bytes2"] > 0
        assert event["write_id"].startswith(event["job"] + "/")
