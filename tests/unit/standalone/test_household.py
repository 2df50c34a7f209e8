"""The household's plan: three programs, one data directory, one owner of it."""

import os
from pathlib import Path

import pytest

from services.standalone.household import StandaloneOptions, children, data_dir_lock
from services.standalone.supervisor import FIRST_DELAY_S, LONGEST_DELAY_S, restart_delay_s
from shared.errors import InvalidInput
from tests.support.fake_programs import fake_redis


def test_children_start_with_what_the_others_need_and_share_their_addresses(tmp_path: Path) -> None:
    server = fake_redis(tmp_path / "bin", "Valkey server v=9.1.2 sha=0")
    options = StandaloneOptions(
        data_dir=tmp_path / "data", environment={"A": "b"}, http_address="127.0.0.1:9", redis_port=0,
        redis_server=str(server),
    )  # fmt: skip
    specs = children(options)
    assert [spec.name for spec in specs] == ["redis", "decider", "actor"]
    port = specs[0].command[specs[0].command.index("--port") + 1]
    for spec in specs:
        assert spec.environment["LAKEWRIGHT_REDIS_URL"] == f"redis://127.0.0.1:{port}/0"
        assert spec.environment["LAKEWRIGHT_HTTP_ADDRESS"] == "127.0.0.1:9"
        assert spec.environment["LAKEWRIGHT_DATA_DIR"] == str(tmp_path / "data")
        assert spec.environment["A"] == "b"
        assert spec.log_file.is_relative_to(tmp_path / "data")


def test_the_actor_may_be_left_out(tmp_path: Path) -> None:
    server = fake_redis(tmp_path / "bin", "Valkey server v=9.1.2 sha=0")
    options = StandaloneOptions(tmp_path, {}, redis_port=0, redis_server=str(server), with_actor=False)
    assert [spec.name for spec in children(options)] == ["redis", "decider"]


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
    delays = [restart_delay_s(ends) for ends in range(1, 12)]
    assert delays[:3] == [FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S]
    assert max(delays) == LONGEST_DELAY_S
