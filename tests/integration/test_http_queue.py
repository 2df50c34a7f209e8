"""The queue over REST and on the command line, against a live decider and a real Redis."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from actor.presence import ActorInfo, Presence
from actor.queue_executor import SyncQueueExecutor, connect
from decider.background import queue_upkeep
from decider.store.queue.backlog import read_backlog
from shared.paths.locations import deltalake_location, table_id
from shared.queue import admin_commands, commands, keys
from shared.queue.admin_commands import SlotQuota
from shared.queue.model import ALONE, Band, Claim, Debounce, FinishOutcome, JobKey, JobRequest, RunResult, Scope, Share
from shared.queue.settings import QueueSettings
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
    assert [one["partition_label"] for one in shown["next"]] == ["c", "a", "b"], "two jobs of a table are told apart"
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


@pytest.fixture
def decider(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveDecider]:
    """A decider that searches for slots all the time."""
    monkeypatch.setattr(queue_upkeep, "SLOTS_EVERY_S", 0.02)
    with LiveDecider(decider_settings(redis_url)) as live:
        yield live


def announce(queue: SyncQueueExecutor, slots: int) -> None:
    about = ActorInfo(slots=slots, started_ms=1, host="h", versions={})
    Presence(queue, "a-1", about, ttl_ms=60_000).announce([], busy_slots=0)


def request(number: int) -> JobRequest:
    return JobRequest(JobKey("orders-1", str(number), "compact"), "sales", Band.NORMAL, 5, 1 << 20, 1)


def claimed_of_quota(queue: SyncQueueExecutor, nonce: str, slots: int = 1) -> tuple[Claim, ...]:
    return queue.run(commands.claim(QUEUE, worker="w", nonce=nonce, slots=slots, lease_ms=60_000))


def test_the_decider_tells_the_slots_and_leaves_settings_and_a_newer_schema_alone(
    decider: LiveDecider, queue: SyncQueueExecutor
) -> None:
    stated = {b"schema": b"3", b"aging_ms": b"5000", b"strict_in_row": b"3"}
    queue.redis.hset(keys.config(QUEUE), mapping=stated)
    for slots in (4, 7):
        announce(queue, slots)
        until("the slots are known", lambda slots=slots: decider.get("/v1/queue")["slots"] == slots)
    assert queue.redis.hgetall(keys.config(QUEUE)) == stated | {b"slots": b"7"}


@pytest.mark.parametrize(("level", "name"), [(Scope.TABLE, "orders-1"), (Scope.TENANT, "sales")])
def test_a_quota_that_grows_lets_in_at_once_what_it_held_back(
    decider: LiveDecider, queue: SyncQueueExecutor, level: Scope, name: str
) -> None:
    """No run has ended and no audit has come: the slots alone have changed."""
    announce(queue, 2)
    until("the slots are known", lambda: decider.get("/v1/queue")["slots"] == 2)
    queue.run(admin_commands.set_limit(QUEUE, level, name, SlotQuota(50)))
    for number in range(12):
        queue.run(commands.enqueue(QUEUE, request(number)))
    assert len(claimed_of_quota(queue, "before", slots=8)) == 1
    assert claimed_of_quota(queue, "still", slots=8) == ()
    announce(queue, 16)
    nonces = iter(range(1_000))
    served: list[Claim] = []
    until(
        "the rest of its share is served",
        lambda: served.extend(claimed_of_quota(queue, f"n{next(nonces)}", 8)) or served,
    )
    assert len(served) == 7


def shown(decider: LiveDecider) -> dict[str, int]:
    return {one["name"]: one["value"] for one in decider.get("/v1/queue/settings")["settings"]}


@pytest.mark.parametrize("is_supervised", [False, True])
def test_actors_are_scaled_by_a_setting_where_something_obeys_it(redis_url: str, is_supervised: bool) -> None:
    with LiveDecider(decider_settings(redis_url, is_supervised=is_supervised)) as live:
        answer = live.client.patch("/v1/queue/settings", json={"actors": 3})
        wanted = live.get("/v1/groups")["groups"][0]["wanted_actors"]
    if is_supervised:
        assert (answer.status_code, wanted) == (200, 3)
    else:
        assert (answer.status_code, wanted) == (409, None)
        assert "KEDA" in answer.json()["detail"]


def test_settings_are_shown_and_changed_while_the_queue_runs(decider: LiveDecider, queue: SyncQueueExecutor) -> None:
    """What is not said stays, and the scripts follow with the next call: here after one failure instead of eight."""
    assert shown(decider) == asdict(QueueSettings())
    answer = decider.client.patch("/v1/queue/settings", json={"max_attempts": 1, "aging_ms": None})
    assert answer.status_code == 200
    assert answer.json() == decider.get("/v1/queue/settings")
    assert shown(decider) == asdict(QueueSettings(max_attempts=1))
    queue.run(commands.enqueue(QUEUE, request(1)))
    (claim,) = claimed_of_quota(queue, "n1")
    how: Any = {"worker": "w", "nonce": "f", "cost_bytes": 1, "seen_version": 1, "run_result": RunResult.FAIL}
    end = queue.run(commands.finish(QUEUE, id=claim.id, token=claim.token, **how))
    assert end.outcome is FinishOutcome.QUARANTINED


def test_the_command_line_takes_times_as_people_write_them(decider: LiveDecider) -> None:
    def stated(*arguments: str) -> str:
        result = decider.command("queue", *arguments)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    assert re.search(r"^aging +2h +time +2h +0s +1d ", stated("settings"), re.MULTILINE)
    stated("set", "aging=1.5min", "backoff_base_ms=250ms", "strict-in-row=3")
    assert shown(decider) == asdict(QueueSettings(aging_ms=90_000, backoff_base_ms=250, strict_in_row=3))
    assert re.search(r"^backoff-base +250ms ", stated("settings"), re.MULTILINE)


def test_what_is_shown_of_a_queue_that_was_written_by_hand_is_what_counts(
    decider: LiveDecider, queue: SyncQueueExecutor
) -> None:
    queue.redis.hset(keys.config(QUEUE), mapping={"aging_ms": "soon", "strict_in_row": "4"})
    assert shown(decider) == asdict(QueueSettings(strict_in_row=4))


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
