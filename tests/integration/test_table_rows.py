"""The list of all tables equals what each table shows by itself, and follows commits, jobs and registrations."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from actor.queue_executor import SyncQueueExecutor
from decider.store.registry import table_index
from decider.store.registry.table_index import OVERLAP_MS, TableIndex, TableListing
from decider.store.registry.table_query import TableQuery, TableSort
from shared.errors import RetryableError
from shared.queue import commands, keys
from shared.queue.model import Band, Debounce, JobKey, JobRequest, RunResult
from shared.table import TableId, TableRef
from tests.support.delta_tables import HandTable
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.queue_bench import end_of
from tests.support.waiting import until

pytestmark = pytest.mark.redis


def rows(decider: LiveDecider, **query: Any) -> list[Any]:
    return decider.get("/v1/table-rows", **query)["rows"]  # type: ignore[no-any-return]


def row(decider: LiveDecider, name: str) -> Any:
    return next(one for one in rows(decider) if one["name"] == name)


def shown_by_itself(decider: LiveDecider, name: str) -> tuple[int, int, int, int, float]:
    table = decider.get(f"/v1/tables/{name}")
    layout = table["layout"]
    return table["state"]["version"], layout["files"], layout["bytes"], layout["files_needed"], layout["excess_ratio"]


def listed(decider: LiveDecider, name: str) -> tuple[int, int, int, int, float]:
    one = row(decider, name)
    return one["version"], one["files"], one["bytes"], one["files_needed"], one["excess_ratio"]


def test_figures_follow_commits_deletes_and_rebuilds(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t")
    decider.register(table.path, "a.t")
    for step in range(6):
        table.append(3) if step != 3 else table.delete("2026-01-02")
        if step == 4:
            decider.client.patch("/v1/tables/a.t", json={"properties": {"lakewright.target-file-size": "512kb"}})
        decider.post("/v1/events", {"table": "a.t", "version": table.version})
        decider.drain()
        until("the list has the version", lambda: row(decider, "a.t")["version"] == table.version)
        assert listed(decider, "a.t") == shown_by_itself(decider, "a.t")


def test_the_list_follows_registrations_refusals_and_jobs(decider: LiveDecider, tmp_path: Path) -> None:
    assert rows(decider) == []
    table = WrittenTable(tmp_path / "t", days=("2026-01-01",))
    table.append(8)
    decider.register(table.path, "a.t")
    until("it is listed", lambda: len(rows(decider)) == 1)
    until("its job is counted", lambda: row(decider, "a.t")["jobs_waiting"] == 1)
    assert row(decider, "a.t")["condition"] == "waiting"
    decider.post("/v1/tables", {"location": str(tmp_path / "none"), "name": "a.none"})
    until("a table that is missing is refused", lambda: rows(decider, condition="refused") != [])
    assert rows(decider, condition="refused")[0]["refusal"]["missing"]
    decider.client.patch("/v1/tables/a.t", json={"name": "b.t", "tenant": "other"})
    until("it has its new name", lambda: [one["name"] for one in rows(decider, tenant="other")] == ["b.t"])
    decider.client.delete("/v1/tables/b.t")
    until("it is listed no more", lambda: [one["name"] for one in rows(decider)] == ["a.none"])


def test_clients_that_ask_at_once_all_get_their_rows(decider: LiveDecider, tmp_path: Path) -> None:
    """They share one reading of the registrations, whoever of them ends first."""
    decider.register(WrittenTable(tmp_path / "t").path, "a.t")
    index = decider.services.tables.index

    async def ask() -> list[TableListing]:
        queries = [TableQuery(search="a"), TableQuery(), TableQuery(sort=TableSort.FILES)] * 4
        return await asyncio.gather(*(index.page(query, offset=0, limit=10) for query in queries))

    def are_there() -> bool:
        answers = [[row.name for row, _ in found.rows] for found in decider.run(ask())]
        assert answers in ([[]] * 12, [["a.t"]] * 12)
        return answers[0] == ["a.t"]

    # The decider's own sampler may have read the registrations just before.
    until("the table is listed", are_there)


def test_a_page_of_the_list_begins_at_its_offset(decider: LiveDecider, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        decider.register(WrittenTable(tmp_path / name).path, f"x.{name}")
    until("all are listed", lambda: len(rows(decider)) == 3)
    found = decider.get("/v1/table-rows", offset=1, limit=1, sort="name", descending=True)
    assert ([one["name"] for one in found["rows"]], found["matching"], found["total"]) == (["x.b"], 3, 3)
    assert decider.client.get("/v1/table-rows", params={"sort": "color"}).status_code == 422


def test_an_unregistered_table_leaves_no_move_behind(decider: LiveDecider, tmp_path: Path) -> None:
    decider.register(WrittenTable(tmp_path / "t").path, "a.t")
    moved = keys.changed_tables(decider.services.queue.executor.name)
    redis = decider.services.operations.redis
    assert decider.run(redis.zcard(moved)) == 1
    decider.client.delete("/v1/tables/a.t")
    assert decider.run(redis.zcard(moved)) == 0


def test_an_order_that_took_long_is_kept_for_a_while_and_its_rows_are_new(decider: LiveDecider, tmp_path: Path) -> None:
    """An expensive sort rests for twenty times its duration; the figures of the rows on a page never wait."""
    index: TableIndex = decider.services.tables.index
    table = WrittenTable(tmp_path / "t")
    decider.register(table.path, "a.t")
    until("it is listed", lambda: len(rows(decider, sort="files")) == 1)
    kept = next(iter(index._selections.values()))
    kept.took_s = 1_000.0
    table.append(3)
    decider.post("/v1/events", {"table": "a.t", "version": table.version})
    decider.drain()
    until("the row is new", lambda: rows(decider, sort="files")[0]["version"] == table.version)
    assert kept in index._selections.values(), "it was not sorted again"


@pytest.mark.parametrize("failure", [RetryableError("Redis is away"), asyncio.CancelledError()], ids=repr)
def test_a_move_whose_read_failed_is_read_by_the_next_client(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    index: TableIndex = decider.services.tables.index
    table = WrittenTable(tmp_path / "t")
    decider.register(table.path, "a.t")
    until("it is listed", lambda: rows(decider) != [])

    async def fail(_: object) -> None:
        raise failure

    async def ask() -> None:
        with pytest.raises(type(failure)):
            await index.page(TableQuery(), offset=0, limit=10)

    table.append(1)
    decider.post("/v1/events", {"table": "a.t", "version": table.version})
    decider.drain()
    index._moved_ms -= 1  # the move may be of the millisecond that was read last
    with monkeypatch.context() as patched:
        patched.setattr(index, "_read_states", fail)
        decider.run(ask())
    index._moved_ms += 10 * OVERLAP_MS  # no overlap reads it again
    assert row(decider, "a.t")["version"] == table.version


def test_a_registration_is_listed_though_a_reading_began_before_it_and_took_long(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decider's own sampler reads the list, too."""
    registry = decider.services.tables.registry
    read, may_end, has_read = registry.all, asyncio.Event(), asyncio.Event()

    async def read_late() -> AsyncIterator[TableRef]:
        async for table in read():
            yield table
        has_read.set()
        await may_end.wait()

    async def listed() -> list[str]:
        index = TableIndex(decider.services.queue.executor, registry, time.monotonic)
        monkeypatch.setattr(registry, "all", read_late)
        before = asyncio.create_task(index.totals())
        await has_read.wait()
        await asyncio.to_thread(decider.register, WrittenTable(tmp_path / "new").path, "x.new")
        asked = asyncio.create_task(index.page(TableQuery(), offset=0, limit=10))
        await asyncio.sleep(0)
        may_end.set()
        await before
        return [row.name for row, _ in (await asked).rows]

    decider.register(WrittenTable(tmp_path / "old").path, "x.old")
    assert decider.run(listed()) == ["x.new", "x.old"]


