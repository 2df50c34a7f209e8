"""How tables come under care: added ones say what happens next, found ones wait, removed ones stay removed."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from actor.queue_executor import SyncQueueExecutor, connect
from decider.background.discovery import DiscoveryLimits
from shared.paths.store_options import StoreOptions
from shared.queue import commands
from tests.support.delta_tables import HandTable
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.waiting import until

pytestmark = pytest.mark.redis


def table_with_small_files(path: Path) -> WrittenTable:
    table = WrittenTable(path, days=("2026-01-01",))
    table.append(11)
    return table


@pytest.mark.parametrize("place", ["missing", "empty"])
def test_a_place_without_a_table_is_refused_and_not_registered(
    decider: LiveDecider, tmp_path: Path, place: str
) -> None:
    (tmp_path / "empty").mkdir()
    result = decider.command("tables", "add", str(tmp_path / place), "--name", "orders", "--paused")
    assert result.exit_code != 0
    assert "nothing was registered" in str(result.exception)
    assert decider.get("/v1/tables")["tables"] == []


def test_a_store_that_refuses_us_is_reported_and_shown_in_the_list(redis_url: str) -> None:
    """As S3 does with credentials that it does not know."""
    from tests.support.s3_server import S3Server

    with closing(S3Server("refusing")) as s3:
        options = StoreOptions({"s3://refusing": s3.options(access_key_id="unknown")})
        with closing(LiveDecider(decider_settings(redis_url, store_options=options)).start()) as decider:
            result = decider.command("tables", "add", "s3://refusing/orders", "--name", "orders")
            listed = decider.command("tables", "list").stdout
    assert result.exit_code != 0
    assert "orders is not optimized" in str(result.exception)
    assert "AWS_ACCESS_KEY_ID" in str(result.exception), "what to set is said"
    assert "unreadable" in listed
    assert "lakewright tables show" in listed


def test_a_refused_table_is_reported_with_the_reason(decider: LiveDecider, tmp_path: Path) -> None:
    HandTable(tmp_path / "new", protocol={"minReaderVersion": 99, "minWriterVersion": 99})
    result = decider.command("tables", "add", str(tmp_path / "new"), "--name", "new")
    assert result.exit_code != 0
    assert "new is not optimized" in str(result.exception)
    assert [one["name"] for one in decider.get("/v1/tables")["tables"]] == ["new"]


def test_a_table_that_is_added_says_that_its_files_are_rewritten_and_how_to_look_first(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table_with_small_files(tmp_path / "orders")
    stated = decider.command("tables", "add", str(tmp_path / "orders"), "--name", "orders").stdout
    assert "rewritten from now on" in stated.replace("\n", " ")
    assert "lakewright optimize orders --dry-run" in stated.replace("\n", " ")
    listed = decider.command("tables", "list").stdout
    assert "12 files, 1 would do" in listed


def test_a_table_that_is_added_paused_waits_until_it_is_resumed(
    decider: LiveDecider, redis_url: str, tmp_path: Path
) -> None:
    table_with_small_files(tmp_path / "orders")
    added = decider.command("tables", "add", str(tmp_path / "orders"), "--name", "orders", "--paused")
    assert added.exit_code == 0, added.output
    assert "lakewright tables resume orders" in added.stdout.replace("\n", " ")
    decider.drain()
    queue = SyncQueueExecutor(connect(redis_url), "default")
    claim = {"worker": "w", "slots": 1, "lease_ms": 60_000}
    assert queue.run(commands.claim("default", nonce="1", **claim)) == ()
    assert decider.command("optimize", "orders", "--dry-run").exit_code == 0
    decider.command("tables", "resume", "orders")
    assert len(queue.run(commands.claim("default", nonce="2", **claim))) == 1


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A root with two tables whose files are to be merged."""
    for name in ("orders", "clicks"):
        WrittenTable(tmp_path / "sales" / name, days=("2026-01-01",)).append(11)
    return tmp_path


@pytest.fixture
def decider(redis_url: str, lake: Path) -> Iterator[LiveDecider]:
    pace = DiscoveryLimits(interval_s=0, requests_per_s=10_000.0)
    live = LiveDecider(
        decider_settings(redis_url, roots=(lake.as_uri(),), discovery=pace, is_discovery_active=False)
    ).start()
    yield live
    live.close()


def discover(decider: LiveDecider) -> None:
    decider.run(decider.services.requests.discovery.call_for())
    decider.run(decider.services.requests.discovery.run_once())
    decider.drain()


