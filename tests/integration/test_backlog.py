"""The backlog that scalers read: what actors could run now, and what runs, on a real Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from actor.queue_executor import SyncQueueExecutor, connect
from decider.store.queue.backlog import read_backlog
from shared.paths.locations import deltalake_location, table_id
from shared.queue import commands, keys
from shared.queue.model import Band, Debounce, JobKey, JobRequest
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.queue_bench import end_of

pytestmark = pytest.mark.redis

QUEUE = "default"
MIB = 1 << 20


@pytest.fixture
def queue(redis_url: str) -> Iterator[SyncQueueExecutor]:
    client = connect(redis_url)
    yield SyncQueueExecutor(client, QUEUE)
    client.close()


def enqueue(queue: SyncQueueExecutor, partition: str, table: str = "orders-1", band: Band = Band.NORMAL) -> None:
    key = JobKey(table, partition, "compact")
    queue.run(commands.enqueue(QUEUE, JobRequest(key, "sales", band, 5, 50 * MIB, 1)))


def test_an_empty_queue_has_no_work(decider: LiveDecider) -> None:
    found = decider.get("/v1/backlog")
    assert (found["work_s"], found["jobs"]) == (0, 0)


def test_waiting_jobs_of_all_tables_count(decider: LiveDecider, queue: SyncQueueExecutor) -> None:
    for number in range(3):
        enqueue(queue, str(number))
    enqueue(queue, "0", "clicks-1", Band.URGENT)
    found = decider.get("/v1/backlog")
    assert found["jobs"] == 4
    assert found["work_s"] >= 4 * found["job_s"]


def test_jobs_of_the_archives_alone_wake_no_actor(redis_url: str, queue: SyncQueueExecutor, tmp_path: Path) -> None:
    """Each append to an archive leads to work on it: actors that were scaled to zero would start for nothing else."""
    archives = {"ledger": str(tmp_path / "ledger"), "rewrites": str(tmp_path / "rewrites")}
    with LiveDecider(decider_settings(redis_url, **archives)) as decider:
        for place in archives.values():
            enqueue(queue, "0", table_id(deltalake_location(place)))
        assert (decider.get("/v1/backlog")["work_s"], decider.get("/v1/backlog")["jobs"]) == (0, 0)
        enqueue(queue, "0")
        assert decider.get("/v1/backlog")["jobs"] == 3


def test_a_running_job_of_an_archive_keeps_its_actor(decider: LiveDecider, queue: SyncQueueExecutor) -> None:
    enqueue(queue, "0")
    queue.run(commands.claim(QUEUE, worker="w", nonce="a", slots=1, lease_ms=60_000))
    executor = decider.services.queue.executor
    assert decider.run(read_backlog(executor, {"orders-1"})).jobs


def test_paused_jobs_need_no_actor(decider: LiveDecider, queue: SyncQueueExecutor) -> None:
    enqueue(queue, "0")
    for scope, name in (("table", "orders-1"), ("tenant", "sales"), ("band", "2"), ("queue", "")):
        decider.post("/v1/queue/pause", {"scope": scope, "name": name}).raise_for_status()
        assert decider.get("/v1/backlog")["work_s"] == 0, scope
        decider.post("/v1/queue/resume", {"scope": scope, "name": name}).raise_for_status()
        assert decider.get("/v1/backlog")["work_s"] > 0, scope


def test_a_running_job_keeps_its_actor_until_it_ends(decider: LiveDecider, queue: SyncQueueExecutor) -> None:
    enqueue(queue, "0")
    (claim,) = queue.run(commands.claim(QUEUE, worker="w", nonce="a", slots=1, lease_ms=60_000))
    decider.post("/v1/queue/pause", {"scope": "queue", "name": ""}).raise_for_status()
    found = decider.get("/v1/backlog")
    assert (found["running"], found["jobs"]) == (1, 1)
    assert found["work_s"] > 0
    queue.run(end_of(claim, result="{}"))
    assert decider.get("/v1/backlog")["work_s"] == 0


def test_a_job_whose_delay_is_over_counts_although_no_actor_claims(
    decider: LiveDecider, queue: SyncQueueExecutor
) -> None:
    """A claim makes such jobs ready: without actors, none would ever be."""
    key = JobKey("orders-1", "later", "compact")
    queue.run(
        commands.enqueue(
            QUEUE, JobRequest(key, "sales", Band.NORMAL, 5, MIB, 1, debounce=Debounce(3_600_000, 3_600_000))
        )
    )
    assert decider.get("/v1/backlog")["work_s"] == 0
    with connect(decider.settings.redis_url) as client:
        client.zadd(keys.delayed(QUEUE), dict.fromkeys(client.zrange(keys.delayed(QUEUE), 0, -1), 1))
    assert decider.get("/v1/backlog")["work_s"] > 0
