"""A file declares tables: real deciders register, change and unregister what it says, and calls change none of them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from decider.store.registry.table_registry import StoredRefusal
from shared.queue import keys
from tests.support.live_decider import LiveDecider, WrittenTable, deciders
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tables.yaml"
    path.write_text("tables: []")
    return path


@pytest.fixture
def start(own_redis_server: RedisServer, file: Path) -> Iterator[Callable[..., LiveDecider]]:
    """Start deciders that share a Redis and read the file."""
    with deciders(own_redis_server.url, tables_file=file) as start_one:
        yield start_one


def entry(table: Path, **fields: Any) -> dict[str, Any]:
    return {"location": str(table), **fields}


def write(file: Path, *entries: dict[str, Any]) -> None:
    """Replace the file as a mounted one is replaced: another file takes its name."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"tables": entries}))
    new.replace(file)


def apply(live: LiveDecider) -> Any:
    """Apply the file now."""
    return live.run(live.task("tables_file").run_once())


def listed(live: LiveDecider) -> dict[str, dict[str, Any]]:
    """Return what is registered, by name."""
    kept = ("tenant", "properties", "declared")
    return {one["name"]: {field: one[field] for field in kept} for one in live.get("/v1/tables")["tables"]}


def is_paused(live: LiveDecider, name: str) -> bool:
    identity = live.get(f"/v1/tables/{name}")["id"]
    return f"limit:table|{identity}" in live.get("/v1/queue")["settings"]


def written(folder: Path, *names: str) -> list[Path]:
    return [WrittenTable(folder / name).path for name in names]


def test_tables_of_the_file_are_registered_read_and_paused_at_the_start(
    start: Callable[..., LiveDecider], file: Path, tmp_path: Path
) -> None:
    orders, clicks = written(tmp_path, "orders", "clicks")
    overrides = {"lakewright.target-file-size": "1mb"}
    write(
        file,
        entry(orders, name="sales.orders", tenant="sales", properties=overrides),
        entry(clicks, name="clicks", paused=True),
    )
    live = start()
    until("both tables are there", lambda: len(listed(live)) == 2)
    assert listed(live) == {
        "sales.orders": {"tenant": "sales", "properties": overrides, "declared": True},
        "clicks": {"tenant": "default", "properties": {}, "declared": True},
    }
    until("both are read", lambda: all(live.get(f"/v1/tables/{name}")["state"] for name in listed(live)))
    assert (is_paused(live, "sales.orders"), is_paused(live, "clicks")) == (False, True)
    status = live.get("/v1/status")["tables_file"]
    assert (status["path"], status["tables"], status["error"], status["problems"]) == (str(file), 2, "", [])


def test_a_change_of_the_file_is_applied_and_the_same_file_changes_nothing(
    start: Callable[..., LiveDecider], file: Path, tmp_path: Path
) -> None:
    orders, clicks = written(tmp_path, "orders", "clicks")
    write(file, entry(orders, name="orders", paused=True), entry(clicks, name="clicks"))
    live = start()
    until("the file is applied", lambda: len(listed(live)) == 2)
    # The names are exchanged, and a pause is no longer declared.
    write(file, entry(orders, name="clicks", tenant="b"), entry(clicks, name="orders"))
    assert apply(live).problems == ()
    assert {name: one["tenant"] for name, one in listed(live).items()} == {"clicks": "b", "orders": "default"}
    assert not is_paused(live, "clicks")
    assert live.get("/v1/tables/clicks")["location"] == orders.as_uri()
    assert apply(live).changed == 0
    before = live.run(live.services.tables.registry.revision())
    live.task("tables_file")._full_at_s = float("-inf")
    assert apply(live).changed == 0
    assert live.run(live.services.tables.registry.revision()) == before


