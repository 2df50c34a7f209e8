"""Strangers' places hold up neither known tables nor the memory, and none outside of the roots becomes a table."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decider.background.discovery import DiscoveryLimits
from decider.events.refresh_queue import RefreshQueue
from decider.events.resolver import CONCURRENT_PROBES, MAX_PROBES, MAX_PROBES_PER_DELIVERY, AllowedRoots, EventResolver
from decider.events.table_hint import TableHint
from decider.store.redis.queue_executor import connect
from decider.store.registry.table_registry import TableRegistry
from shared.paths.locations import table_id
from shared.table import TableRef
from tests.support import delta_tables
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.time_limits import scaled

pytestmark = pytest.mark.redis

ROOT = "s3://lake"


class SlowLake:
    """A store that answers when it is allowed to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = asyncio.Semaphore(0)

    async def has_table(self, path: str) -> bool:
        """Say that there is no table, in the end."""
        assert path
        self.begun.release()
        await self.go.wait()
        return False

    def path_of(self, location: str) -> str:
        """Return the location without its root."""
        return location.removeprefix(ROOT)


async def never(_: TableRef, __: int | None) -> None:
    """Look at nothing."""
    raise AssertionError("the inbox does not run")


async def test_an_event_of_a_catalog_refreshes_the_table_of_its_name_in_every_catalog_and_one_registered_by_it(
    redis_url: str,
) -> None:
    async with connect(redis_url) as redis:
        registry, inbox = TableRegistry(redis, now_ms=lambda: 0), RefreshQueue(never)
        roots = ("catalog://a", "catalog://b/db", ROOT)
        intake = EventResolver(registry, inbox, AllowedRoots(roots))
        places = ["catalog://a/db/t", "catalog://b/db/t", f"{ROOT}/renamed"]
        for number, place in enumerate(places[:2]):
            await registry.register(TableRef(table_id(place), f"t{number}", place))
        hint = TableHint(name="db.t", catalog_path=("db", "t"))
        assert await intake.accept([hint]) == (1, {})
        assert inbox.backlog == 2
        await registry.register(TableRef(table_id(places[2]), "db.t", places[2]))
        assert await intake.accept([hint]) == (1, {})
        assert inbox.backlog == 3
        # A name that is too long for a location is no table, and no error of the other events.
        long = TableHint(catalog_path=("d" * 1_000, "t" * 1_042))
        assert await intake.accept([long, hint]) == (1, {"unknown_table": 1})


