"""Tables, names, overrides and pauses outlive Redis: real deciders, a real Redis that loses what it had."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from decider.storage.numbered_objects import CONDITION_CHECK, NumberedObjects
from decider.storage.object_reads import ReadMeter
from decider.storage.stores import ObjectStores
from decider.store.registry.registry_document import SavedEntry
from decider.store.registry.saved_registry import SavedRegistry
from shared.errors import PermanentError, RetryableError
from shared.paths.store_options import StoreOptions
from shared.queue import keys
from tests.support.go_programs import MINIO
from tests.support.live_decider import LiveDecider, WrittenTable, deciders
from tests.support.minio import Minio
from tests.support.redis_server import RedisServer
from tests.support.s3_server import S3Server
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "registry"


@pytest.fixture
def start(own_redis_server: RedisServer, state: Path) -> Iterator[Callable[..., LiveDecider]]:
    """Start deciders that share a Redis and a saved registry."""
    with deciders(own_redis_server.url, state=state.as_uri()) as start_one:
        yield start_one


@pytest.fixture
def decider(start: Callable[..., LiveDecider]) -> LiveDecider:
    return start()


def listed(live: LiveDecider) -> dict[str, dict[str, Any]]:
    """Return what is registered, by name; nothing while Redis restarts."""
    answer = live.client.get("/v1/tables")
    tables = answer.json()["tables"] if answer.status_code == httpx.codes.OK else ()
    kept = ("id", "location", "tenant", "properties")
    return {table["name"]: {field: table[field] for field in kept} for table in tables}


def register_three(live: LiveDecider, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Register tables, and rename, move, override and pause one of each."""
    for name in ("orders", "clicks", "users"):
        live.register(WrittenTable(tmp_path / name).path, name)
    live.client.patch("/v1/tables/orders", json={"name": "sales.orders", "tenant": "sales"}).raise_for_status()
    overrides = {"properties": {"lakewright.enabled": "false"}}
    live.client.patch("/v1/tables/clicks", json=overrides).raise_for_status()
    live.client.post("/v1/tables/users/pause").raise_for_status()
    weight = {"scope": "tenant", "name": "sales", "weight": 3, "limit": 2}
    live.client.put("/v1/queue/weights", json=weight).raise_for_status()
    live.client.patch("/v1/queue/settings", json={"max_attempts": 4}).raise_for_status()
    return listed(live)


def expect_all(live: LiveDecider, tables: dict[str, dict[str, Any]]) -> None:
    """Wait until everything of `register_three` is there, and read by the decider."""
    until("all tables are back", lambda: listed(live) == tables)
    live.drain()
    for name in tables:
        until(f"{name} is read again", lambda name=name: live.get(f"/v1/tables/{name}")["state"] is not None)  # type: ignore[misc]
    users = tables["users"]["id"]
    settings = live.get("/v1/queue")["settings"]
    assert (settings[f"limit:table|{users}"], settings["weight:tenant|sales"]) == ("!", "3")
    assert settings["limit:tenant|sales"] == "2"
    assert live.run(live.services.queue.admin.settings()).max_attempts == 4


def flush(server: RedisServer, _: Path) -> None:
    with server.client() as client:
        client.flushall()


def replace_server(server: RedisServer, _: Path) -> None:
    server.kill()
    for path in server.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    server.start()


LOSSES: dict[str, Callable[[RedisServer, Path], None]] = {"flushall": flush, "a new server": replace_server}


@pytest.mark.parametrize("loss", LOSSES)
def test_all_tables_and_what_operators_set_come_back_after_a_loss_of_redis(
    decider: LiveDecider, own_redis_server: RedisServer, tmp_path: Path, loss: str
) -> None:
    tables = register_three(decider, tmp_path)
    LOSSES[loss](own_redis_server, tmp_path)
    expect_all(decider, tables)


def test_an_empty_redis_gets_the_tables_from_a_decider_that_starts(
    start: Callable[..., LiveDecider], own_redis_server: RedisServer, tmp_path: Path
) -> None:
    first = start()
    tables = register_three(first, tmp_path)
    first.close()
    replace_server(own_redis_server, tmp_path)
    expect_all(start(), tables)


