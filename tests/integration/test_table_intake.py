"""How tables come and go: by event, by discovery and by call; renamed, retried, vanished, and back after a loss."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis as redis_library
from deltalake import write_deltalake

from decider.background import discovery as discovery_module
from decider.background.discovery import DiscoveryLimits
from decider.store.registry.discovery_lease import DiscoveryState
from decider.tracking.refresh import DAY_MS, VANISHED_DAYS
from services.decider import build
from shared.paths.store_options import StoreOptions
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.waiting import until

pytestmark = pytest.mark.redis

FAST: dict[str, Any] = {"discovery": DiscoveryLimits(interval_s=0, requests_per_s=10_000.0)}


@pytest.fixture
def decider(redis_url: str, lake: Path) -> Iterator[LiveDecider]:
    with LiveDecider(settings(redis_url, lake)) as live:
        yield live


def settings(redis_url: str, lake: Path, **changes: Any) -> Any:
    return decider_settings(redis_url, roots=(lake.as_uri(),), buckets={"lake": lake.as_uri()}, **(FAST | changes))


def names(decider: LiveDecider) -> list[str]:
    return [table["name"] for table in decider.get("/v1/tables")["tables"]]


def event(path: str) -> dict[str, Any]:
    key = f"{path}/_delta_log/{0:020d}.json"
    about = {"bucket": {"name": "lake"}, "object": {"key": key, "size": 1, "eTag": "e", "sequencer": "0A"}}
    record = {"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": about}
    return {"Records": [record]}


def test_forged_events_below_a_root_register_nothing_and_cost_a_bounded_number_of_requests(
    decider: LiveDecider, lake: Path
) -> None:
    WrittenTable(lake / "sales" / "orders")
    (lake / "empty" / "_delta_log").mkdir(parents=True)
    forged = [event(f"forged/{number}")["Records"][0] for number in range(300)]
    forged += event("empty")["Records"] + event("sales/orders")["Records"]
    before = decider.reads()
    taken = {"accepted": 0}
    for batch in ({"Records": forged[:300]}, {"Records": forged[300:]}):
        answer = decider.post("/v1/events", batch).json()
        taken["accepted"] += answer["accepted"]
        for one in answer["ignored"]:
            taken[one["reason"]] = taken.get(one["reason"], 0) + one["count"]
    assert taken == {"accepted": 1, "table_not_found": 65, "unknown_table_limit": 236}
    decider.drain()
    assert names(decider) == ["sales.orders"]
    assert decider.reads() - before < 80


def test_a_table_is_named_and_given_to_a_tenant_by_its_place(decider: LiveDecider, lake: Path) -> None:
    for place in ("sales/orders", "flat", "a/b/c/d/e", "s ales/or;ders"):
        WrittenTable(lake / place)
    places = [{"table": (lake / place).as_uri()} for place in ("sales/orders", "flat", "a/b/c/d/e", "s ales/or;ders")]
    assert decider.post("/v1/events", places).json()["accepted"] == 4
    decider.drain()
    tenants = {table["name"]: table["tenant"] for table in decider.get("/v1/tables")["tables"]}
    assert tenants == {"sales.orders": "sales", "flat": "default", "b.c.d.e": "a", "s-ales.or-ders": "s-ales"}


def test_a_table_that_was_found_first_takes_the_name_that_a_call_gives_it(decider: LiveDecider, lake: Path) -> None:
    WrittenTable(lake / "sales" / "orders")
    assert decider.post("/v1/events", event("sales/orders")).json()["accepted"] == 1
    body = {"location": str(lake / "sales" / "orders"), "name": "shop.orders", "tenant": "shop"}
    first, again = (decider.post("/v1/tables", body) for _ in range(2))
    assert [first.status_code, again.status_code] == [200, 200]
    assert (first.json()["name"], first.json()["tenant"]) == ("shop.orders", "shop")
    decider.run(decider.services.requests.discovery.run_once())
    assert names(decider) == ["shop.orders"]
    assert decider.post("/v1/tables", body | {"name": "other"}).status_code == 409


def test_two_places_of_one_name_are_two_tables(decider: LiveDecider, lake: Path) -> None:
    for place in ("a/orders", "a-/orders"):
        WrittenTable(lake / place)
        decider.post("/v1/events", event(place))
    decider.drain()
    assert len(names(decider)) == 2
    assert "a.orders" in names(decider)


@pytest.mark.parametrize("place", ["_self-test-1", "lakewright-self-test/_self-test-2", ".trash/t"])
def test_an_event_about_a_hidden_folder_registers_nothing_and_a_person_may(
    decider: LiveDecider, lake: Path, place: str
) -> None:
    """Each start of an actor writes such a table: below a root, the bucket's own events once registered it."""
    WrittenTable(lake / place)
    answer = decider.post("/v1/events", event(place)).json()
    assert [one["reason"] for one in answer["ignored"]] == ["table_not_found"]
    assert names(decider) == []
    decider.post("/v1/tables", {"location": (lake / place).as_uri(), "name": "mine"}).raise_for_status()
    assert names(decider) == ["mine"]