def test_removing_an_entry_unregisters_only_what_came_from_the_file(
    start: Callable[..., LiveDecider], file: Path, tmp_path: Path, own_redis_server: RedisServer
) -> None:
    ours, theirs, other = written(tmp_path, "ours", "theirs", "other")
    live = start()
    for path in (theirs, other):
        live.register(path, path.name)
    write(file, entry(ours, name="ours", paused=True), entry(theirs, name="renamed", paused=True))
    assert apply(live).changed == 2
    live.drain()
    assert {name: one["declared"] for name, one in listed(live).items()} == {
        "ours": True,
        "renamed": True,
        "other": False,
    }
    identity = live.get("/v1/tables/ours")["id"]
    write(file)
    assert (apply(live).removed, apply(live).removed) == (2, 0)
    assert {name: one["declared"] for name, one in listed(live).items()} == {"renamed": False, "other": False}
    assert not is_paused(live, "renamed")
    with own_redis_server.client() as client:
        assert not list(client.scan_iter(f"*{identity}*"))
        assert f"limit:table|{identity}".encode() not in client.hgetall(keys.config("default"))


CALLS = {
    "PATCH": ("PATCH", "/v1/tables/orders", {"tenant": "mine"}),
    "DELETE": ("DELETE", "/v1/tables/orders", None),
    "register with other values": ("POST", "/v1/tables", {"location": "orders", "name": "mine"}),
    "register and pause": ("POST", "/v1/tables", {"location": "orders", "name": "orders", "paused": True}),
    "pause": ("POST", "/v1/tables/orders/pause", None),
    "resume": ("POST", "/v1/tables/orders/resume", None),
    "pause its scope": ("POST", "/v1/queue/pause", {"scope": "table", "name": "orders"}),
}


def test_calls_that_would_change_a_declared_table_are_refused_and_others_are_not(
    start: Callable[..., LiveDecider], file: Path, tmp_path: Path
) -> None:
    orders, clicks = written(tmp_path, "orders", "clicks")
    write(file, entry(orders, name="orders", paused=False), entry(clicks, name="clicks"))
    live = start()
    until("the file is applied", lambda: len(listed(live)) == 2)
    before = listed(live)
    identity = live.get("/v1/tables/orders")["id"]
    for name, (method, path, body) in CALLS.items():
        asked = dict(body or {})
        if "location" in asked:
            asked["location"] = str(orders)
        if "scope" in asked:
            asked["name"] = identity
        answer = live.client.request(method, path, json=asked or None)
        assert answer.status_code == httpx.codes.CONFLICT, (name, answer.text)
        if "other values" not in name:
            assert str(file) in answer.json()["detail"], name
    assert listed(live) == before
    # A pause that the file does not mention is the operators', and a registration that asks for nothing else is one.
    assert live.client.post("/v1/tables/clicks/pause").is_success
    assert apply(live).changed == 0
    assert is_paused(live, "clicks")
    assert live.post("/v1/tables", {"location": str(orders), "name": "orders"}).is_success


def test_a_damaged_file_is_refused_with_its_place_and_the_last_good_one_stays_in_force(
    start: Callable[..., LiveDecider], file: Path, tmp_path: Path, own_redis_server: RedisServer
) -> None:
    (orders,) = written(tmp_path, "orders")
    write(file, entry(orders, name="orders"))
    live = start()
    until("the file is applied", lambda: listed(live).keys() == {"orders"})
    file.write_text(f"tables:\n- location: {orders}\n  nam: x\n")
    assert apply(live).removed == 0
    assert live.get("/v1/status")["tables_file"]["error"].startswith(f"{file}:3:3: 'nam' is unknown")
    assert "lakewright_tables_file_accepted 0.0" in live.client.get("/metrics").text
    with own_redis_server.client() as client:
        client.flushall()
    until("the last good file is applied again", lambda: listed(live).keys() == {"orders"})
    file.unlink()
    assert apply(live).removed == 0
    assert "No such file" in live.get("/v1/status")["tables_file"]["error"]
    write(file)
    assert apply(live).removed == 1
    assert live.get("/v1/status")["tables_file"]["error"] == ""
    assert "lakewright_tables_file_accepted 1.0" in live.client.get("/metrics").text


