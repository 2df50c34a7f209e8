"""The household's plan: three programs, one data directory, one owner of it."""

import os
import stat
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actor.queue_executor import connect
from services.redis_socket import MAX_SOCKET_PATH_BYTES, socket_path, socket_url
from services.settings import default_redis_url, parse_redis_url
from services.standalone import redis_server
from services.standalone.append_only_commands import Commands, Ending, read_commands
from services.standalone.redis_server import AppendFsync, RedisBinary, RedisOptions
from services.standalone.stack import StandaloneOptions, children, data_dir_lock
from services.standalone.supervisor import RESTARTS
from shared.errors import InvalidInput, PermanentError
from tests.support.fake_programs import fake_redis


def options(data_dir: Path, **environment: str) -> StandaloneOptions:
    server = fake_redis(data_dir.parent / "bin", "Valkey server v=9.1.2 sha=0")
    return StandaloneOptions(
        data_dir=data_dir, environment=environment, http_address="127.0.0.1:9", redis_server=str(server),
        table_umask=0o027,
    )  # fmt: skip


def test_children_start_with_what_the_others_need_and_share_their_addresses(tmp_path: Path) -> None:
    specs = children(options(tmp_path / "data", A="b"))
    assert [spec.name for spec in specs] == ["redis", "decider", "actor"]
    socket = specs[0].command[specs[0].command.index("--unixsocket") + 1]
    for spec in specs:
        assert unquote(urlsplit(spec.environment["LAKEWRIGHT_REDIS_URL"]).path) == socket
        assert spec.environment["LAKEWRIGHT_HTTP_ADDRESS"] == "127.0.0.1:9"
        assert spec.environment["LAKEWRIGHT_DATA_DIR"] == str(tmp_path / "data")
        assert spec.environment["A"] == "b"
        assert spec.log_file.is_relative_to(tmp_path / "data")


def test_programs_that_are_reported_the_same_directory_find_the_redis(tmp_path: Path) -> None:
    redis, *_ = children(options(tmp_path / "data"))
    found = default_redis_url({"LAKEWRIGHT_DATA_DIR": str(tmp_path / "data")})
    assert found == redis.environment["LAKEWRIGHT_REDIS_URL"]
    assert parse_redis_url(found) == found


@pytest.mark.parametrize("name", ["a b", "Zürich", "x@y", "50%", "q?#", "d" * 120])
def test_a_socket_has_a_usable_url_and_a_short_path_wherever_the_data_lies(tmp_path: Path, name: str) -> None:
    socket = socket_path(tmp_path / name)
    assert len(os.fsencode(socket)) <= MAX_SOCKET_PATH_BYTES
    assert connect(parse_redis_url(socket_url(socket))).connection_pool.connection_kwargs["path"] == str(socket)
    assert socket_path(tmp_path / name) == socket != socket_path(tmp_path / "other")


def test_who_writes_into_tables_keeps_the_umask_of_who_started_it(tmp_path: Path) -> None:
    umasks = {spec.name: spec.umask for spec in children(options(tmp_path / "data"))}
    assert umasks == {"redis": 0o077, "decider": 0o077, "actor": 0o027}


def test_our_folders_are_closed_to_others_and_the_data_directory_itself_is_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for folder in (data, data / "redis", data / "logs"):
        folder.mkdir()
        folder.chmod(0o755)
    children(options(data))
    modes = {folder.name: stat.S_IMODE(folder.stat().st_mode) for folder in data.iterdir()}
    assert modes == {"redis": 0o700, "logs": 0o700, "spark": 0o700}
    assert stat.S_IMODE(data.stat().st_mode) == 0o755, "tables of others may lie in it"


def test_a_folder_that_another_user_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data" / "redis").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermanentError, match="not a folder of this user"):
        children(options(tmp_path / "data"))


def test_how_long_a_start_may_take_is_a_setting(tmp_path: Path) -> None:
    assert {spec.ready_timeout_s for spec in children(options(tmp_path / "data"))[:2]} == {600.0}
    given = children(options(tmp_path / "data", LAKEWRIGHT_START_TIMEOUT_S="90"))
    assert {spec.ready_timeout_s for spec in given[:2]} == {90.0}
    with pytest.raises(InvalidInput, match="LAKEWRIGHT_START_TIMEOUT_S"):
        children(options(tmp_path / "data", LAKEWRIGHT_START_TIMEOUT_S="soon"))


def test_the_actor_may_be_left_out(tmp_path: Path) -> None:
    specs = children(replace(options(tmp_path / "data"), actors=0))
    assert [spec.name for spec in specs] == ["redis", "decider"]


def test_a_data_directory_has_one_owner_at_a_time(tmp_path: Path) -> None:
    with data_dir_lock(tmp_path):
        with pytest.raises(InvalidInput, match=f"in use by process {os.getpid()}"), data_dir_lock(tmp_path):
            pytest.fail("two owners")
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    with data_dir_lock(tmp_path):
        assert (tmp_path / "lock").exists()


def test_a_data_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="--data-dir"), data_dir_lock(tmp_path / "file" / "data"):
        pytest.fail("a file is no directory")


def test_restart_delays_double_and_are_bounded() -> None:
    delays = [RESTARTS.pause_s(ends) for ends in range(1, 12)]
    assert delays[:3] == [RESTARTS.first_s, 2 * RESTARTS.first_s, 4 * RESTARTS.first_s] == [0.5, 1.0, 2.0]
    assert max(delays) == RESTARTS.longest_s == 30


