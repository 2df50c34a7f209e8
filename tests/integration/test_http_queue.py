"""The queue over REST and on the command line, against a live decider and a real Redis."""

from typing import Any

import pytest

from actor.presence import ActorInfo, Presence
from actor.queue_executor import SyncQueueExecutor
from shared.queue import commands, keys
from shared.queue.model import ALONE, Band, Claim, JobKey, JobRequest, RunResult, Share
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.queue_bench import end_of
from tests.support.waiting import until

pytestmark = pytest.mark.redis

QUEUE = "default"


def spec(partition: str, band: Band = Band.NORMAL) -> JobRequest:
    return JobRequest(JobKey("orders-1", partition, "compact"), "sales", band, 5, 1 << 20, 1)


def claimed(queue: SyncQueueExecutor, nonce: str, share: Share = ALONE) -> tuple[Claim, ...]:
    return queue.run(commands.claim(QUEUE, worker="w", nonce=nonce, slots=1, lease_ms=60_000, share=share))


def test_the_queue_tells_who_is_next_and_why_and_that_is_who_is_claimed(
    decider: LiveDecider, queue: SyncQueueExecutor
) -> None:
    for partition, band in (("a", Band.NORMAL), ("b", Band.LOW), ("c", Band.URGENT)):
        queue.run(commands.enqueue(QUEUE, spec(partition, band)))
    shown = decider.get("/v1/queue")
    assert shown["depth"]["queued"] == 3
    assert shown["bands"] == {"normal": 1, "low": 1, "urgent": 1}
    assert (shown["tenants"], shown["tables"]) == ({"sales": 3}, {"orders-1": 3})
    assert shown["next"][0]["reason"] == "strict_priority"
    # A list of very many tables is left out on request; everything else stays.
    short = decider.get("/v1/queue", by_table=False)
    assert (short["tables"], short["oldest_waits_s"]["tables"]) == ({}, {})
    assert [short[name] for name in ("tenants", "bands", "next")] == [
        shown[name] for name in ("tenants", "bands", "next")
    ]
    claimed_ids = [claimed(queue, f"n{number}")[0].id for number in range(3)]
    assert [one["id"] for one in shown["next"]] == claimed_ids


def test_the_oldest_wait_is_reported_by_band_tenant_and_table(decider: LiveDecider, queue: SyncQueueExecutor) -> None:
    """The first to arrive is the oldest, wherever the order of service puts it."""
    for partition, band in (("a", Band.LOW), ("b", Band.LOW), ("c", Band.URGENT)):
        queue.run(commands.enqueue(QUEUE, spec(partition, band)))
        job = keys.job(QUEUE, spec(partition).id)
        queue.redis.zincrby(
            keys.queued(QUEUE), {"a": -90_000, "b": -30_000, "c": -5_000}[partition], job.partition("j:")[2]
        )
    oldest = decider.get("/v1/queue")["oldest_waits_s"]
    assert oldest["tenants"]["sales"] == oldest["tables"]["orders-1"] == oldest["bands"]["low"] >= 90
    assert 5 <= oldest["bands"]["urgent"] < 30


@pytest.mark.parametrize("partitions", ["a", "abc"])
def test_occupancy_is_the_share_of_all_slots_that_runs_had(
    redis_url: str, queue: SyncQueueExecutor, partitions: str
) -> None:
    """Half an hour on one of four slots is an eighth of the last hour, whether one job holds the slot or several."""
    about = ActorInfo(slots=4, started_ms=1, host="h", versions={})
    Presence(queue, "a-1", about, ttl_ms=60_000).announce([], busy_slots=0)
    with LiveDecider(decider_settings(redis_url)) as live:
        until("the slots are known", lambda: live.get("/v1/queue")["slots"] == 4)
        for partition in partitions:
            queue.run(commands.enqueue(QUEUE, spec(partition)))
        claims = claimed(queue, "n1", Share(len(partitions), 1 << 30))
        assert len(claims) == len(partitions)
        now_s, _ = queue.redis.time()
        for claim in claims:
            queue.redis.hset(keys.job(QUEUE, claim.id), "started", (now_s - 1_800) * 1_000)
        shown = live.get("/v1/queue")
        assert shown["occupancy"]["tenants"] == {"sales": pytest.approx(0.125, abs=0.01)}
        for claim in claims:
            how: Any = {"worker": "w", "nonce": f"f{claim.token}", "cost_bytes": 1, "seen_version": 1}
            queue.run(commands.finish(QUEUE, id=claim.id, token=claim.token, run_result=RunResult.DONE, **how))
            shown = live.get("/v1/queue")
            assert shown["occupancy"]["tables"] == {"orders-1": pytest.approx(0.125, abs=0.01)}
        assert shown["occupancy_window_s"] == 3_600


def test_weights_limits_and_pauses_hold_and_are_shown(decider: LiveDecider, queue: SyncQueueExecutor) -> None:
    queue.run(commands.enqueue(QUEUE, spec("a")))
    assert decider.post("/v1/queue/pause", {"scope": "tenant", "name": "sales"}).status_code == 200
    assert claimed(queue, "n1") == ()
    assert decider.get("/v1/queue")["settings"] == {"limit:tenant|sales": "!"}
    assert decider.post("/v1/queue/resume", {"scope": "tenant", "name": "sales"}).status_code == 200
    body = {"scope": "table", "name": "orders-1", "weight": 2, "limit": 1}
    stated = decider.client.put("/v1/queue/weights", json=body).json()["message"]
    assert stated == "Table orders-1: weight 2, at most 1 concurrent job."
    assert len(claimed(queue, "n2")) == 1
    assert decider.get("/v1/queue")["settings"] == {"weight:table|orders-1": "2", "limit:table|orders-1": "1"}


@pytest.mark.parametrize(
    "body", [{"scope": "band", "name": "7"}, {"scope": "queue", "name": "x"}, {"scope": "tenant", "name": "a b"}, {}]
)
def test_an_invalid_pause_is_refused(decider: LiveDecider, body: dict[str, str]) -> None:
    assert decider.post("/v1/queue/pause", body).status_code == 422


def test_a_failed_job_is_promoted_or_requeued_and_an_unknown_one_is_not_found(
    decider: LiveDecider, queue: SyncQueueExecutor
) -> None:
    job = spec("a")
    queue.run(commands.enqueue(QUEUE, job))
    (claim,) = claimed(queue, "n1")
    queue.run(end_of(claim, RunResult.FAIL))
    assert decider.post(f"/v1/jobs/{job.id}/requeue", {}).json()["state"] == "queued"
    assert decider.get(f"/v1/jobs/{job.id}")["job"]["attempts"] == 0
    assert decider.post(f"/v1/jobs/{job.id}/expedite", {}).json()["state"] == "queued"
    assert decider.get(f"/v1/jobs/{job.id}")["job"]["band"] == "urgent"
    assert decider.post("/v1/jobs/nothing/expedite", {}).status_code == 404


def test_an_audit_repairs_a_lost_index(decider: LiveDecider, queue: SyncQueueExecutor) -> None:
    queue.run(commands.enqueue(QUEUE, spec("a")))
    assert decider.post("/v1/queue/audit", {}).json()["repaired"] == 0
    queue.redis.delete(keys.ready(QUEUE, keys.ROOT))
    assert claimed(queue, "n1") == ()
    assert decider.post("/v1/queue/audit", {}).json()["repaired"] == 1
    assert len(claimed(queue, "n2")) == 1