def test_discovery_finds_every_table_below_the_roots_and_shows_how_far_it_came(
    decider: LiveDecider, lake: Path
) -> None:
    for place in ("sales/orders", "sales/items", "ops/logs/raw", "größe/ä b"):
        WrittenTable(lake / place)
    # None of these is a table: inside another one, hidden, too deep, without a commit, a partition.
    shutil.copytree(lake / "sales" / "orders", lake / "sales" / "orders" / "copy")
    for place in ("_tmp/t", ".trash/t", "1/2/3/4/5/6", "dt=2026-01-01/t"):
        shutil.copytree(lake / "sales" / "items", lake / place)
    (lake / "empty" / "_delta_log").mkdir(parents=True)
    (lake / "file").write_text("no folder")
    assert decider.get("/v1/discovery")["roots"][0]["state"] == "waiting"
    (found,) = decider.run(decider.services.requests.discovery.run_once())
    assert (found.state, found.tables, found.new_tables, found.error) == (DiscoveryState.DONE, 4, 4, "")
    decider.drain()
    locations = {table["location"] for table in decider.get("/v1/tables")["tables"]}
    expected = ("sales/orders", "sales/items", "ops/logs/raw", "größe/ä b")
    assert locations == {(lake / place).as_uri() for place in expected}
    (root,) = decider.get("/v1/discovery")["roots"]
    assert (root["state"], root["tables"], root["finished_at"] is not None) == ("done", 4, True)