def test_it_is_durable_private_and_never_evicts(tmp_path: Path) -> None:
    options = RedisOptions(tmp_path, tmp_path / "redis.sock", AppendFsync.ALWAYS)
    command = redis_server.command(RedisBinary(Path("/x/valkey-server"), "Valkey 9.1.2"), options)
    settings = dict(zip(command[1::2], command[2::2], strict=True))
    assert settings["--port"] == "0"
    assert settings["--unixsocket"] == str(tmp_path / "redis.sock")
    assert settings["--unixsocketperm"] == "600"
    assert settings["--appendonly"] == "yes"
    assert settings["--appendfsync"] == "always"
    assert settings["--aof-load-truncated"] == "yes"
    assert settings["--maxmemory-policy"] == "noeviction"


def test_valkey_is_preferred_on_path(tmp_path: Path) -> None:
    fake_redis(tmp_path, "Redis server v=7.2.4 sha=0")
    valkey = fake_redis(tmp_path, "Valkey server v=8.1.0 sha=0", name="valkey-server")
    found = redis_server.find_binary("system", path=str(tmp_path))
    assert (found.path, found.version) == (valkey, "Valkey 8.1.0")


@pytest.mark.parametrize("says", ["Redis server v=6.2.14 sha=0", "something else", ""])
def test_an_old_or_foreign_server_is_refused_with_what_it_said(tmp_path: Path, says: str) -> None:
    server = fake_redis(tmp_path, says)
    with pytest.raises(InvalidInput, match=says.removesuffix(" sha=0") or "nothing"):
        redis_server.find_binary(str(server), path="")


def test_a_server_that_is_not_there_is_refused_with_the_alternatives(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--redis-server bundled"):
        redis_server.find_binary("system", path=str(tmp_path))
    with pytest.raises(InvalidInput, match="does not exist"):
        redis_server.find_binary(str(tmp_path / "absent"), path="")


@pytest.mark.parametrize(
    ("log", "advice"),
    [
        ("# Bad file format reading the append only file x.aof: make a backup", "appendonlydir"),
        ("# Can't open or create append-only dir appendonlydir: Permission denied", "owner"),
        ("# something new", ""),
    ],
)
def test_the_log_of_a_failed_start_is_turned_into_advice(tmp_path: Path, log: str, advice: str) -> None:
    assert advice in redis_server.explain_failure(log, RedisOptions(tmp_path, tmp_path / "redis.sock"))
    if not advice:
        assert redis_server.explain_failure(log, RedisOptions(tmp_path, tmp_path / "redis.sock")) == ""


def command(*parts: bytes) -> bytes:
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def kept(data: bytes) -> tuple[bytes, Ending]:
    found = read_commands(data)
    return b"".join(data[start:end] for start, end in found.ranges), found.ending


PARTS = st.binary(max_size=20) | st.sampled_from([b"\0\0", b"\r\n\0", b"*1\r\n", b"$1\r\n\0\r\n"])
COMMANDS = st.lists(st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: command(b"SET", *parts)), max_size=6)


@given(COMMANDS, st.lists(st.integers(min_value=0, max_value=70_000), max_size=6))
def test_zeros_between_commands_are_left_out_and_every_command_is_kept(commands: list[bytes], holes: list[int]) -> None:
    data = b"".join(b"\0" * hole + one for one, hole in zip(commands, holes + [0] * len(commands), strict=False))
    assert kept(data) == (b"".join(commands), Ending.WHOLE)
    assert read_commands(data).has_zeros == (any(holes[: len(commands)]))


@given(COMMANDS, st.data())
def test_a_file_that_ends_within_a_command_is_torn_and_keeps_those_before(
    commands: list[bytes], data: st.DataObject
) -> None:
    last = command(b"SET", b"key", b"a longer value")
    cut = data.draw(st.integers(min_value=1, max_value=len(last) - 1))
    assert kept(b"".join(commands) + last[:cut]) == (b"".join(commands), Ending.TORN)


@pytest.mark.parametrize(
    "damage", [b"damage", b"*x\r\n", b"*1\r\n$1\r\nabc\r\n", b"*1\r\n#1\r\na\r\n", b"*" + b"1" * 2_000]
)
def test_what_is_no_command_ends_what_is_kept(damage: bytes) -> None:
    whole = command(b"SET", b"a", b"1")
    assert kept(whole + damage + whole * 100) == (whole, Ending.DAMAGED)


def test_a_transaction_counts_with_its_end_only() -> None:
    before, opened, inside, closed = (
        command(b"SET", b"a", b"1"),
        command(b"MULTI"),
        command(b"DEL", b"a"),
        command(b"exec"),
    )
    assert kept(before + opened + inside + closed) == (before + opened + inside + closed, Ending.WHOLE)
    assert kept(before + opened + inside) == (before, Ending.TORN)
    assert kept(before + opened + inside + b"damage" * 500) == (before, Ending.DAMAGED)


def test_annotations_of_time_are_kept() -> None:
    data = b"#TS:1700000000\r\n" + command(b"SET", b"a", b"1")
    assert kept(data) == (data, Ending.WHOLE)


def test_an_empty_file_has_no_commands() -> None:
    assert read_commands(b"") == Commands((), Ending.WHOLE)
