"""A user of Redis with the documented rights is enough for deciders and actors, and has no others."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from actor.queue_executor import SyncQueueExecutor, connect
from shared.queue import commands, keys
from shared.queue.model import Band, JobKey, JobRequest, RunResult
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.redis_server import RedisServer
from tests.support.stack import free_port
from tests.support.waiting import until

pytestmark = pytest.mark.redis

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
QUEUE = "default"


def documented_rights() -> list[str]:
    """Return the arguments of `ACL SETUSER` as the page has them."""
    (found,) = re.findall(r"^ACL SETUSER lakewright (.+?)\n```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(found).replace("\\\n", " ").replace(">PASSWORD", ">secret").split()


@pytest.fixture
def limited_url(own_redis_server: RedisServer) -> Iterator[str]:
    """URL of the user; whatever it was refused fails the test."""
    with own_redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", "lakewright", *documented_rights())
        yield f"redis://lakewright:secret@127.0.0.1:{own_redis_server.port}/0"
        refused = client.acl_log()
    assert refused == []


def test_deciders_and_actors_work_with_the_documented_rights(limited_url: str, tmp_path: Path) -> None:
    state = (tmp_path / "registry").as_uri()
    with LiveDecider(decider_settings(limited_url, state=state, roots=(tmp_path.as_uri(),))) as live:
        name = live.register(WrittenTable(tmp_path / "orders").path, "orders")
        live.post(f"/v1/tables/{name}/pause", {}).raise_for_status()
        live.post(f"/v1/tables/{name}/resume", {}).raise_for_status()
        for path in ("/v1/queue", "/v1/backlog", "/v1/status", "/v1/actors", f"/v1/tables/{name}/decisions"):
            live.get(path)
        for task in live.services.background:
            if task not in ("refresh_queue", "finished_runs", "sweep"):  # These wait, and run by themselves.
                live.run(live.task(task).run_once())
        with connect(limited_url) as client:
            queue = SyncQueueExecutor(client, QUEUE)
            key = JobKey("orders-1", "p", "compact")
            queue.run(commands.enqueue(QUEUE, JobRequest(key, "sales", Band.NORMAL, 5, 1, 1)))
            (claim,) = queue.run(commands.claim(QUEUE, worker="w", nonce="a", slots=1, lease_ms=60_000))
            how = {"worker": "w", "nonce": "b", "cost_bytes": 1, "seen_version": 1, "result": "{}"}
            queue.run(commands.finish(QUEUE, id=claim.id, token=claim.token, run_result=RunResult.DONE, **how))
        live.client.delete(f"/v1/tables/{name}").raise_for_status()
        until("it is ready", lambda: live.client.get("/readyz").is_success)


def test_a_node_of_a_cluster_is_refused_with_what_to_do_instead() -> None:
    # Its own choice, 10,000 above the other port, may be beyond the last one.
    bus = ("cluster-port", str(free_port()))
    with RedisServer(extra=(("cluster-enabled", "yes"), bus)) as server:
        with server.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
            until("the cluster is up", lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"))
        with LiveDecider(decider_settings(server.url)) as live:
            ready = live.client.get("/readyz")
            assert (ready.status_code, "node of a cluster" in ready.json()["detail"]) == (503, True)


@pytest.mark.parametrize(
    "refused", ["FLUSHALL", "CONFIG GET dir", "KEYS *", "GET other", "SHUTDOWN", "ACL LIST", "SAVE"]
)
def test_the_documented_rights_include_no_others(own_redis_server: RedisServer, refused: str) -> None:
    with own_redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", "lakewright", *documented_rights())
    url = f"redis://lakewright:secret@127.0.0.1:{own_redis_server.port}/0"
    with redis.Redis.from_url(url) as client, pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command(*refused.split())
    with redis.Redis.from_url(url) as client:
        assert client.exists(keys.TABLES) == 0


def with_rights(server: RedisServer, *without: str) -> str:
    """Return the URL of a user with the documented rights but these."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "lakewright", *documented_rights(), *(f"-{one}" for one in without))
    return f"redis://lakewright:secret@127.0.0.1:{server.port}/0"


def test_without_rights_that_only_tidy_up_everything_else_works(
    own_redis_server: RedisServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = with_rights(own_redis_server, "bgrewriteaof", "function|list", "function|delete")
    with LiveDecider(decider_settings(url)) as live:
        live.register(WrittenTable(tmp_path / "orders").path, "orders")
        for _ in range(2):
            for task in ("aof_rewrite", "library_cleanup"):
                live.run(live.task(task).run_once())
        until("it is ready", lambda: live.client.get("/readyz").is_success)
    stated = capfd.readouterr().err
    assert [stated.count(f"effect='{effect}'") for effect in ("the file is left as it is", "old libraries stay")] == [
        1,
        1,
    ]


def test_without_the_right_to_load_functions_a_decider_is_not_ready_and_names_it(own_redis_server: RedisServer) -> None:
    with LiveDecider(decider_settings(with_rights(own_redis_server, "function|load"))) as live:
        ready = live.client.get("/readyz")
        assert ready.status_code == 503
        assert "function|load" in ready.json()["detail"]
        assert "docs/deploy.md lists what a user of Redis needs" in ready.json()["detail"]
