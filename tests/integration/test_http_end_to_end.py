"""Events in, decisions and jobs out, over real HTTP with a real Redis and tables that `deltalake` wrote."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis as redis_library

from actor.queue_executor import SyncQueueExecutor, connect
from shared.queue import commands, keys
from shared.queue.model import RunResult
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.recomputing import contradictions, recompute

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


def test_every_decision_can_be_recomputed_from_its_own_numbers(decider: LiveDecider, lake: Path) -> None:
    table = WrittenTable(lake / "orders", seed=2)
    name = decider.register(lake / "orders")
    table.append(12)
    decider.sweep()
    found = decider.run(decider.services.tables.registry.find(name))
    assert found is not None
    records = decider.run(decider.services.tables.ledgers.newest(found.id, limit=500))
    assert len(records) >= 12
    assert [recompute(record) for record in records] == [record.verdict for record in records]
    assert not any(contradictions(record) for record in records)


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


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_dropped_doubled_and_shuffled_events_change_nothing_after_one_sweep(
    decider: LiveDecider, lake: Path, seed: int
) -> None:
    chaos = random.Random(seed)
    table = WrittenTable(lake / "orders", seed=seed)
    decider.post("/v1/events", table.event(0))
    events: list[int] = []
    for _ in range(25):
        table.append()
        events += [table.version] * chaos.choice((0, 0, 0, 1, 1, 1, 1, 2, 2, 3))
        if chaos.random() < 0.2:
            table.delete(chaos.choice(table.days))
            events.append(table.version)
        chaos.shuffle(events)
        while events and chaos.random() < 0.7:
            decider.post("/v1/events", table.event(events.pop()))
    for version in events:
        decider.post("/v1/events", table.event(version))
    decider.sweep()
    name = only_table(decider)
    status = decider.get(f"/v1/tables/{name}")
    assert status["state"]["version"] == table.version
    assert decider.partitions(name) == table.count_files()
    assert status["state"]["rebuilds"] == 0
    assert len(decider.get("/v1/tables")["tables"]) == 1


def test_a_forged_event_costs_at_most_a_look(decider: LiveDecider, lake: Path) -> None:
    table = WrittenTable(lake / "orders")
    name = decider.register(lake / "orders")
    before = decider.partitions(name)
    answer = decider.post("/v1/events", table.event(10**15))
    assert answer.json()["accepted"] == 1
    decider.drain()
    assert decider.partitions(name) == before
    assert decider.get(f"/v1/tables/{name}")["state"]["version"] == table.version


def test_events_of_strangers_are_counted_and_refused(decider: LiveDecider, tmp_path: Path) -> None:
    WrittenTable(tmp_path / "outside" / "orders")
    answer = decider.post("/v1/events", [{"table": str(tmp_path / "outside" / "orders")}, {"table": "no.such"}])
    expected = [{"reason": "outside_allowed_roots", "count": 1}, {"reason": "unknown_table", "count": 1}]
    assert answer.json() == {"accepted": 0, "ignored": expected}
    assert decider.get("/v1/tables")["tables"] == []


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


def test_two_deciders_on_one_redis_and_one_table_double_nothing(redis_url: str, lake: Path) -> None:
    settings = decider_settings(redis_url, roots=(lake.as_uri(),), buckets={"lake": lake.as_uri()})
    with LiveDecider(settings) as first, LiveDecider(settings) as second:
        pair = [first, second]
        table = WrittenTable(lake / "orders", seed=7)
        for _ in range(20):
            for decider in pair:
                decider.post("/v1/events", table.event(table.version))
            table.append()
        for decider in pair:
            decider.post("/v1/events", table.event(table.version))
        for decider in pair:
            decider.drain()
        pair[0].sweep()
        name = only_table(pair[0])
        assert pair[0].partitions(name) == pair[1].partitions(name) == table.count_files()
        status = pair[0].get(f"/v1/tables/{name}")
        assert status["state"]["version"] == table.version == 20
        first_sight = status["counters"]["tables_initialized"]
        assert first_sight == 1
        assert status["counters"]["commits"] <= 20
        decisions = pair[1].get(f"/v1/tables/{name}/decisions", limit=500)["decisions"]
        seen = [(one["version"], one["partition_key"]) for one in decisions]
        assert len(seen) == len(set(seen))
        jobs = pair[1].get("/v1/jobs", table=name)["jobs"]
        assert len({job["partition_key"] for job in jobs}) == len(jobs)


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
        stopping = decider.client.delete(f"/v1/jobs/{job['id']}")
        assert stopping.json()["outcome"] == "stopping"
        queue.run(
            commands.finish(
                "default",
                worker="w1",
                nonce="n2",
                id=claim.id,
                token=claim.token,
                run_result=RunResult.DONE,
                cost_bytes=10,
                seen_version=claim.version,
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
