"""The household's plan: three programs, one data directory, one owner of it."""

import os
import stat
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from actor.queue_executor import connect
from services.redis_socket import MAX_SOCKET_PATH_BYTES, socket_path, socket_url
from services.settings import default_redis_url, parse_redis_url
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
