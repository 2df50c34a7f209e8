"""A transaction that a power cut tore is not carried out later, when the server starts once more."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.asyncio import Redis

from decider.store.append_only_file import AppendOnlyUpkeep
from decider.store.redis.queue_executor import connect
from tests.support.redis_server import RedisServer, find_binaries
from tests.support.waiting import until

pytestmark = pytest.mark.redis

TORN = "redis.call('SET', 'job', 'gone') redis.call('SET', 'count', '1') redis.call('SET', 'history', 'a long entry')"
WHOLE = "redis.call('SET', 'later', '1') redis.call('SET', 'too', '1')"


@pytest.fixture(params=find_binaries(), ids=lambda binary: binary.name)
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    with RedisServer(request.param) as made:
        yield made


def cut(folder: Path) -> None:
    """Take off the last bytes of the newest file, which are in the middle of the script's last command."""
    log = max((folder / "appendonlydir").glob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
    with log.open("r+b") as file:
        file.truncate(log.read_bytes().rindex(b"history"))


def renewed(server: RedisServer) -> bool:
    async def ask() -> bool:
        client: Redis = connect(server.url)
        try:
            return await AppendOnlyUpkeep().rewrite(client)
        finally:
            await client.aclose()

    return asyncio.run(ask())


def is_written(client: redis.Redis) -> bool:
    return bool(client.info("persistence")["aof_last_rewrite_time_sec"] >= 0)


def test_half_of_a_torn_transaction_is_never_carried_out(server: RedisServer) -> None:
    with server.client() as client:
        client.set("job", "running")
        client.eval(TORN, 0)
    server.kill()
    cut(server.folder)
    server.start()
    assert renewed(server)
    with server.client() as client:
        assert client.get("job") == b"running"
        until("the log is written again", lambda: is_written(client))
        client.eval(WHOLE, 0)
    server.restart()
    with server.client() as client:
        assert (client.get("job"), client.get("count"), client.get("later")) == (b"running", None, b"1")


def test_a_log_is_written_again_once_after_each_start(server: RedisServer) -> None:
    assert renewed(server)
    with server.client() as client:
        until("the log is written again", lambda: is_written(client))
    assert not renewed(server)
    server.restart()
    assert renewed(server)
