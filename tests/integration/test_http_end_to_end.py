"""Events in, decisions and jobs out, over real HTTP with a real Redis and tables that `deltalake` wrote."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis as redis_library

from actor.queue_executor import SyncQueueExecutor, connect
from shared.queue import commands, keys
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.queue_bench import end_of

pytestmark = pytest.mark.redis


@pytest.fixture
def decider(redis_url: str, lake: Path) -> Iterator[LiveDecider]:
    """A decider that takes tables below the lake, which events call the bucket `lake`."""
    settings = decider_settings(redis_url, roots=(lake.as_uri(),), buckets={"lake": lake.as_uri()})
    with LiveDecider(settings) as live:
        yield live


def only_table(decider: LiveDecider) -> str:
    tables = decider.get("/v1/tables")["tables"]
    assert len(tables) == 1
    return str(tables[0]["name"])


def test_an_event_registers_a_table_below_a_root_and_its_state_equals_a_count_of_all_files(
    decider: LiveDecider, lake: Path
) -> None:
    table = WrittenTable(lake / "orders")
    table.append(9)
    answer = decider.post("/v1/events", table.event(table.version))
    assert (answer.status_code, answer.json()) == (202, {"accepted": 1, "ignored": []})
    decider.drain()
    name = only_table(decider)
    assert decider.partitions(name) == table.count_files()
    status = decider.get(f"/v1/tables/{name}")
    assert status["state"]["version"] == table.version
    assert status["layout"]["files"] == sum(state.files for state in table.count_files().values())
    assert sum(level["files"] for level in status["layout"]["levels"]) == status["layout"]["files"]
    assert sum(level["bytes"] for level in status["layout"]["levels"]) == status["layout"]["bytes"]
    assert status["refusal"] is None


def test_commits_folded_one_by_one_give_the_rebuild_and_a_job_that_explains_itself(
    decider: LiveDecider, lake: Path
) -> None:
    table = WrittenTable(lake / "orders", seed=1)
    decider.post("/v1/events", table.event(0))
    decider.drain()
    for _ in range(14):
        table.append()
        decider.post("/v1/events", table.event(table.version))
        decider.drain()
    name = only_table(decider)
    assert decider.partitions(name) == table.count_files()
    decisions = decider.get(f"/v1/tables/{name}/decisions", limit=500)["decisions"]
    assert {one["decision"] for one in decisions} == {"skip", "enqueue"}
    assert all(one["reason_text"] in one["message"] for one in decisions)
    jobs = decider.get("/v1/jobs", table=name)["jobs"]
    asked = {one["partition_key"] for one in decisions if one["decision"] == "enqueue"}
    assert {job["partition_key"] for job in jobs} == asked
    assert all(job["state"] == "queued" and job["reason"] == "eligible" for job in jobs)
    detail = decider.get(f"/v1/jobs/{jobs[0]['id']}")
    assert detail["timeline"][0]["event"] == "enqueued"
    assert detail["job"]["predicted"]["files_removed"] > 0
    status = decider.get(f"/v1/tables/{name}")
    assert status["last_job"]["id"] in {job["id"] for job in jobs}
    assert status["counters"]["commits"] == 14


def test_a_record_of_a_newer_release_is_shown_as_unreadable_and_hides_nothing(decider: LiveDecider, lake: Path) -> None:
    table = WrittenTable(lake / "orders", seed=2)
    name = decider.register(lake / "orders")
    table.append(1)
    decider.sweep()
    found = decider.run(decider.services.tables.registry.find(name))
    assert found is not None
    stream = keys.ledger("default", found.id)
    before = decider.get(f"/v1/tables/{name}/decisions")["decisions"]
    raw = json.loads(decider.run(decider.services.queue.executor.redis.xrevrange(stream, count=1))[0][1][b"record"])
    odd = json.dumps(raw | {"reason": "full_moon"})
    decider.run(decider.services.queue.executor.redis.xadd(stream, {"record": odd, "out": ""}))
    newest, *others = decider.get(f"/v1/tables/{name}/decisions")["decisions"]
    assert others == before
    assert (newest["decision"], newest["record"], newest["files"]) == ("unreadable", odd, None)
    assert (newest["version"], newest["partition_key"]) == (raw["v"], raw["partition"])
    assert "cannot read" in newest["message"]
    assert decider.get(f"/v1/tables/{name}")["last_decision"] == newest


def test_a_forged_event_costs_at_most_a_look(decider: LiveDecider, lake: Path) -> None:
    table = WrittenTable(lake / "orders")
    name = decider.register(lake / "orders")
    before = decider.partitions(name)
    answer = decider.post("/v1/events", table.event(10**15))
    assert answer.json()["accepted"] == 1
    decider.drain()
    assert decider.partitions(name) == before
    assert decider.get(f"/v1/tables/{name}")["state"]["version"] == table.version


def test_an_idle_table_costs_no_read_between_sweeps_and_one_in_each(decider: LiveDecider, lake: Path) -> None:
    names = []
    for number in range(5):
        WrittenTable(lake / f"t{number}", seed=number)
        names.append(decider.register(lake / f"t{number}"))
    decider.sweep()
    before = decider.reads()
    for name in names:
        decider.get(f"/v1/tables/{name}")
        decider.get(f"/v1/tables/{name}/partitions")
        decider.get(f"/v1/tables/{name}/decisions")
    decider.drain()
    assert decider.reads() == before
    decider.sweep()
    assert decider.reads() == before + len(names)
    exported = decider.client.get("/metrics").text
    total = sum(
        float(line.rpartition(" ")[2])
        for line in exported.splitlines()
        if line.startswith("lakewright_object_store_requests_total{")
    )
    assert total == decider.reads()


def test_a_job_runs_down_to_the_history_and_its_story_is_reported(
    decider: LiveDecider, lake: Path, redis_url: str
) -> None:
    table = WrittenTable(lake / "orders", seed=3, days=("2026-01-01",))
    table.append(11)
    name = decider.register(lake / "orders")
    (job,) = decider.get("/v1/jobs", table=name)["jobs"]
    with connect(redis_url) as client:
        queue = SyncQueueExecutor(client, "default")
        (claim,) = queue.run(commands.claim("default", worker="w1", nonce="n1", slots=1, lease_ms=60_000))
        assert claim.id == job["id"]
        running = decider.get(f"/v1/jobs/{job['id']}")
        assert (running["job"]["state"], running["job"]["actor"]) == ("leased", "w1")
        answer = decider.post(f"/v1/tables/{name}/optimize", {})
        assert (answer.status_code, answer.json()["ignored"]) == (202, "already_running")
        assert answer.json()["running_jobs"] == [job["id"]]
        stopping = decider.client.delete(f"/v1/jobs/{job['id']}")
        assert stopping.json()["outcome"] == "stopping"
        queue.run(
            end_of(
                claim,
                worker="w1",
                cost_bytes=10,
                result='{"table":"orders","predicted":{"files_removed":11},"measured":{"files_removed":11,"bytes":10}}',
                counters={"jobs_run": 1, "files_replaced": 12, "files_written": 1, "bytes_replaced": 10},
            )
        )
    story = decider.get(f"/v1/jobs/{job['id']}")
    assert (story["job"]["state"], story["job"]["result"]) == ("finished", "done")
    assert story["job"]["measured"] == {"files_removed": 11, "bytes": 10}
    assert [one["event"] for one in story["timeline"]] == ["enqueued", "started", "done"]
    (finished,) = decider.get("/v1/jobs", state="finished")["jobs"]
    assert finished["id"] == job["id"]
    assert decider.get("/v1/status")["savings"]["files_removed"] == 11


def test_deleting_a_table_leaves_nothing_of_it_behind(decider: LiveDecider, lake: Path, redis_url: str) -> None:
    with redis_library.Redis.from_url(redis_url) as client:
        before = set(client.keys())
        table = WrittenTable(lake / "orders", seed=4)
        table.append(12)
        name = decider.register(lake / "orders", "sales.orders")
        table.append(2)
        decider.sweep()
        assert decider.client.delete(f"/v1/tables/{name}").status_code == 204
        assert decider.client.get(f"/v1/tables/{name}").status_code == 404
        assert decider.get("/v1/jobs")["jobs"] == []
        about_the_table = {
            key
            for key in set(client.keys()) - before
            if b"orders" in key or key.startswith((b"lw:tables", b"lw:names"))
        }
        assert about_the_table == set()
        assert decider.client.delete(f"/v1/tables/{name}").status_code == httpx.codes.NOT_FOUND
