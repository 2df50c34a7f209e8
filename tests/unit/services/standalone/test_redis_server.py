"""What the embedded Redis is started with, and what is said when it cannot be."""

from pathlib import Path

import pytest

from services.standalone import redis_server
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