async def test_known_tables_do_not_wait_for_strangers_and_looks_do_not_pile_up(redis_url: str) -> None:
    async with connect(redis_url) as redis:
        registry, inbox, lake = TableRegistry(redis, now_ms=lambda: 0), RefreshQueue(never), SlowLake()
        intake = EventResolver(registry, inbox, AllowedRoots((ROOT,), lambda _: lake))
        known = f"{ROOT}/known"
        await registry.register(TableRef(table_id(known), "known", known))

        def delivery(number: int) -> list[TableHint]:
            places = [f"{ROOT}/forged/{number}/{one}" for one in range(MAX_PROBES_PER_DELIVERY)]
            return [TableHint(location=place) for place in (*places, known)]

        async with asyncio.TaskGroup() as group:
            slow = [
                group.create_task(intake.accept(delivery(number)))
                for number in range(MAX_PROBES // MAX_PROBES_PER_DELIVERY)
            ]
            for _ in range(CONCURRENT_PROBES):
                await lake.begun.acquire()
            async with asyncio.timeout(scaled(30)):
                while inbox.backlog == 0 or intake.probing < MAX_PROBES:  # noqa: ASYNC110 - a number is waited for
                    await asyncio.sleep(0)
                assert await intake.accept(delivery(-1)) == (1, {"unknown_table_limit": MAX_PROBES_PER_DELIVERY})
            assert not any(task.done() for task in slow)
            lake.go.set()
        assert [await task for task in slow] == [(1, {"table_not_found": MAX_PROBES_PER_DELIVERY})] * len(slow)
        assert (await intake.accept(delivery(-1)))[1] == {"table_not_found": MAX_PROBES_PER_DELIVERY}


FAST = DiscoveryLimits(interval_s=0, requests_per_s=10_000.0)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A root with a link to a table that lies outside of it, and one to the folder above that table."""
    (tmp_path / "lake" / "sales").mkdir(parents=True)
    WrittenTable(tmp_path / "secret" / "payroll")
    (tmp_path / "lake" / "sales" / "payroll").symlink_to(tmp_path / "secret" / "payroll")
    (tmp_path / "lake" / "all").symlink_to(tmp_path / "secret")
    return tmp_path / "lake"


@pytest.fixture
def decider(redis_url: str, lake: Path) -> Iterator[LiveDecider]:
    with LiveDecider(decider_settings(redis_url, roots=(lake.as_uri(),), discovery=FAST)) as live:
        yield live


def names(decider: LiveDecider) -> list[str]:
    return [table["name"] for table in decider.get("/v1/tables")["tables"]]


def test_a_link_out_of_the_roots_is_registered_by_no_call_event_or_walk(decider: LiveDecider, lake: Path) -> None:
    WrittenTable(lake / "sales" / "orders")
    outside = decider.post("/v1/tables", {"location": (lake.parent / "secret" / "payroll").as_uri()})
    assert 400 <= outside.status_code < 500
    for place in (lake / "sales" / "payroll", lake / "all" / "payroll"):
        answer = decider.post("/v1/tables", {"location": place.as_uri()})
        assert answer.status_code == outside.status_code
        assert "by a link" in answer.text
        reported = decider.post("/v1/events", {"table": place.as_uri()}).json()
        assert reported["ignored"] == [{"reason": "outside_allowed_roots", "count": 1}]
    (found,) = decider.run(decider.services.requests.discovery.run_once())
    assert (found.tables, found.new_tables, found.unreadable) == (1, 1, 2)
    assert "by a link" in found.error
    assert names(decider) == ["sales.orders"]


def test_a_table_that_became_a_link_after_it_was_registered_is_refused(decider: LiveDecider, lake: Path) -> None:
    WrittenTable(lake / "sales" / "orders")
    name = decider.register(lake / "sales" / "orders")
    (lake / "sales" / "orders").rename(lake / "moved")
    (lake / "sales" / "orders").symlink_to(lake.parent / "secret" / "payroll")
    decider.sweep()
    assert "by a link" in decider.get(f"/v1/tables/{name}")["refusal"]["reason"]


def commit(table: Path, *actions: dict[str, Any]) -> None:
    """Commit as a foreign writer does."""
    info = {"commitInfo": {"timestamp": 1_767_225_600_000, "operation": "WRITE"}}
    file = table / "_delta_log" / f"{delta_tables.newest(table) + 1:020d}.json"
    file.write_text("\n".join(map(json.dumps, [info, *actions])))


@pytest.mark.parametrize("path", ["{victim}/part-0.parquet", "../../secret/payroll/x.parquet", "%2e%2e/x.parquet"])
def test_a_table_that_names_a_file_of_another_is_refused_until_it_no_longer_does(
    decider: LiveDecider, lake: Path, path: str
) -> None:
    table = WrittenTable(lake / "sales" / "orders", days=("2026-01-01",))
    name = decider.register(table.path)
    outside = path.format(victim=(lake.parent / "secret" / "payroll").as_uri())
    add = next(iter(delta_tables.live(table.path).values())) | {"path": outside, "dataChange": True}
    commit(table.path, {"add": add})
    table_jobs = decider.get("/v1/jobs", table=name)["jobs"]
    decider.sweep()
    assert outside in decider.get(f"/v1/tables/{name}")["refusal"]["reason"]
    assert decider.get("/v1/jobs", table=name)["jobs"] == table_jobs
    assert decider.post(f"/v1/tables/{name}/optimize", {"dry_run": True}).status_code >= 400
    gone = {key: add[key] for key in ("path", "partitionValues", "size")}
    commit(table.path, {"remove": gone | {"dataChange": True, "extendedFileMetadata": True}})
    decider.sweep()
    status = decider.get(f"/v1/tables/{name}")
    assert (status["refusal"], status["state"]["version"]) == (None, delta_tables.newest(table.path))