def test_a_decider_that_starts_with_a_damaged_file_leaves_what_is_declared(
    start: Callable[..., LiveDecider], file: Path, tmp_path: Path
) -> None:
    (orders,) = written(tmp_path, "orders")
    write(file, entry(orders, name="orders"))
    first = start()
    until("the file is applied", lambda: listed(first).keys() == {"orders"})
    first.close()
    file.write_text("tables: [")
    live = start()
    until("the file is refused", lambda: live.get("/v1/status")["tables_file"]["error"])
    assert listed(live) == {"orders": {"tenant": "default", "properties": {}, "declared": True}}
    assert live.client.delete("/v1/tables/orders").status_code == httpx.codes.CONFLICT


def test_a_name_of_a_table_that_a_call_registered_is_not_taken_away(
    start: Callable[..., LiveDecider], file: Path, tmp_path: Path
) -> None:
    theirs, ours, found, more = written(tmp_path, "theirs", "ours", "found", "more")
    live = start(roots=(tmp_path.as_uri(),))
    live.register(theirs, "orders")
    live.run(live.services.requests.resolver.register_discovered(found.as_uri()))
    write(file, entry(ours, name="orders"), entry(more, name="found"))
    (problem,) = apply(live).problems
    assert "the name 'orders' belongs to" in problem
    assert live.get("/v1/status")["tables_file"]["problems"] == [problem]
    assert live.get("/v1/tables/orders")["location"] == theirs.as_uri()
    # One that discovery gave is.
    assert live.get("/v1/tables/found")["location"] == more.as_uri()
    assert len(listed(live)) == 3
    assert live.client.patch("/v1/tables/orders", json={"name": "theirs"}).is_success
    live.task("tables_file")._full_at_s = float("-inf")
    assert apply(live).problems == ()
    assert live.get("/v1/tables/orders")["location"] == ours.as_uri()


def test_a_decider_with_an_older_file_does_not_undo_a_newer_one(
    start: Callable[..., LiveDecider], file: Path, tmp_path: Path
) -> None:
    orders, clicks = written(tmp_path, "orders", "clicks")
    old = tmp_path / "old.yaml"
    write(old, entry(orders, name="orders"))
    write(file, entry(orders, name="orders"))
    late = start(tables_file=old)
    live = start()
    until("the file is applied", lambda: listed(live).keys() == {"orders"})
    apply(late)
    write(file, entry(orders, name="orders"), entry(clicks, name="clicks"))
    assert apply(live).changed == 1
    late.task("tables_file")._full_at_s = float("-inf")
    assert apply(late).removed == 0
    assert listed(late).keys() == {"orders", "clicks"}
    write(old)
    assert apply(late).removed == 2


def test_declared_tables_outlive_redis_as_such_and_without_the_setting_calls_change_them(
    start: Callable[..., LiveDecider], file: Path, tmp_path: Path, own_redis_server: RedisServer
) -> None:
    (orders,) = written(tmp_path, "orders")
    write(file, entry(orders, name="orders", tenant="sales"))
    state = (tmp_path / "registry").as_uri()
    first = start(state=state)
    until("the file is applied", lambda: listed(first).keys() == {"orders"})
    before = listed(first)
    first.close()
    with own_redis_server.client() as client:
        client.flushall()
    live = start(state=state, tables_file=None)
    until("the table is back", lambda: listed(live) == before)
    assert before["orders"]["declared"]
    assert live.get("/v1/status")["tables_file"] is None
    until("calls change it", lambda: live.client.patch("/v1/tables/orders", json={"tenant": "mine"}).is_success)


def test_a_declared_table_that_has_long_been_missing_stays_registered(
    start: Callable[..., LiveDecider], file: Path, tmp_path: Path
) -> None:
    write(file, entry(tmp_path / "later", name="later"))
    live = start()
    until("it is refused", lambda: "later" in listed(live) and live.get("/v1/tables/later")["refusal"])
    registry = live.services.tables.registry
    identity = live.get("/v1/tables/later")["id"]
    live.run(registry.set_refusal(identity, StoredRefusal(1, "missing", since_ms=1, is_missing=True)))
    live.sweep()
    refusal = live.get("/v1/tables/later")["refusal"]
    assert refusal["missing"]
    assert refusal["since"].startswith("1970")
    WrittenTable(tmp_path / "later")
    live.sweep()
    assert live.get("/v1/tables/later")["refusal"] is None