def three_tables_beyond_the_first_rows(decider: LiveDecider, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_index, "FIRST_ROWS", 2)
    for name in ("c", "b", "a"):
        decider.register(WrittenTable(folder / name).path, f"x.{name}")


def test_the_first_rows_of_a_long_list_do_not_wait_for_the_others(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come in the order of names, with their figures, before the registrations have been read."""
    three_tables_beyond_the_first_rows(decider, tmp_path, monkeypatch)
    services = decider.services
    index = TableIndex(services.queue.executor, services.tables.registry, time.monotonic)

    async def ask() -> tuple[TableListing, bool]:
        found = await index.page(TableQuery(), offset=0, limit=2)
        return found, index._is_loaded

    found, is_loaded = decider.run(ask())
    assert ([row.name for row, _ in found.rows], found.total, found.is_complete) == (["x.a", "x.b"], 3, False)
    assert all(row.version == 0 for row, _ in found.rows)
    assert not is_loaded

    async def whole() -> TableListing:
        return await index.page(TableQuery(), offset=0, limit=2)

    until("all tables are read", lambda: decider.run(whole()).is_complete)
    assert decider.run(whole()).selection.conditions != {}


def test_a_long_list_is_shown_as_it_is_known_while_figures_are_read(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three_tables_beyond_the_first_rows(decider, tmp_path, monkeypatch)
    index = decider.services.tables.index
    read, may_read = index._read_states, asyncio.Event()

    async def read_late(tables: Sequence[TableId]) -> None:
        await may_read.wait()
        await read(tables)

    async def names(**order: Any) -> tuple[list[str], bool]:
        found = await index.page(TableQuery(**order), offset=0, limit=10)
        return [row.name for row, _ in found.rows], found.is_complete

    monkeypatch.setattr(index, "_read_states", read_late)
    until("registrations are read", lambda: len(decider.run(names())[0]) == 3)
    assert decider.run(names(search="x")) == (["x.a", "x.b", "x.c"], False)
    assert decider.run(names(search="x", descending=True)) == (["x.c", "x.b", "x.a"], False)
    decider._loop.call_soon_threadsafe(may_read.set)  # type: ignore[union-attr]
    until("all figures are read", lambda: decider.run(names(search="x"))[1])


def conditions(decider: LiveDecider) -> dict[str, str]:
    return {one["name"]: one["condition"] for one in decider.get("/v1/tables")["tables"]}


def claim(queue: SyncQueueExecutor) -> tuple[Any, ...]:
    return tuple(queue.run(commands.claim("default", worker="w", nonce="n", slots=1, lease_ms=60_000)))


def test_a_table_shows_what_it_waits_for_and_whether_it_is_optimized_at_all(
    decider: LiveDecider, queue: SyncQueueExecutor, tmp_path: Path
) -> None:
    busy = WrittenTable(tmp_path / "busy", days=("2026-01-01",))
    busy.append(11)
    off = HandTable(tmp_path / "off", configuration={"lakewright.enabled": "false"})
    for path, name in ((busy.path, "busy"), (WrittenTable(tmp_path / "quiet").path, "quiet"), (off.path, "off")):
        decider.register(path, name)
    decider.post("/v1/tables", {"location": str(tmp_path), "name": "refused"})
    decider.drain()

    until("the job is counted", lambda: conditions(decider)["busy"] == "waiting")
    others = {"quiet": "compact", "off": "disabled", "refused": "refused"}
    assert conditions(decider) == {"busy": "waiting", **others}
    assert {name: decider.get(f"/v1/tables/{name}")["condition"] for name in conditions(decider)} == conditions(decider)
    (job,) = claim(queue)
    until("its job is counted", lambda: conditions(decider)["busy"] == "running")
    queue.run(end_of(job, RunResult.FAIL, seen_version=99))
    until("its failure is counted", lambda: conditions(decider)["busy"] == "backing_off")
    (delayed,) = decider.get("/v1/jobs", state="delayed")["jobs"]
    assert (delayed["table_name"], delayed["attempts"]) == ("busy", 1)
    assert delayed["retry_at"] > delayed["enqueued_at"]


def test_a_job_that_waits_for_company_is_not_one_that_failed(
    decider: LiveDecider, queue: SyncQueueExecutor, tmp_path: Path
) -> None:
    name = decider.register(WrittenTable(tmp_path / "t").path, "t")
    key = JobKey(decider.get(f"/v1/tables/{name}")["id"], "{}", "compact")
    for wait_ms in (600_000, 900_000):  # The second merge leads to another end of the wait, and is read again.
        debounce = Debounce(wait_ms, wait_ms)
        queue.run(
            commands.enqueue("default", JobRequest(key, "default", Band.NORMAL, 5, 1, wait_ms, debounce=debounce))
        )
        until("it is counted", lambda: decider.get("/v1/table-rows")["rows"][0]["jobs_waiting"] == 1)
        assert decider.get("/v1/jobs", state="delayed")["jobs"][0]["attempts"] == 0
        assert conditions(decider) == {"t": "not_due"}