def conditions(decider: LiveDecider) -> dict[str, str]:
    return {one["name"]: one["condition"] for one in decider.get("/v1/tables")["tables"]}


def tables_of_claims(redis_url: str, nonce: str) -> set[str]:
    queue = SyncQueueExecutor(connect(redis_url), "default")
    claimed = queue.run(commands.claim("default", worker="w", nonce=nonce, slots=4, lease_ms=60_000))
    return {one.key.table.rsplit("-", 1)[0] for one in claimed}


@pytest.mark.parametrize("how", ["discovery", "an event"])
def test_a_table_that_is_found_is_not_rewritten_before_a_person_starts_it(
    decider: LiveDecider, lake: Path, redis_url: str, how: str
) -> None:
    if how == "discovery":
        discover(decider)
    else:
        decider.post("/v1/events", [{"table": (lake / "sales" / name).as_uri()} for name in ("orders", "clicks")])
        decider.drain()
    until("both wait", lambda: set(conditions(decider).values()) == {"paused"})
    until("the list has both", lambda: decider.get("/v1/table-rows", condition="paused")["matching"] == 2)
    assert tables_of_claims(redis_url, "n1") == set()
    answer = decider.post("/v1/tables/sales.orders/optimize", {}).json()
    assert (answer["paused"], "The table is paused" in answer["message"]) == ("table", True)
    assert decider.post("/v1/tables/resume", {}).json() == {"message": "2 tables resumed."}
    assert tables_of_claims(redis_url, "n2") == {"sales-clicks", "sales-orders"}


def test_a_person_who_adds_a_found_table_starts_it(decider: LiveDecider, lake: Path, redis_url: str) -> None:
    discover(decider)
    decider.post("/v1/tables", {"location": str(lake / "sales" / "orders"), "name": "mine"}).raise_for_status()
    decider.drain()
    assert tables_of_claims(redis_url, "n") == {"sales-orders"}


def test_a_table_that_a_person_removed_stays_removed_until_a_person_adds_it(decider: LiveDecider, lake: Path) -> None:
    discover(decider)
    assert decider.client.delete("/v1/tables/sales.orders").status_code == 204
    discover(decider)
    event: dict[str, Any] = {"table": (lake / "sales" / "orders").as_uri()}
    answer = decider.post("/v1/events", event).json()
    assert answer == {"accepted": 0, "ignored": [{"reason": "table_removed", "count": 1}]}
    assert set(conditions(decider)) == {"sales.clicks"}
    decider.post("/v1/tables", {"location": event["table"], "name": "sales.orders"}).raise_for_status()
    decider.drain()
    until("it is not paused", lambda: conditions(decider)["sales.orders"] == "waiting")


def test_a_table_that_was_not_there_when_it_was_added_is_found_later(decider: LiveDecider, lake: Path) -> None:
    place = lake / "sales" / "new"
    answer = decider.post("/v1/tables", {"location": str(place), "wait_s": 10})
    assert answer.status_code == 422
    WrittenTable(place)
    discover(decider)
    assert "sales.new" in conditions(decider)


def test_the_backlog_is_apart_from_what_comes_after_it(decider: LiveDecider) -> None:
    discover(decider)
    found = decider.get("/v1/status")["savings"]["amplification"]
    table = decider.get("/v1/tables/sales.orders")
    assert found["backlog_bytes_left"] == found["backlog_bytes_found"] > 0
    assert table["amplification"]["backlog_bytes_left"] == table["layout"]["small_bytes"]
    decider.client.delete("/v1/tables/sales.clicks")
    left = decider.get("/v1/status")["savings"]["amplification"]["backlog_bytes_left"]
    assert left == table["amplification"]["backlog_bytes_left"], "a removed table has no backlog"


def test_small_files_that_are_not_due_are_no_new_ones_either(decider: LiveDecider, lake: Path) -> None:
    few = WrittenTable(lake / "few", days=("2026-01-01",))
    few.append(3)
    asked = {"location": str(few.path), "name": "few", "properties": {"lakewright.min-input-files": "64"}}
    assert decider.post("/v1/tables", asked).status_code == 201
    decider.drain()
    table = decider.get("/v1/tables/few")
    assert table["amplification"]["backlog_bytes_found"] == 0
    state = decider.run(decider.services.tables.states.state(table["id"]))
    assert state is not None
    assert state.summary.undue_bytes == table["layout"]["small_bytes"] > 0
