"""A Redis that forgets, or takes no writes, is given nothing: calls are refused with the reason, and all recovers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from decider.store.redis.redis_health import RedisSafety
from services.cli.checks.finding import FindingLevel
from services.cli.checks.redis_server import check_redis
from shared.errors import RetryableError
from shared.queue import commands, keys
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.queue_calls import spec
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

pytestmark = pytest.mark.redis


def evict(_: RedisServer, client: Redis) -> None:
    client.config_set("maxmemory-policy", "allkeys-lru")


def keep(_: RedisServer, client: Redis) -> None:
    client.config_set("maxmemory-policy", "noeviction")


def fail_to_save(server: RedisServer, client: Redis) -> None:
    """Let the snapshot's place be taken by a folder, so that saving fails even for root, and writes are stopped."""
    (server.folder / "dump.rdb").mkdir()
    client.config_set("stop-writes-on-bgsave-error", "yes")
    client.config_set("save", "3600 1")
    client.bgsave()
    until("saving has failed", lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")


def save_again(server: RedisServer, client: Redis) -> None:
    (server.folder / "dump.rdb").rmdir()
    client.bgsave()
    until("saving works again", lambda: client.info("persistence")["rdb_last_bgsave_status"] == "ok")


def no_log(_: RedisServer, client: Redis) -> None:
    client.config_set("appendonly", "no")


def log_again(_: RedisServer, client: Redis) -> None:
    client.config_set("appendonly", "yes")


Change = Callable[[RedisServer, Redis], None]
TROUBLES = [
    pytest.param(evict, keep, "noeviction", id="it evicts"),
    pytest.param(fail_to_save, save_again, "MISCONF", id="it cannot save"),
    pytest.param(no_log, log_again, "append-only file is off", id="it keeps no log"),
]


@pytest.fixture
def decider(own_redis_server: RedisServer) -> Iterator[LiveDecider]:
    with LiveDecider(decider_settings(own_redis_server.url)) as live:
        yield live


def stored(client: Redis) -> dict[bytes, object]:
    """Everything that Redis holds, byte by byte."""
    samples = (b"lw:history", b"lw:newest-sample")  # taken meanwhile, and no harm if they are lost
    return {key: client.dump(key) for key in client.keys("*") if not key.startswith(samples)}


def is_ready(decider: LiveDecider) -> bool:
    return decider.client.get("/readyz").status_code == 200


@pytest.mark.parametrize(("break_it", "repair_it", "reason"), TROUBLES)
def test_an_unreliable_redis_is_given_nothing_with_the_reason_and_all_recovers(
    decider: LiveDecider,
    own_redis_server: RedisServer,
    tmp_path: Path,
    break_it: Change,
    repair_it: Change,
    reason: str,
) -> None:
    known, new = WrittenTable(tmp_path / "known"), WrittenTable(tmp_path / "new")
    decider.register(known.path, "known")
    known.append(3)
    with own_redis_server.client() as client:
        break_it(own_redis_server, client)
        until("the probe notices", lambda: not is_ready(decider))
        assert reason in decider.client.get("/readyz").json()["detail"]
        before = stored(client)
        for method, path, body in (
            ("POST", "/v1/events", {"table": "known", "version": known.version}),
            ("POST", "/v1/events/lakewright", {"table": "known", "version": known.version}),
            ("POST", "/v1/tables", {"location": str(new.path), "name": "new"}),
            ("PATCH", "/v1/tables/known", {"name": "other"}),
            ("POST", "/v1/tables/known/optimize", {}),
            ("PATCH", "/v1/queue/settings", {"aging_ms": 120_000}),
            ("PUT", "/v1/queue/weights", {"scope": "tenant", "name": "x", "weight": 3}),
            ("DELETE", "/v1/tables/known", None),
        ):
            answer = decider.client.request(method, path, json=body)
            assert answer.status_code == 503, (method, path, answer.text)
            assert int(answer.headers["retry-after"]) > 0
            assert reason in answer.json()["detail"], (method, path)
        decider.sweep()
        assert stored(client) == before, "something was half taken"
        assert decider.get("/v1/tables")["tables"][0]["name"] == "known"
        repair_it(own_redis_server, client)
    until("the decider is ready again", lambda: is_ready(decider))
    taken = decider.post("/v1/events", {"table": "known", "version": known.version})
    assert (taken.status_code, taken.json()["accepted"]) == (202, 1)
    until("the table was followed", lambda: decider.get("/v1/tables/known")["state"]["version"] == known.version)
    decider.register(new.path, "new")


@pytest.mark.parametrize(("break_it", "repair_it", "reason"), TROUBLES)
def test_the_queue_takes_no_new_job_and_no_table_while_redis_is_unreliable(
    decider: LiveDecider,
    own_redis_server: RedisServer,
    tmp_path: Path,
    break_it: Change,
    repair_it: Change,
    reason: str,
) -> None:
    """Also where no call requests it: the sweep, discovery and timers write by themselves."""
    decider.services.operations.safety.max_age_s = 0.0
    table = WrittenTable(tmp_path / "found")
    with own_redis_server.client() as client:
        break_it(own_redis_server, client)
        before = stored(client)
        with pytest.raises(RetryableError, match=reason):
            decider.run(decider.services.queue.executor.run(commands.enqueue("default", spec())))
        with pytest.raises(RetryableError, match=reason):
            decider.run(decider.services.requests.resolver.register_if_new(table.path.as_uri()))
        assert stored(client) == before
        repair_it(own_redis_server, client)
    decider.run(decider.services.queue.executor.run(commands.enqueue("default", spec())))
    assert decider.run(decider.services.requests.resolver.register_if_new(table.path.as_uri()))


SHARED = sorted({kind: (key, kind) for key, kind in keys.shared_types("default").items()}.values())
"""One of each type: the check is one loop over all of them."""


@pytest.mark.parametrize(("key", "kind"), SHARED, ids=[key for key, _ in SHARED])
def test_a_shared_key_of_another_type_is_named_everywhere_and_nothing_is_taken_until_it_is_gone(
    decider: LiveDecider, own_redis_server: RedisServer, tmp_path: Path, key: str, kind: str
) -> None:
    table = WrittenTable(tmp_path / "orders")
    with own_redis_server.client() as client:
        client.delete(key)
        client.hset(key, "another", "program") if kind != "hash" else client.set(key, "another program")
        until("it is not ready", lambda: decider.client.get("/readyz").status_code == 503)
        assert f"the key {key} is a" in decider.client.get("/readyz").json()["detail"]
        refused = decider.post("/v1/tables", {"location": str(table.path)})
        assert (refused.status_code, refused.json()["title"]) == (503, "Service unavailable")
        assert f"RENAME {key} moved-away" in refused.json()["detail"]
        client.rename(key, "moved-away")
    until("it is ready", lambda: decider.client.get("/readyz").status_code == 200)


TABLE_KEYS = sorted(keys.table_types("default", "TABLE").items())


@pytest.mark.parametrize(("key", "kind"), TABLE_KEYS, ids=[key for key, _ in TABLE_KEYS])
def test_a_tables_key_of_another_type_is_named_and_neither_the_table_nor_others_are_refused_for_it(
    decider: LiveDecider, own_redis_server: RedisServer, tmp_path: Path, key: str, kind: str
) -> None:
    table, other = WrittenTable(tmp_path / "orders"), WrittenTable(tmp_path / "others")
    name, others = decider.register(table.path), decider.register(other.path)
    found = decider.run(decider.services.tables.registry.find(name))
    assert found is not None
    key = key.replace("TABLE", found.id)
    with own_redis_server.client() as client:
        client.delete(key)
        client.hset(key, "another", "program") if kind != "hash" else client.set(key, "another program")
        table.append(commits=2)
        other.append(commits=2)
        for one in (table, other):
            decider.post("/v1/events", {"table": str(one.path)})

        def seen() -> dict[str, Any]:
            return {one["name"]: one for one in decider.get("/v1/tables")["tables"]}

        until("the other is followed", lambda: seen()[others]["version"] == other.version)
        until("its own is known", lambda: seen()[name]["error"] or seen()[name]["version"] == table.version)
        shown = seen()[name]
        assert shown["refusal"] is None
        assert shown["error"] == "" or f"the key {key} is a" in shown["error"]
        client.rename(key, "moved-away")
    decider.sweep()
    assert (seen()[name]["version"], seen()[name]["error"]) == (table.version, "")


def test_a_reliable_redis_is_asked_once_a_second_at_most(decider: LiveDecider, own_redis_server: RedisServer) -> None:
    async def many() -> None:
        for _ in range(200):
            await safety.require_safe()

    safety = RedisSafety(decider.services.operations.redis, clock_s=lambda: 5.0)
    with own_redis_server.client() as client:
        before = client.info("commandstats")["cmdstat_info"]["calls"]
        decider.run(many())
        after = client.info("commandstats")["cmdstat_info"]["calls"]
    assert after - before < 20, "the duties of the decider ask now and then, too"


def test_the_doctor_finds_a_redis_that_cannot_save(own_redis_server: RedisServer) -> None:
    with own_redis_server.client() as client:
        fail_to_save(own_redis_server, client)
    found = {finding.check: finding for finding in check_redis(own_redis_server.url)}
    assert found["redis durability"].status is FindingLevel.FAIL
    assert "MISCONF" in found["redis durability"].what


def test_a_durable_redis_that_does_not_evict_is_found_well(redis_url: str) -> None:
    findings = check_redis(redis_url)
    assert [finding.check for finding in findings] == ["redis", "redis durability", "redis eviction", "clock"]
    assert all(finding.status is FindingLevel.OK for finding in findings), findings


def test_a_redis_that_forgets_is_found_out(own_redis_server: RedisServer) -> None:
    with own_redis_server.client() as client:
        client.config_set("appendonly", "no")
        client.config_set("maxmemory-policy", "allkeys-lru")
    status = {finding.check: finding.status for finding in check_redis(own_redis_server.url)}
    assert status["redis durability"] is FindingLevel.FAIL
    assert status["redis eviction"] is FindingLevel.FAIL
    assert status["redis"] is FindingLevel.OK
