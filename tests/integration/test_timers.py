"""Timers: a cell that goes quiet is settled once for each quiet spell, whoever ticks, crashes or commits in between."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest

from decider.decide import ledger
from decider.decide.timers import parse_timer
from decider.decide.verdict import Verdict
from decider.duties.settle import AGAIN_MS, TABLES_PER_TICK, Settle, Ticked
from decider.following.follower import Follower
from decider.following.recount import RECORDS
from decider.following.standing import Alone
from decider.orient.policies import Defaults
from decider.store import ingest as storing
from decider.store.ingest import CELLS_INLINE
from decider.store.ledgers import Ledgers
from decider.store.queue import AsyncQueue, connect
from decider.store.removal import forget
from decider.store.tables import TableRegistry
from decider.store.timers import Timers
from shared.errors import RetryableError
from shared.facts import Ask, JobFacts
from shared.planner import SETTLED_TAG
from shared.policy import MIB, Policy
from shared.queue import keys, reads, transitions
from shared.queue.model import DecideOutcome, JobState, Staged, Timer
from shared.queue.model import Verdict as RunVerdict
from shared.queue.views import JobView
from shared.table import CellKey, DataFile, PartitionColumn, RemovedFile, TableId, TableMetadata, TableRef
from shared.worth import Reason
from tests.support.memory_log import MemoryLog

pytestmark = pytest.mark.redis

HOUR_MS = 3_600_000
POLICY = Policy(target_bytes=8 * MIB)
DT = (PartitionColumn("dt", "dt", "string"),)
TABLE = TableRef(TableId("t-1"), "t", "memory:///t")


class World:
    """One registered table, its log, and a decider with a clock that is turned by hand."""

    def __init__(self, url: str, configuration: dict[str, str]) -> None:
        self.metadata = TableMetadata("u-1", DT, configuration)
        self.log = MemoryLog(self.metadata)
        self.queue = AsyncQueue(connect(url), "default")
        self.registry = TableRegistry(self.queue.redis)
        self.timers = Timers(self.queue)
        self.now_ms = 1_000_000
        self.files = 0
        self.decider = self.new_decider()

    def new_decider(self) -> "Decider":
        return Decider(self)

    async def write(self, cell: CellKey, sizes: Iterable[int]) -> None:
        """Commit files, and let the decider see it."""
        self.log.add([self.file(cell, size) for size in sizes])
        await self.decider.follow()

    def file(self, cell: CellKey, size: int, *, settled: bool = False) -> DataFile:
        self.files += 1
        tags = {SETTLED_TAG: "1"} if settled else {}
        return DataFile(f"f{self.files}", size, cell, modified_ms=self.now_ms, tags=tags)

    async def jobs(self) -> list[JobView]:
        pages = [await self.queue.run(reads.jobs("default", state)) for state in JobState]
        return [job for page in pages for job in page.jobs]

    async def run_job(self) -> None:
        """Play the actor: all files of the cell become one that says it was settled."""
        (claim,) = await self.queue.run(
            transitions.claim("default", worker="w", nonce=f"c{self.files}", slots=1, lease_ms=60_000)
        )
        cell = CellKey(claim.key.cell)
        live = [file for file in (await self.log.snapshot()).files if file.cell == cell]
        merged = self.file(cell, sum(file.size_bytes for file in live), settled=True)
        gone = [RemovedFile(file.path, None, file.size_bytes, cell) for file in live]
        self.log.add([merged], gone, data_change=False)
        await self.queue.run(
            transitions.finish(
                "default",
                worker="w",
                nonce=f"f{self.files}",
                id=claim.id,
                token=claim.token,
                verdict=RunVerdict.DONE,
                cost_bytes=0,
                seen_version=claim.version,
            )
        )
        await self.decider.follow()


class Decider:
    """A follower and its timers."""

    def __init__(self, world: World) -> None:
        self.follower = Follower(world.queue, lambda _: world.log, lambda: world.now_ms, Alone(Defaults(POLICY)))
        self.settle = Settle(world.queue, world.registry, self.follower, lambda: world.now_ms)

    async def follow(self) -> None:
        await self.follower.follow(TABLE)

    async def tick(self) -> Ticked:
        return await self.settle.run_once()


def cell(name: object) -> CellKey:
    return CellKey(f'{{"dt":"{name}"}}')


def in_world(
    url: str, story: Callable[[World], Coroutine[Any, Any, None]], configuration: dict[str, str] | None = None
) -> None:
    async def tell() -> None:
        world = World(url, configuration or {})
        await world.registry.register(TABLE)
        await world.decider.follow()
        try:
            await story(world)
        finally:
            await world.queue.redis.aclose()

    asyncio.run(tell())


TWO_SMALL = [MIB, MIB]
"""Two files that no level lets merge, and that are far from the target."""


def test_a_cell_is_settled_once_for_each_quiet_spell(redis_url: str) -> None:
    async def story(world: World) -> None:
        for _ in range(3):
            await world.write(cell(1), TWO_SMALL)
            world.now_ms += 6 * HOUR_MS - 1
            assert await world.decider.tick() == Ticked(0, 0)
            world.now_ms += 1
            assert await world.decider.tick() == Ticked(1, 1)
            (job,) = await world.jobs()
            facts = JobFacts.decode(job.facts)
            assert (facts.reason, facts.ask) == (Reason.QUIET, Ask.SETTLE)
            await world.run_job()
            for _ in range(4):
                world.now_ms += 6 * HOUR_MS
                assert await world.decider.tick() == Ticked(0, 0)

    in_world(redis_url, story)


def test_a_commit_in_between_postpones_even_one_that_nobody_told_of(redis_url: str) -> None:
    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        world.now_ms += 5 * HOUR_MS
        world.log.add([world.file(cell(1), MIB)])
        world.now_ms += HOUR_MS
        assert await world.decider.tick() == Ticked(0, 0)
        assert await world.jobs() == []
        world.now_ms += 6 * HOUR_MS
        assert await world.decider.tick() == Ticked(1, 1)

    in_world(redis_url, story)


def test_our_own_commit_does_not_postpone_and_ends_what_it_made_needless(redis_url: str) -> None:
    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        await world.write(cell(2), TWO_SMALL)
        world.now_ms += 5 * HOUR_MS
        files = [file for file in (await world.log.snapshot()).files if file.cell == cell(2)]
        gone = [RemovedFile(file.path, None, file.size_bytes, file.cell) for file in files]
        world.log.add([world.file(cell(2), 4 * MIB)], gone, data_change=False)
        await world.decider.follow()
        assert [parse_timer(name) for name in await world.timers.all(TABLE.id)] == [(Ask.SETTLE, cell(1))]
        world.now_ms += HOUR_MS
        assert await world.decider.tick() == Ticked(1, 1)

    in_world(redis_url, story)


@pytest.mark.parametrize("deciders", [2, 5])
def test_any_number_of_deciders_settle_a_cell_once(redis_url: str, deciders: int) -> None:
    async def story(world: World) -> None:
        for number in range(8):
            await world.write(cell(number), TWO_SMALL)
        world.now_ms += 6 * HOUR_MS
        ticked = await asyncio.gather(*(world.new_decider().tick() for _ in range(deciders)))
        assert sum(one.jobs for one in ticked) == len(await world.jobs()) == 8
        records = [one for one in await Ledgers(world.queue).newest(TABLE.id, limit=100) if one.reason is Reason.QUIET]
        assert len(records) == 8

    in_world(redis_url, story)


def test_timers_outlast_a_restart_and_a_recount(redis_url: str) -> None:
    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        await world.write(cell(2), [2 * MIB])
        world.log.add([world.file(cell(2), 2 * MIB, settled=True)])
        await world.decider.follow()
        world.now_ms += HOUR_MS
        changed = TableMetadata("u-1", DT, {"lakewright.settle-after": "2h"})
        world.log.add(metadata=changed, data_change=False)
        restarted = world.new_decider()
        await restarted.follow()
        # The second cell holds one file that was never settled: there is nothing to merge it with.
        assert list(await world.timers.all(TABLE.id)) == [f"settle {cell(1)}"]
        assert await restarted.tick() == Ticked(0, 0)
        world.now_ms += HOUR_MS
        assert await restarted.tick() == Ticked(1, 1)

    in_world(redis_url, story)


@pytest.mark.parametrize("name", ["lakewright.enabled", "lakewright.settle-after"])
def test_what_is_switched_off_has_no_timers(redis_url: str, name: str) -> None:
    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        off = "false" if name.endswith("enabled") else "off"
        world.log.add(metadata=TableMetadata("u-1", DT, {name: off}), data_change=False)
        await world.decider.follow()
        world.now_ms += 6 * HOUR_MS
        assert await world.decider.tick() == Ticked(0, 0)
        await world.write(cell(1), [2 * MIB])
        assert await world.timers.all(TABLE.id) == {}

    in_world(redis_url, story)


def test_a_table_that_was_removed_leaves_no_timers_behind(redis_url: str) -> None:
    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        await world.registry.remove(TABLE)
        world.now_ms += 6 * HOUR_MS
        assert await world.decider.tick() == Ticked(0, 0)
        assert not await world.queue.redis.exists(keys.ringing("default"), keys.timers("default", TABLE.id))
        await world.registry.register(TABLE)
        await world.write(cell(1), [2 * MIB])
        await forget(world.queue, TABLE.id, kind="compact")
        assert not await world.queue.redis.exists(keys.ringing("default"), keys.timers("default", TABLE.id))

    in_world(redis_url, story)


def test_a_cell_that_has_a_job_already_is_settled_after_it(redis_url: str) -> None:
    async def story(world: World) -> None:
        await world.write(cell(1), [100_000] * 9)
        assert len(await world.jobs()) == 1
        world.now_ms += 6 * HOUR_MS
        assert await world.decider.tick() == Ticked(1, 0)
        (job,) = await world.jobs()
        assert JobFacts.decode(job.facts).ask is Ask.LEVELS
        assert list((await world.timers.all(TABLE.id)).values()) == [world.now_ms + AGAIN_MS]

    in_world(redis_url, story)


def test_a_cell_that_is_left_to_its_writers_is_settled_when_they_are_done(redis_url: str) -> None:
    async def story(world: World) -> None:
        world.log.command("MERGE", world.now_ms, 300_000, [world.file(cell(1), size) for size in TWO_SMALL])
        await world.decider.follow()
        world.now_ms += HOUR_MS
        assert await world.decider.tick() == Ticked(1, 0)
        (record, *_) = await Ledgers(world.queue).newest(TABLE.id, limit=1)
        assert record.reason is Reason.WRITERS_FIRST
        assert list((await world.timers.all(TABLE.id)).values()) == [world.now_ms + AGAIN_MS]
        world.now_ms += 2 * HOUR_MS
        assert await world.decider.tick() == Ticked(1, 1)
        assert await world.timers.all(TABLE.id) == {}

    in_world(redis_url, story, {"lakewright.dml-policy": "never", "lakewright.settle-after": "1h"})


def test_a_full_rewrite_that_waits_is_not_lost_to_the_next_commit(redis_url: str) -> None:
    """Its timer has rung and the newest facts ask for levels; what was asked for before goes with them."""

    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        world.now_ms += 24 * HOUR_MS
        assert await world.decider.tick() == Ticked(1, 1)
        await world.write(cell(1), [100_000] * 9)
        (claim,) = await world.queue.run(transitions.claim("default", worker="w", nonce="c", slots=1, lease_ms=60_000))
        facts = JobFacts.decode(claim.facts)
        assert facts.ask is Ask.LEVELS
        assert facts.reaching(claim.reach).ask is Ask.FULL

    in_world(redis_url, story, {"lakewright.full-interval": "24h", "lakewright.settle-after": "off"})


def test_a_full_rewrite_comes_once_per_interval_and_only_after_a_change(redis_url: str) -> None:
    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        for _ in range(3):
            world.now_ms += 8 * HOUR_MS
            await world.write(cell(1), [100])
        assert await world.decider.tick() == Ticked(1, 1)
        (job,) = await world.jobs()
        facts = JobFacts.decode(job.facts)
        assert (facts.reason, facts.ask) == (Reason.FULL_DUE, Ask.FULL)
        await world.run_job()
        for _ in range(9):
            world.now_ms += 8 * HOUR_MS
            assert await world.decider.tick() == Ticked(0, 0)

    in_world(redis_url, story, {"lakewright.full-interval": "24h", "lakewright.settle-after": "off"})


def test_a_recount_does_not_put_a_full_rewrite_off(redis_url: str) -> None:
    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        before = await world.timers.all(TABLE.id)
        world.now_ms += 20 * HOUR_MS
        world.log.oldest = len(world.log.commits) + 1
        world.log.add([world.file(cell(1), 100)])
        world.log.add([world.file(cell(1), 100)])
        await world.decider.follow()
        assert await world.timers.all(TABLE.id) == before

    in_world(redis_url, story, {"lakewright.full-interval": "24h", "lakewright.settle-after": "off"})


def test_what_a_timer_led_to_can_be_recomputed_from_the_ledger(redis_url: str) -> None:
    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        world.now_ms += 24 * HOUR_MS
        assert await world.decider.tick() == Ticked(2, 1)
        records = await Ledgers(world.queue).newest(TABLE.id, limit=10)
        assert {record.reason for record in records} >= {Reason.QUIET, Reason.NO_PROMOTION}
        assert all(ledger.recompute(record) is record.verdict for record in records)
        quiet = next(record for record in records if record.reason is Reason.QUIET)
        assert quiet.verdict is Verdict.ENQUEUE
        assert "gone quiet" in quiet.sentence
        assert "A job was queued." in quiet.sentence

    in_world(redis_url, story, {"lakewright.full-interval": "24h"})


def test_a_timer_that_changed_since_it_was_read_is_not_taken(redis_url: str) -> None:
    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        (timer,) = await world.timers.ringing(TABLE.id, world.now_ms + 6 * HOUR_MS, limit=9)
        world.now_ms += 1
        await world.write(cell(1), [MIB])
        before = await world.timers.all(TABLE.id)
        taken = await world.timers.take(TABLE.id, timer, again_ms=0, job=None, decision=("{}", {"x": 1}))
        assert taken is DecideOutcome.LATE
        assert await world.timers.all(TABLE.id) == before
        again = Timer(timer.name, before[timer.name])
        assert await world.timers.take(TABLE.id, again, again_ms=0, job=None, decision=("", {})) is DecideOutcome.NONE
        assert await world.timers.all(TABLE.id) == {}

    in_world(redis_url, story)


def test_tables_that_cannot_be_followed_do_not_keep_the_others_waiting(redis_url: str) -> None:
    """They are due for longer than the table that can be followed, and more of them than one tick looks at."""

    async def story(world: World) -> None:
        await world.write(cell(1), TWO_SMALL)
        broken = [TableRef(TableId(f"b-{n}"), f"b{n}", f"memory:///b{n}") for n in range(TABLES_PER_TICK + 1)]
        for table in broken:
            await world.registry.register(table)
        await world.queue.redis.zadd(keys.ringing("default"), {table.id: 1 for table in broken})

        def opened(location: str) -> MemoryLog:
            if location == TABLE.location:
                return world.log
            if location == broken[0].location:
                raise ValueError("a log that nobody foresaw")
            raise RetryableError("the bucket is away")

        follower = Follower(world.queue, opened, lambda: world.now_ms, Alone(Defaults(POLICY)))
        settle = Settle(world.queue, world.registry, follower, lambda: world.now_ms)
        world.now_ms += 6 * HOUR_MS
        assert [(await settle.run_once()).jobs for _ in range(2)] == [0, 1]
        assert await world.timers.ringing_tables(world.now_ms, limit=9) == ()
        world.now_ms += AGAIN_MS
        assert len(await world.timers.ringing_tables(world.now_ms, limit=999)) == len(broken)

    in_world(redis_url, story)


def test_a_recount_that_lost_a_part_of_what_it_staged_starts_over(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failover between two pages leaves the new cells incomplete; in place, nobody would look for the others."""
    stage, lost = storing._stage, []

    async def cut(queue: AsyncQueue, step: storing.Step) -> Staged:
        made = await stage(queue, step)
        if not lost:
            lost.append(await queue.redis.hdel(keys.staged_cells("default", made.name), cell(7)))
        return made

    async def story(world: World) -> None:
        many = CELLS_INLINE + 1
        world.log.add([world.file(cell(number), MIB) for number in range(many)])
        await world.decider.follow()
        assert lost == [1]
        assert await world.queue.redis.hlen(keys.cells("default", TABLE.id)) == many

    monkeypatch.setattr(storing, "_stage", cut)
    in_world(redis_url, story)