def test_a_walk_that_a_decider_left_is_continued_by_another_from_its_place(
    redis_url: str, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        WrittenTable(lake / f"t{number}")
    monkeypatch.setattr(discovery_module, "SAVE_EVERY", 1)
    with LiveDecider(settings(redis_url, lake)) as first, LiveDecider(settings(redis_url, lake)) as second:
        walk = first.services.requests.discovery
        adopt, seen = walk._adopt, []

        async def dies_at_the_fifth(location: str) -> bool:
            seen.append(location)
            if len(seen) == 5:
                raise RuntimeError("the process ended")
            return await adopt(location)

        walk._adopt = dies_at_the_fifth
        with pytest.raises(RuntimeError, match="the process ended"):
            first.run(walk.run_once())
        assert len(names(first)) == 4
        refreshed: list[str] = []
        theirs = second.services.requests.discovery
        again = theirs._adopt

        async def noted(location: str) -> bool:
            refreshed.append(location)
            return await again(location)

        theirs._adopt = noted
        (found,) = second.run(theirs.run_once())
        assert found.state is DiscoveryState.DONE
        assert len(names(second)) == 9
        assert len(refreshed) < 9, "the scan began again"
        theirs.pace = DiscoveryLimits(interval_s=3_600.0)
        assert second.run(theirs.run_once()) == (), "what was just walked is not due"


def test_two_deciders_walk_one_root_once(redis_url: str, lake: Path) -> None:
    WrittenTable(lake / "t")
    with LiveDecider(settings(redis_url, lake)) as first, LiveDecider(settings(redis_url, lake)) as second:
        rounds = second.services.requests.discovery._rounds
        assert second.run(rounds.acquire(lake.as_uri()))
        assert first.run(first.services.requests.discovery.run_once()) == ()
        second.run(rounds.release(lake.as_uri()))
        assert len(first.run(first.services.requests.discovery.run_once())) == 1


def test_the_registry_comes_back_from_the_roots_after_redis_has_lost_everything(
    redis_url: str, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery_module, "TICK_S", 0.05)
    tables = [WrittenTable(lake / "sales" / f"t{number}", seed=number) for number in range(3)]
    for table in tables:
        table.append(9)
    # The duty itself, not a call of it: what Redis knows nothing of is due at once.
    with LiveDecider(settings(redis_url, lake, discovery=DiscoveryLimits(requests_per_s=10_000.0))) as live:
        expected = [f"sales.t{number}" for number in range(3)]
        until("the tables are found", lambda: names(live) == expected)
        live.drain()
        partitions = {name: live.partitions(name) for name in expected}
        with redis_library.Redis.from_url(redis_url) as client:
            client.flushall()
        assert names(live) == []
        until("the tables are found again", lambda: names(live) == expected)
        live.drain()
        assert {name: live.partitions(name) for name in expected} == partitions
        assert partitions["sales.t0"] == tables[0].count_files()


def test_a_root_that_cannot_be_listed_says_so_and_the_others_are_walked(redis_url: str, lake: Path) -> None:
    WrittenTable(lake / "t")
    roots = ((lake.parent / "absent").as_uri(), lake.as_uri())
    with LiveDecider(decider_settings(redis_url, roots=roots, **FAST)) as live:
        found = live.run(live.services.requests.discovery.run_once())
        assert [one.state for one in found] == [DiscoveryState.FAILED, DiscoveryState.DONE]
        assert "absent" in live.get("/v1/discovery")["roots"][0]["error"]
        assert names(live) == ["t"]


def test_a_table_is_renamed_with_its_history_and_its_policy_changes_with_the_registration(
    decider: LiveDecider, lake: Path
) -> None:
    table = WrittenTable(lake / "orders", days=("2026-01-01",))
    table.append(3)
    decider.register(table.path, "orders")
    changed = decider.client.patch(
        "/v1/tables/orders", json={"name": "sales.orders", "tenant": "sales", "properties": {"lakewright.fan-in": "4"}}
    )
    assert changed.status_code == 200, changed.text
    decider.drain()
    assert names(decider) == ["sales.orders"]
    assert decider.client.get("/v1/tables/orders").status_code == 404
    status = decider.get("/v1/tables/sales.orders")
    values = {one["property"]: one for one in status["policy"]["values"]}
    assert (values["lakewright.fan-in"]["value"], values["lakewright.fan-in"]["source"]) == (4, "request")
    assert (status["tenant"], status["state"]["version"]) == ("sales", table.version)
    assert "registration changed" in status["state"]["rebuild_reason"]
    WrittenTable(lake / "other")
    decider.register(lake / "other", "other")
    taken = decider.client.patch("/v1/tables/other", json={"name": "sales.orders"})
    assert (taken.status_code, taken.json()["field"]) == (422, "name")
    assert names(decider) == ["other", "sales.orders"]


@pytest.mark.parametrize(
    "stated",
    [{"lakewright.fan-in": "many"}, {"lakewright.no-such": "1"}, {"fan-in": "8"}, {"acid.data.retain.hours": "1h"}],
)
def test_properties_that_cannot_be_used_are_refused_at_registration(
    decider: LiveDecider, lake: Path, stated: dict[str, str]
) -> None:
    WrittenTable(lake / "orders")
    answer = decider.post("/v1/tables", {"location": str(lake / "orders"), "properties": stated})
    assert (answer.status_code, answer.json()["field"]) == (422, f"properties.{next(iter(stated))}")
    assert names(decider) == []


def test_a_table_that_vanished_says_so_has_no_jobs_and_comes_back_as_it_then_is(
    decider: LiveDecider, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decider.tracking.table_context.TRUSTED_MS", 0)
    table = WrittenTable(lake / "orders", days=("2026-01-01",))
    table.append(11)
    name = decider.register(table.path)
    assert len(decider.get("/v1/jobs", table=name)["jobs"]) == 1
    (lake / "orders").rename(lake.parent / "elsewhere")
    decider.sweep()
    status = decider.get(f"/v1/tables/{name}")
    assert (status["refusal"]["missing"], status["state"]) == (True, None)
    assert decider.get("/v1/jobs")["jobs"] == []
    since = status["refusal"]["since"]
    decider.sweep()
    assert decider.get(f"/v1/tables/{name}")["refusal"]["since"] == since
    back = WrittenTable(lake / "orders", seed=5, days=("2026-02-02",))
    back.append(10)
    decider.sweep()
    status = decider.get(f"/v1/tables/{name}")
    assert (status["refusal"], status["state"]["version"]) == (None, 10)
    assert decider.partitions(name) == back.count_files()
    assert len(decider.get("/v1/jobs", table=name)["jobs"]) == 1


def test_a_table_that_has_been_gone_for_long_is_forgotten(
    redis_url: str, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decider.tracking.table_context.TRUSTED_MS", 0)
    late_ms = [0]
    clock = build.now_ms
    monkeypatch.setattr(build, "now_ms", lambda: clock() + late_ms[0])
    with LiveDecider(settings(redis_url, lake)) as live:
        WrittenTable(lake / "orders")
        live.register(lake / "orders")
        shutil.rmtree(lake / "orders")
        live.sweep()
        assert len(names(live)) == 1
        late_ms[0] = int((VANISHED_DAYS + 1) * DAY_MS)
        live.sweep()
        assert names(live) == []


def test_tables_in_a_bucket_are_found_and_checked_as_those_in_folders_are(redis_url: str) -> None:
    from tests.support.s3_server import S3Server

    s3 = S3Server("found")
    live = None
    try:
        data = pa.table({"dt": ["2026-01-01"], "value": [1.0]})
        for place in ("sales/orders", "ops/logs"):
            write_deltalake(
                f"s3://found/base/{place}", data, storage_options=s3.options() | {"conditional_put": "etag"}
            )
        options = StoreOptions({"s3://found": s3.options()})
        live = LiveDecider(
            decider_settings(redis_url, roots=("s3://found/base",), store_options=options, **FAST)
        ).start()
        answer = live.post(
            "/v1/events", [{"table": "s3://found/base/sales/none"}, {"table": "s3://found/base/ops/logs"}]
        )
        assert (answer.json()["accepted"], answer.json()["ignored"][0]["reason"]) == (1, "table_not_found")
        assert names(live) == ["ops.logs"]
        (found,) = live.run(live.services.requests.discovery.run_once())
        assert (found.state, found.tables, found.new_tables) == (DiscoveryState.DONE, 2, 1)
        assert names(live) == ["ops.logs", "sales.orders"]
    finally:
        if live is not None:
            live.close()
        s3.close()
