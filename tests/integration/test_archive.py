"""The archive holds every record of the ledgers once, whatever crashes, races or is lost on the way there."""

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from decider.archive import delta_archive
from decider.archive.ledger_batches import LedgerBatches
from decider.background.ledger_archiver import APP, BATCH_RECORDS, KEPT_MS, LedgerArchiver
from decider.decide import ledger
from decider.store.tables.ingest import CounterReader
from shared.errors import RetryableError
from shared.layout.partition_stats import stats_of_sizes
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.queue import keys
from shared.table import TableId, TableRef
from tests.support.archive_world import in_world
from tests.support.decisions import decide_on_state, encoded, recompute
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.mark.parametrize("batch_records", [1, 7, BATCH_RECORDS])
async def test_every_record_is_archived_once_in_bounded_batches(
    redis_url: str, tmp_path: Path, batch_records: int
) -> None:
    async with in_world(redis_url, tmp_path) as world:
        await world.write(5)
        done = await world.decider().run_once(batch_records=batch_records)
        assert (done.records, done.batches) == (15, -(-15 // batch_records))
        world.expect_each_once()
        await world.write(2)
        await world.decider().run_once(batch_records=batch_records)
        world.expect_each_once()
        version = DeltaTable(str(world.folder)).version()
        assert (await world.decider().run_once()).batches == 0
        assert DeltaTable(str(world.folder)).version() == version


async def test_a_row_says_in_columns_what_was_decided_and_keeps_the_record_to_recompute_it(
    redis_url: str, tmp_path: Path
) -> None:
    async with in_world(redis_url, tmp_path) as world:
        await world.write()
        await world.keep(world.tables[0], '{"from": "another release"}')
        await world.decider().run_once()
        rows = sorted(zip(*map(world.column, ("version", "table_name", "reason", "record")), strict=True), key=str)
        assert [row[1] for row in rows] == ["lake.t0", "lake.t1", "lake.t2", "lake.t0"]
        *known, unknown = rows
        assert unknown[2:] == (None, '{"from": "another release"}')
        for version, _, reason, record in known:
            made = ledger.decode(record)
            assert (made.version, made.reason) == (version, reason)
            assert recompute(made) is made.verdict


async def test_a_record_that_cannot_be_read_is_archived_shown_and_counted_and_stops_no_other(
    redis_url: str, tmp_path: Path
) -> None:
    """Deciders of two releases share a ledger: what the newer one writes must not stand in the way of the older."""
    async with in_world(redis_url, tmp_path) as world:
        await world.write()
        busy = world.tables[0]
        plain = encoded(
            decide_on_state(WHOLE_TABLE, stats_of_sizes(Policy().size_levels, [1]), Policy(), 77), Policy(), 1
        )
        policy = Policy().encode().replace('"full_file_threshold":"3/4"', '"full_file_threshold":"1/100"')
        odd = [
            json.dumps(json.loads(plain) | {"policy": policy}),
            json.dumps(json.loads(plain) | {"reason": "of a newer release"}),
            json.dumps(json.loads(plain) | {"at": 10**40}),
            "no JSON",
        ]
        for record in odd:
            await world.keep(busy, record)
        stream = keys.ledger("default", busy.id)
        await world.queue.redis.xadd(stream, {"record": b"\xff", "out": ""})
        await world.queue.redis.xadd(stream, {"line": "another layout"})
        kept = [*odd, "\\xff", '{"line": "another layout"}']
        await world.write()
        done = await world.decider().run_once(batch_records=3)
        assert done.records == world.written + len(kept)
        rows = list(zip(*map(world.column, ("record", "decision", "version", "table_name")), strict=True))
        assert Counter(row for row in rows if row[1] is None) == Counter(
            (text, None, 77 if n < 3 else None, busy.name) for n, text in enumerate(kept)
        )
        assert sorted(row[2] for row in rows if row[1]) == list(range(1, world.written + 1))
        assert (await world.decider().run_once()).batches == 0
        assert (await CounterReader(world.queue).read())["records_unreadable"] == len(kept)
        newest = await world.ledgers.newest(busy.id, limit=20)
        assert [one.text if isinstance(one, ledger.UnreadableRecord) else one.version for one in newest] == [
            *(4, *reversed(kept), 1)
        ]
        now_ms = await world.decider().batches.now_ms()
        last, other = await world.ledgers.in_force(busy.id, now_ms, limit=20)
        assert (last.version, other.version, isinstance(other, ledger.UnreadableRecord)) == (4, None, True)


@pytest.mark.parametrize("tables", [1, 7, 200])
async def test_no_more_is_read_of_a_backlog_than_goes_into_the_archive(
    redis_url: str, tmp_path: Path, tables: int
) -> None:
    """The records of all tables are read together: what is read beyond a batch is read again for the next one."""
    async with in_world(redis_url, tmp_path) as world:
        held = [700 + 700 // tables] + [700 // tables] * (tables - 1)
        names = [TableRef(TableId(f"b-{n}"), f"lake.b{n}", f"file:///lake/b{n}") for n in range(tables)]
        async with world.queue.redis.pipeline(transaction=False) as pipe:
            for table, records in zip(names, held, strict=True):
                for _ in range(records):
                    pipe.xadd(keys.ledger("default", table.id), {"record": "{}", "out": ""})
            await pipe.execute()
        for table in names:
            await world.registry.register(table)
        decider = world.decider()
        ahead, sizes = decider.batches.ahead, []

        async def measured(*args: Any, **named: Any) -> dict[TableId, list[str]]:
            found = await ahead(*args, **named)
            sizes.append(sum(map(len, found.values())))
            return found

        decider.batches.ahead = measured  # type: ignore[method-assign]
        done = await decider.run_once(batch_records=400)
        assert done.records == len(world.column("entry")) == sum(held) == sum(sizes)
        assert max(sizes) <= 400
        assert done.batches == -(-done.records // 400), "each is as large as it may be"


@pytest.mark.parametrize("call", ["append", "note", "read", "trim", "plan"])
async def test_a_crash_at_any_point_neither_doubles_nor_loses_a_record(
    redis_url: str, tmp_path: Path, call: str
) -> None:
    async with in_world(redis_url, tmp_path) as world:
        await world.write(3)
        await world.decider().run_once(batch_records=4)
        await world.write(3)
        dying = world.decider()
        with pytest.raises(RetryableError, match="killed here"):
            await dying.dies_at(dying.archive if call == "append" else dying.batches, call).run_once(batch_records=4)
        await world.write(1)
        await world.decider().run_once(batch_records=4)
        world.expect_each_once()


async def test_a_commit_whose_reply_was_lost_is_not_made_again(redis_url: str, tmp_path: Path) -> None:
    async with in_world(redis_url, tmp_path) as world:
        await world.write(3)
        dying = world.decider()
        append = dying.archive.append

        async def append_and_die(*args: Any, **named: Any) -> bool:
            await append(*args, **named)
            raise RetryableError("killed after the commit")

        dying.archive.append = append_and_die  # type: ignore[method-assign]
        with pytest.raises(RetryableError, match="after the commit"):
            await dying.run_once()
        await world.decider().run_once()
        world.expect_each_once()


async def test_any_number_of_deciders_archive_at_once(redis_url: str, tmp_path: Path) -> None:
    async with in_world(redis_url, tmp_path) as world:
        deciders = [world.decider() for _ in range(4)]
        for _ in range(4):
            await world.write(5)
            results = await asyncio.gather(
                *(decider.run_once(batch_records=4) for decider in deciders), return_exceptions=True
            )
            assert all(isinstance(result, RetryableError) for result in results if isinstance(result, Exception))
        await world.decider().run_once()
        world.expect_each_once()


@pytest.mark.parametrize(("seed", "call"), [(0, ""), (1, ""), (1, "append"), (2, "note")])
async def test_notes_that_come_back_from_an_older_state_are_corrected_by_the_archive(
    redis_url: str, tmp_path: Path, seed: int, call: str
) -> None:
    """Redis may lose the tail of its log; the archive then knows more than the notes.

    The older state may be one in which a batch was on its way: planned, or already in the archive.
    """
    async with in_world(redis_url, tmp_path) as world:
        chosen = random.Random(seed)
        names = (keys.archive_progress("default"), keys.archived_up_to("default"))
        dumps: list[tuple[bytes | None, ...]] = []
        for _ in range(6):
            await world.write(chosen.randint(1, 4))
            if call:
                dying = world.decider()
                dying.dies_at(dying.archive if call == "append" else dying.batches, call)
                with pytest.raises(RetryableError, match="killed here"):
                    await dying.run_once(batch_records=3)
            dumps.append(tuple([await world.queue.redis.dump(name) for name in names]))
            await world.write()
            await world.decider().run_once(batch_records=3)
        for name, dump in zip(names, chosen.choice(dumps), strict=True):
            await world.queue.redis.delete(name)
            if dump is not None:
                await world.queue.redis.restore(name, 0, dump)
        await world.write(2)
        await world.decider().run_once(batch_records=chosen.choice([2, 3, 100]))
        await world.decider().run_once(batch_records=3)
        world.expect_each_once()


async def test_notes_are_found_however_many_commits_ago_they_were_made(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that was archived long before the others is named by an old note only."""
    monkeypatch.setattr(delta_archive, "NOTES_READ", 2)

    async with in_world(redis_url, tmp_path) as world:
        await world.write()
        await world.decider().run_once()
        busy, *quiet = world.tables
        for _ in range(6):
            world.tables = [busy]
            await world.write()
            await world.decider().run_once()
        world.tables = [busy, *quiet]
        assert [note["number"] for note in await world.decider().archive.notes(APP, above=2)] == [7, 6, 5, 4, 3]
        await world.queue.redis.delete(keys.archive_progress("default"), keys.archived_up_to("default"))
        await world.decider().run_once()
        world.expect_each_once()


async def test_an_archive_goes_on_after_redis_was_lost(redis_url: str, tmp_path: Path) -> None:
    async with in_world(redis_url, tmp_path) as world:
        await world.write(3)
        await world.decider().run_once()
        await world.queue.redis.flushall()
        await world.write(3)
        await world.decider().run_once()
        world.expect_each_once()


async def test_only_what_is_archived_and_old_leaves_redis(redis_url: str, tmp_path: Path) -> None:
    async with in_world(redis_url, tmp_path) as world:
        table = world.tables[0]
        await world.registry.register(table)
        now_ms = await LedgerBatches(world.queue).now_ms()
        made = encoded(
            decide_on_state(WHOLE_TABLE, stats_of_sizes(Policy().size_levels, [1]), Policy(), 1), Policy(), now_ms
        )
        for age_ms in (2 * KEPT_MS, KEPT_MS + 60_000, 60_000):
            place = f"{now_ms - age_ms}-0"
            await world.queue.redis.xadd(keys.ledger("default", table.id), {"record": made, "out": ""}, id=place)
        dying = world.decider()
        with pytest.raises(RetryableError):
            await dying.dies_at(dying.archive, "append").run_once()
        assert len(await world.ledgers.newest(table.id, limit=9)) == 3
        await world.decider().run_once()
        assert len(world.column("entry")) == 3
        await world.decider().run_once()
        assert len(await world.ledgers.newest(table.id, limit=9)) == 1


def test_an_archive_that_keeps_its_own_decisions_comes_to_rest(redis_url: str, tmp_path: Path) -> None:
    """Each append is a commit that is decided on, and the decision is a record; that must not lead to another one."""
    table = WrittenTable(tmp_path / "orders")
    with LiveDecider(decider_settings(redis_url, ledger=str(tmp_path / "ledger"))) as decider:
        decider.register(table.path, "orders")
        duty = decider.task("ledger_archive")
        assert isinstance(duty, LedgerArchiver)

        def version() -> int:
            return DeltaTable(str(tmp_path / "ledger")).version()

        for _ in range(12):
            table.append()
            decider.sweep()
            decider.run(duty.run_once())
            decider.drain()
        rest = [decider.run(duty.run_once()).batches for _ in range(3)]
        assert rest == [0, 0, 0]
        settled = version()
        decider.sweep()
        decider.run(duty.run_once())
        assert version() == settled
        status = until("the archive is followed", lambda: decider.get(f"/v1/tables/{APP}"))
        assert status["state"]["version"] == settled
        jobs = [job for job in decider.get("/v1/jobs")["jobs"] if job["table_name"] == APP]
        assert [job["reason"] for job in jobs] == ["eligible"]


async def test_a_decider_that_was_overtaken_while_it_planned_does_not_move_places_back(
    redis_url: str, tmp_path: Path
) -> None:
    """It saw fewer records than the one that overtook it: its batch must not end before what is archived."""
    async with in_world(redis_url, tmp_path) as world:
        await world.write(2)
        slow, refreshed, goes_on = world.decider(), asyncio.Event(), asyncio.Event()
        ahead = slow.batches.ahead

        async def looks_and_waits(*args: Any, **named: Any) -> Any:
            found = await ahead(*args, **named)
            refreshed.set()
            await goes_on.wait()
            return found

        slow.batches.ahead = looks_and_waits  # type: ignore[method-assign]
        going = asyncio.create_task(slow.run_once())
        await refreshed.wait()
        await world.write(3)
        await world.decider().run_once()
        world.expect_each_once()
        places = await world.queue.redis.hgetall(keys.archived_up_to("default"))
        goes_on.set()
        await going
        assert await world.queue.redis.hgetall(keys.archived_up_to("default")) == places
        await world.write(1)
        await world.decider().run_once()
        world.expect_each_once()


@pytest.mark.parametrize("is_pending", [False, True])
async def test_an_archive_whose_log_was_cleaned_still_knows_what_it_holds(
    redis_url: str, tmp_path: Path, *, is_pending: bool
) -> None:
    """Redis comes back from a state that is older than the log's oldest commit: the notes of batches are gone."""
    async with in_world(redis_url, tmp_path) as world:
        names = (keys.archive_progress("default"), keys.archived_up_to("default"))
        await world.write(2)
        await world.decider().run_once(batch_records=3)
        await world.write(1)
        if is_pending:
            dying = world.decider()
            with pytest.raises(RetryableError, match="killed here"):
                await dying.dies_at(dying.batches, "note").run_once(batch_records=3)
        dumps = [await world.queue.redis.dump(name) for name in names]
        every = world.tables
        for some in (every, every, every[:1], every[:1]):
            world.tables = some
            await world.write(2)
            await world.decider().run_once(batch_records=3)
        world.expect_each_once()
        table = DeltaTable(str(world.folder))
        table.create_checkpoint()
        for version in range(table.version() - 1):
            (world.folder / "_delta_log" / f"{version:020}.json").unlink()
        assert await world.decider().archive.notes(APP, above=1) is None
        for name, dump in zip(names, dumps, strict=True):
            assert dump is not None
            await world.queue.redis.restore(name, 0, dump, replace=True)
        await world.decider().run_once()
        world.expect_each_once()
        world.tables = every
        await world.write(2)
        await world.decider().run_once()
        world.expect_each_once()