def test_a_backup_of_yesterday_becomes_what_is_saved_today(
    decider: LiveDecider, own_redis_server: RedisServer, tmp_path: Path
) -> None:
    """Since the backup, a table was registered, one unregistered, and the others changed."""
    removed = decider.register(WrittenTable(tmp_path / "removed").path, "removed")
    decider.register(WrittenTable(tmp_path / "orders").path, "orders")
    backup = tmp_path / "backup"
    own_redis_server.kill()
    shutil.copytree(own_redis_server.folder, backup, ignore=shutil.ignore_patterns("*.sock"))
    own_redis_server.start()
    until("Redis is back", lambda: listed(decider))
    # A change answers 503 until the registry is merged with the one that is saved.
    until("the table is unregistered", lambda: decider.client.delete(f"/v1/tables/{removed}").is_success)
    decider.client.patch("/v1/tables/orders", json={"name": "sales.orders", "tenant": "sales"}).raise_for_status()
    decider.register(WrittenTable(tmp_path / "new").path, "new")
    tables = listed(decider)
    assert tables.keys() == {"new", "sales.orders"}
    own_redis_server.kill()
    shutil.rmtree(own_redis_server.folder)
    shutil.copytree(backup, own_redis_server.folder)
    own_redis_server.start()
    until("the registry is that of today", lambda: listed(decider) == tables)
    with own_redis_server.client() as client:
        until("nothing is left of the removed table", lambda: not list(client.scan_iter("*removed-*")))


def test_an_event_in_an_emptied_redis_does_not_replace_what_was_set_for_its_table(
    start: Callable[..., LiveDecider], own_redis_server: RedisServer, tmp_path: Path
) -> None:
    """The event comes before the registry is restored, and its table lies below an allowed root."""
    decider = start(roots=(tmp_path.as_uri(),))
    tables = register_three(decider, tmp_path)
    places = [{"table": table["location"]} for table in tables.values()]
    flush(own_redis_server, tmp_path)
    assert decider.post("/v1/events", places).json()["accepted"] == len(places)
    expect_all(decider, tables)
    with own_redis_server.client() as client:
        assert client.get(keys.MERGED_REGISTRY) is not None


def test_two_deciders_that_register_at_once_save_all(
    decider: LiveDecider, start: Callable[..., LiveDecider], own_redis_server: RedisServer, tmp_path: Path
) -> None:
    other = start()
    paths = [WrittenTable(tmp_path / f"t{number}").path for number in range(20)]
    chosen = [(decider, other)[number % 2] for number in range(len(paths))]
    # FastAPI makes a route at its first request, with warnings switched off, for all threads of a process alike.
    for live, path in zip(chosen[:2], paths[:2], strict=True):
        live.register(path, path.name)
    with ThreadPoolExecutor(8) as callers:
        list(callers.map(lambda live, path: live.register(path, path.name), chosen[2:], paths[2:]))
    tables = listed(decider)
    assert tables.keys() == {path.name for path in paths}
    flush(own_redis_server, tmp_path)
    until("all tables are back", lambda: listed(decider) == tables)


def test_a_table_that_is_registered_is_saved_when_the_call_returns(
    decider: LiveDecider, tmp_path: Path, state: Path
) -> None:
    decider.register(WrittenTable(tmp_path / "orders").path, "orders")
    assert b'"name":"orders"' in max(state.iterdir()).read_bytes()
    decider.client.delete("/v1/tables/orders").raise_for_status()
    assert b'"name":"orders"' not in max(state.iterdir()).read_bytes()