def test_a_recount_takes_a_table_of_any_number_of_cells_and_says_what_it_decided(redis_url: str) -> None:
    """Beyond a thousand cells they are staged: the old ones are gone, jobs and timers are there, and no key leaks."""

    async def story(world: World) -> None:
        many = CELLS_INLINE + 500
        await world.write(cell("old"), TWO_SMALL)
        world.log.commits = MemoryLog(TableMetadata("u-2", DT)).commits
        for number in range(many):
            world.log.add([world.file(cell(number), size) for size in (TWO_SMALL if number else [100_000] * 8)])
        world.now_ms += HOUR_MS
        restarted = world.new_decider()
        world.log.oldest = many - 1
        await restarted.follow()
        cells = await world.queue.redis.hlen(keys.cells("default", TABLE.id))
        assert cells == many
        assert len(await world.timers.all(TABLE.id)) == many
        assert [job.key.cell for job in await world.jobs()] == [cell(0)]
        records = await Ledgers(world.queue).newest(TABLE.id, limit=1_000)
        assert len([record for record in records if record.version == many]) == RECORDS
        assert any(record.cell == cell(0) and record.outcome == "queued" for record in records)
        assert await world.queue.redis.ttl(keys.cells("default", TABLE.id)) == -1
        assert await world.queue.redis.ttl(keys.timers("default", TABLE.id)) == -1
        assert not await world.queue.redis.keys("*new*")

    in_world(redis_url, story)
