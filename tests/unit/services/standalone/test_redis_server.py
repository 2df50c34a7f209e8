"""What the embedded Redis is started with, what is said when it cannot be, and how its file is repaired."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.standalone import redis_server
from services.standalone.append_only_commands import Commands, Ending, read_commands
from services.standalone.redis_server import AppendFsync, RedisBinary, RedisOptions
from shared.errors import InvalidInput
from tests.support.fake_programs import fake_redis


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