def test_a_change_that_cannot_be_saved_is_refused_and_not_in_force(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decider.register(WrittenTable(tmp_path / "orders").path, "orders")
    before = listed(decider)
    settings = decider.get("/v1/queue")["settings"]

    async def full(*_: Any) -> bool:
        raise RetryableError("No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(NumberedObjects, "create", full)
        late = {"location": str(WrittenTable(tmp_path / "late").path), "name": "late"}
        answers = [
            decider.client.patch("/v1/tables/orders", json={"tenant": "another"}),
            decider.post("/v1/tables", late),
            decider.post("/v1/tables", late | {"paused": True}),
            decider.client.delete("/v1/tables/orders"),
            decider.post("/v1/tables/orders/pause", {}),
            decider.post("/v1/queue/pause", {"scope": "queue"}),
            decider.client.put("/v1/queue/weights", json={"scope": "tenant", "name": "a", "weight": 2}),
            decider.client.patch("/v1/queue/settings", json={"max_attempts": 7}),
        ]
        assert {answer.status_code for answer in answers} == {503}
        assert listed(decider) == before
        assert decider.get("/v1/queue")["settings"] == settings
    assert decider.client.patch("/v1/tables/orders", json={"tenant": "another"}).is_success
    assert listed(decider)["orders"]["tenant"] == "another"


def test_a_change_whose_disk_is_full_just_after_it_was_asked_says_that_it_is_in_force(
    decider: LiveDecider, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = NumberedObjects.create

    async def full_once_it_is_in_force(objects: NumberedObjects, number: int, data: bytes) -> bool:
        if b'"name":"late"' in data:
            raise RetryableError("No space left on device")
        return await create(objects, number, data)

    late = {"location": str(WrittenTable(tmp_path / "late").path), "name": "late"}
    with monkeypatch.context() as disk:
        disk.setattr(NumberedObjects, "create", full_once_it_is_in_force)
        refused = decider.post("/v1/tables", late)
    assert (refused.status_code, "in force but not yet saved" in refused.json()["detail"]) == (503, True)
    assert decider.post("/v1/tables", late).status_code == httpx.codes.OK
    assert b'"name":"late"' in max(state.iterdir()).read_bytes()


def test_while_no_saved_generation_is_whole_a_registration_is_refused_until_it_is_restored(
    start: Callable[..., LiveDecider], tmp_path: Path, state: Path
) -> None:
    first = start()
    first.register(WrittenTable(tmp_path / "orders").path, "orders")
    *older, only = sorted(state.glob("*.json"))
    for one in older:
        one.unlink()
    whole = only.read_bytes()
    only.write_bytes(whole[:-10])
    other = start()
    asked = {"location": str(WrittenTable(tmp_path / "late").path), "name": "late"}
    refused = other.post("/v1/tables", asked)
    assert refused.status_code == httpx.codes.BAD_GATEWAY
    assert f"{only.as_uri()} is damaged" in refused.json()["detail"]
    only.write_bytes(whole)
    until("the registration is accepted", lambda: other.post("/v1/tables", asked).is_success)
    assert b'"name":"late"' in max(state.iterdir()).read_bytes()


@pytest.mark.s3
def test_of_writers_to_an_s3_server_none_loses_a_change(tmp_path: Path) -> None:
    with closing(Minio(MINIO.binary(), tmp_path / "minio").start()) as server:
        server.client.create_bucket(Bucket="state")

        async def write() -> set[str]:
            stores = ObjectStores(StoreOptions({"s3://": server.options()}))
            writers = [
                SavedRegistry(NumberedObjects(stores, "s3://state/lakewright", ReadMeter()), lambda: 1)
                for _ in range(3)
            ]
            changes = [{f"table/t{number}": SavedEntry(1, {"id": "t", "name": f"t{number}"})} for number in range(12)]
            await asyncio.gather(*(writers[number % 3].save(change) for number, change in enumerate(changes)))
            return set((await writers[0].save({})).entries)

        assert asyncio.run(write()) == {f"table/t{number}" for number in range(12)}


CHANGE = {"table/a": SavedEntry(1, {"id": "a", "name": "a"})}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    made = S3Server("state")
    yield made
    made.close()


def saved_at(server: S3Server, folder: str) -> SavedRegistry:
    stores = ObjectStores(StoreOptions({"s3://": server.options()}))
    return SavedRegistry(NumberedObjects(stores, f"s3://state/{folder}", ReadMeter()), lambda: 1)


def test_a_store_that_replaces_what_it_should_create_is_refused(server: S3Server) -> None:
    server.gate.deaf = "/state/deaf/"
    saved = saved_at(server, "deaf")
    for _ in range(2):
        with pytest.raises(PermanentError, match="s3://state/deaf: the store replaces objects"):
            asyncio.run(saved.save(CHANGE))
    assert server.keys("state") == [f"deaf/{CONDITION_CHECK}"]


def test_a_store_is_checked_once_by_each_process(server: S3Server) -> None:
    saved = saved_at(server, "kept")
    asyncio.run(saved.save(CHANGE))
    asyncio.run(saved.save({"table/b": SavedEntry(1, {"id": "b", "name": "b"})}))
    checks = [one for one in server.gate.seen if one.path == f"/state/kept/{CONDITION_CHECK}"]
    assert len(checks) == 2
    assert asyncio.run(saved_at(server, "kept").save({})).generation == 2
