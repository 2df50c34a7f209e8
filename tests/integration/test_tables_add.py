"""`tables add` says what it found and what happens next; `tables list` shows the state of each table."""

from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from actor.queue_executor import SyncQueueExecutor, connect
from services.cli.__main__ import app
from shared.paths.store_options import StoreOptions
from shared.queue import commands
from tests.support.delta_tables import HandTable
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings

pytestmark = pytest.mark.redis


def call(decider: LiveDecider, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["--url", decider.url, *arguments], env={"COLUMNS": "200"})


def table_with_small_files(path: Path) -> WrittenTable:
    table = WrittenTable(path, days=("2026-01-01",))
    table.append(11)
    return table


@pytest.mark.parametrize("place", ["missing", "empty"])
def test_a_place_without_a_table_is_refused_and_not_registered(
    decider: LiveDecider, tmp_path: Path, place: str
) -> None:
    (tmp_path / "empty").mkdir()
    result = call(decider, "tables", "add", str(tmp_path / place), "--name", "orders", "--paused")
    assert result.exit_code != 0
    assert "nothing was registered" in str(result.exception)
    assert decider.get("/v1/tables")["tables"] == []


def test_a_store_that_refuses_us_is_reported_and_shown_in_the_list(redis_url: str) -> None:
    """As S3 does with credentials that it does not know."""
    from tests.support.s3_server import S3Server

    with closing(S3Server("refusing")) as s3:
        options = StoreOptions({"s3://refusing": s3.options(access_key_id="unknown")})
        with closing(LiveDecider(decider_settings(redis_url, store_options=options)).start()) as decider:
            result = call(decider, "tables", "add", "s3://refusing/orders", "--name", "orders")
            listed = call(decider, "tables", "list").stdout
    assert result.exit_code != 0
    assert "orders is not optimized" in str(result.exception)
    assert "AWS_ACCESS_KEY_ID" in str(result.exception), "what to set is said"
    assert "unreadable" in listed
    assert "lakewright tables show" in listed


def test_a_refused_table_is_reported_with_the_reason(decider: LiveDecider, tmp_path: Path) -> None:
    HandTable(tmp_path / "new", protocol={"minReaderVersion": 99, "minWriterVersion": 99})
    result = call(decider, "tables", "add", str(tmp_path / "new"), "--name", "new")
    assert result.exit_code != 0
    assert "new is not optimized" in str(result.exception)
    assert [one["name"] for one in decider.get("/v1/tables")["tables"]] == ["new"]


def test_a_table_that_is_added_says_that_its_files_are_rewritten_and_how_to_look_first(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table_with_small_files(tmp_path / "orders")
    stated = call(decider, "tables", "add", str(tmp_path / "orders"), "--name", "orders").stdout
    assert "rewritten from now on" in stated.replace("\n", " ")
    assert "lakewright optimize orders --dry-run" in stated.replace("\n", " ")
    listed = call(decider, "tables", "list").stdout
    assert "12 files, 1 would do" in listed


def test_a_table_that_is_added_paused_waits_until_it_is_resumed(
    decider: LiveDecider, redis_url: str, tmp_path: Path
) -> None:
    table_with_small_files(tmp_path / "orders")
    added = call(decider, "tables", "add", str(tmp_path / "orders"), "--name", "orders", "--paused")
    assert added.exit_code == 0, added.output
    assert "lakewright tables resume orders" in added.stdout.replace("\n", " ")
    decider.drain()
    queue = SyncQueueExecutor(connect(redis_url), "default")
    claim = {"worker": "w", "slots": 1, "lease_ms": 60_000}
    assert queue.run(commands.claim("default", nonce="1", **claim)) == ()
    assert call(decider, "optimize", "orders", "--dry-run").exit_code == 0
    call(decider, "tables", "resume", "orders")
    assert len(queue.run(commands.claim("default", nonce="2", **claim))) == 1
