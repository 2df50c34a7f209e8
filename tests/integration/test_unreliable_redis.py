"""A Redis that forgets, or takes no writes, is given nothing: calls are refused with the reason, and all recovers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from decider.store.redis_health import RedisSafety
from services.cli.checks.finding import FindingLevel
from services.cli.checks.redis_server import check_redis
from shared.errors import RetryableError
from shared.queue import commands
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
    live = LiveDecider(decider_settings(own_redis_server.url)).start()
    yield live
    live.close()


def stored(client: Redis) -> dict[bytes, object]:
    """Everything that Redis holds, byte by byte."""
    return {key: client.dump(key) for key in client.keys("*")}


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
