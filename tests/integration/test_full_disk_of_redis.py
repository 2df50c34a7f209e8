"""A moment without room on Redis's disk loses nothing that was acknowledged, whatever server it is."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.asyncio import Redis

from decider.store.redis.queue_executor import connect
from decider.store.redis.redis_health import AppendOnlyUpkeep
from services.standalone.append_only_file import DAMAGED, AppendOnlyFile, main
from tests.support.redis_server import RedisServer, find_binaries
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture(params=find_binaries(), ids=lambda binary: binary.name)
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    with RedisServer(request.param, appendfsync="everysec") as made:
        with made.client() as client:
            client.bgrewriteaof()
            until("the file is written again", lambda: persistence(client)["aof_last_rewrite_time_sec"] >= 0)
        yield made


def persistence(client: redis.Redis) -> dict[str, object]:
    found: dict[str, object] = client.info("persistence")
    return found


def increment(server: RedisServer) -> Path:
    return max((server.folder / "appendonlydir").glob("*.incr.aof"), key=lambda path: path.stat().st_mtime_ns)


def written_through_a_full_disk(server: RedisServer, client: redis.Redis) -> dict[bytes, bytes]:
    """Write until a write ends short, make room, write again; returns what was acknowledged."""
    acknowledged: dict[bytes, bytes] = {}
    size = increment(server).stat().st_size
    server.limit_files(size + 1_000)
    for number in range(100):
        key, value = b"key%d" % number, b"%d" % number * 40
        if not is_acknowledged(client, key, value):
            break
        acknowledged[key] = value
    else:
        pytest.fail("the disk was never full")
    server.limit_files(-1)
    until("the server writes again", lambda: persistence(client)["aof_last_write_status"] == "ok")
    client.set(b"after", b"1")
    return acknowledged | {b"after": b"1"}


def is_acknowledged(client: redis.Redis, key: bytes, value: bytes) -> bool:
    try:
        return bool(client.set(key, value))
    except redis.ResponseError:
        return False


def content(client: redis.Redis) -> dict[bytes, bytes]:
    return {key: client.get(key) for key in client.scan_iter()}


def test_a_server_that_does_not_start_again_is_repaired_and_everything_acknowledged_is_there(
    server: RedisServer,
) -> None:
    with server.client() as client:
        acknowledged = written_through_a_full_disk(server, client)
        until("the last command is in the file", lambda: b"after" in increment(server).read_bytes())
    server.kill()
    before = len(server.log)
    damaged = increment(server).read_bytes()
    with pytest.raises(RuntimeError, match="Bad file format"):
        server.start()
    assert AppendOnlyFile(server.folder).repair(server.log[before:])
    server.start()
    with server.client() as client:
        assert content(client) == acknowledged
    assert next((server.folder / DAMAGED).iterdir()).read_bytes() == damaged


def test_a_server_that_others_run_is_repaired_by_a_command(
    server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with server.client() as client:
        acknowledged = written_through_a_full_disk(server, client)
        until("the last command is in the file", lambda: b"after" in increment(server).read_bytes())
    server.kill()
    assert main([str(server.folder)]) == 0
    assert main([str(server.folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "nothing to repair"
    assert main([str(server.folder / "absent")]) == 2
    server.start()
    with server.client() as client:
        assert content(client) == acknowledged


def test_once_writes_work_again_the_decider_has_the_file_written_again_and_the_server_starts(
    server: RedisServer,
) -> None:
    upkeep = AppendOnlyUpkeep()

    def passes() -> bool:
        async def ask() -> bool:
            client: Redis = connect(server.url)
            try:
                return await upkeep.rewrite(client)
            finally:
                await client.aclose()

        return asyncio.run(ask())

    with server.client() as client:
        assert not passes()
        acknowledged = written_through_a_full_disk(server, client)
        assert passes()
        until("the file is written again", lambda: not passes() and not persistence(client)["aof_rewrite_in_progress"])
        assert not passes()
    server.restart()
    with server.client() as client:
        assert content(client) == acknowledged


TORN = "redis.call('SET', 'job', 'gone') redis.call('SET', 'count', '1') redis.call('SET', 'history', 'a long entry')"
WHOLE = "redis.call('SET', 'later', '1') redis.call('SET', 'too', '1')"


@pytest.fixture(params=find_binaries(), ids=lambda binary: binary.name)
def torn_server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    with RedisServer(request.param) as made:
        yield made


def cut(folder: Path) -> None:
    """Take off the last bytes of the newest file, which are in the middle of the script's last command."""
    log = max((folder / "appendonlydir").glob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
    with log.open("r+b") as file:
        file.truncate(log.read_bytes().rindex(b"history"))


def renewed(torn_server: RedisServer) -> bool:
    async def ask() -> bool:
        client: Redis = connect(torn_server.url)
        try:
            return await AppendOnlyUpkeep().rewrite(client)
        finally:
            await client.aclose()

    return asyncio.run(ask())


def is_written(client: redis.Redis) -> bool:
    return bool(client.info("persistence")["aof_last_rewrite_time_sec"] >= 0)


def test_half_of_a_torn_transaction_is_never_carried_out(torn_server: RedisServer) -> None:
    with torn_server.client() as client:
        client.set("job", "running")
        client.eval(TORN, 0)
    torn_server.kill()
    cut(torn_server.folder)
    torn_server.start()
    assert renewed(torn_server)
    with torn_server.client() as client:
        assert client.get("job") == b"running"
        until("the log is written again", lambda: is_written(client))
        client.eval(WHOLE, 0)
    torn_server.restart()
    with torn_server.client() as client:
        assert (client.get("job"), client.get("count"), client.get("later")) == (b"running", None, b"1")


def test_a_log_is_written_again_once_after_each_start(torn_server: RedisServer) -> None:
    assert renewed(torn_server)
    with torn_server.client() as client:
        until("the log is written again", lambda: is_written(client))
    assert not renewed(torn_server)
    torn_server.restart()
    assert renewed(torn_server)
