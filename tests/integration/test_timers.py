"""Timers: a partition is idle-compacted once for each idle period, whichever process ticks, crashes or commits."""

import asyncio
from dataclasses import replace

import pytest

from decider.archive.ledger_reader import LedgerReader
from decider.background.timer_runner import AGAIN_MS, TABLES_AT_ONCE, TABLES_PER_TICK, TimerRunner, TimerRunResult
from decider.decide.action import TimerTarget
from decider.decide.compaction_timers import COMPACTION_TIMERS, timer_name
from decider.decide.decision import DecisionKind
from decider.decide.ledger import LedgerRecord
from decider.state.effective_policy import PolicyDefaults
from decider.state.file_columns import LiveFiles
from decider.store.tables.cleanup import delete_table
from decider.tracking.table_context import TRUSTED_MS
from decider.tracking.tracker import TableTracker
from shared.errors import RetryableError
from shared.jobs.payload import JobPayload, RewriteKind
from shared.layout.eligibility import Reason
from shared.policy.policy import MIB
from shared.queue import commands, keys
from shared.queue.model import DecideOutcome, Timer
from shared.table import Position, RemovedFile, TableId, TableMetadata, TableRef
from tests.support.decisions import contradictions, recompute
from tests.support.memory_log import MemoryLog
from tests.support.time_limits import scaled
from tests.support.timed_world import DT, HOUR_MS, POLICY, TABLE, TWO_SMALL, Alone, in_world, partition

pytestmark = pytest.mark.redis


async def test_a_partition_is_settled_once_for_each_quiet_spell(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        for _ in range(3):
            await world.write(partition(1), TWO_SMALL)
            world.now_ms += 6 * HOUR_MS - 1
            assert await world.decider.tick() == TimerRunResult(0, 0)
            world.now_ms += 1
            assert await world.decider.tick() == TimerRunResult(1, 1)
            (job,) = await world.jobs()
            payload = JobPayload.decode(job.payload)
            assert (payload.reason, payload.rewrite_kind) == (Reason.IDLE, RewriteKind.IDLE)
            await world.run_job()
            for _ in range(4):
                world.now_ms += 6 * HOUR_MS
                assert await world.decider.tick() == TimerRunResult(0, 0)


async def test_a_commit_in_between_postpones_even_one_that_no_one_told_of(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        world.now_ms += 5 * HOUR_MS
        world.log.add([world.file(partition(1), MIB)])
        world.now_ms += HOUR_MS
        assert await world.decider.tick() == TimerRunResult(0, 0)
        assert await world.jobs() == []
        world.now_ms += 6 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(1, 1)


async def test_our_own_commit_does_not_postpone_and_ends_what_it_made_needless(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        await world.write(partition(2), TWO_SMALL)
        world.now_ms += 5 * HOUR_MS
        files = [file for file in (await world.log.snapshot()).files if file.partition == partition(2)]
        gone = [RemovedFile(file.path, None, file.size_bytes, file.partition) for file in files]
        world.log.add([world.file(partition(2), 4 * MIB)], gone, data_change=False)
        await world.decider.follow()
        assert [COMPACTION_TIMERS.parse(name) for name in await world.timers.all(TABLE.id)] == [
            TimerTarget(partition(1), RewriteKind.IDLE)
        ]
        world.now_ms += HOUR_MS
        assert await world.decider.tick() == TimerRunResult(1, 1)


async def test_rewrites_that_a_catalog_undoes_for_a_writer_are_counted_and_made_again(redis_url: str) -> None:
    """The newest two of three rewrites: the writer began after the first."""
    eight, counters = [MIB] * 8, keys.counters("default", TABLE.id)
    async with in_world(redis_url, {"lakewright.yield-to-writers": "on"}) as world:
        for number in range(3):
            await world.write(partition(number), eight)
        for _ in range(3):
            await world.run_job()
        assert await world.jobs() == []
        assert (await world.queue.redis.hget(counters, "rewrites_undone")) is None
        writers = [world.file(partition(7), MIB)]
        del world.log.commits[-2:]
        world.log.add(writers)
        world.now_ms += TRUSTED_MS
        await world.decider.follow()
        found = await world.queue.redis.hmget(counters, ["rewrites_undone", "bytes_undone"])
        assert [int(one) for one in found if one is not None] == [2, 16 * MIB]
        assert len(await world.jobs()) == 2, "they are decided again"
        for _ in range(2):
            await world.run_job()
        live = (await world.log.snapshot()).files
        assert sorted(one.size_bytes for one in live) == [MIB, 8 * MIB, 8 * MIB, 8 * MIB]
        await world.write(partition(7), [MIB])
        del world.log.commits[-1:]
        world.log.add([world.file(partition(7), 2 * MIB)])
        world.now_ms += TRUSTED_MS
        await world.decider.follow()
        found = await world.queue.redis.hmget(counters, ["rewrites_undone", "bytes_undone"])
        assert [int(one) for one in found if one is not None] == [2, 16 * MIB], "only our newest can be undone"


async def test_a_rewrite_whose_commit_has_expired_is_not_counted_as_undone(redis_url: str) -> None:
    counters = keys.counters("default", TABLE.id)
    async with in_world(redis_url, {"lakewright.yield-to-writers": "on"}) as world:
        await world.write(partition(1), [MIB] * 8)
        await world.run_job()
        for _ in range(2):
            world.log.add([world.file(partition(2), MIB)])
        world.log.oldest = len(world.log.commits) - 1
        world.now_ms += TRUSTED_MS
        state = (await world.decider.follower.load(TABLE)).state
        assert state.rebuild_reason.endswith("the table was created again or rolled back")
        assert (await world.queue.redis.hget(counters, "rewrites_undone")) is None


DAY_MS = 24 * HOUR_MS
ONE_O_CLOCK_MS = 20_000 * DAY_MS + HOUR_MS
TODAY, TOMORROW = partition("2024-10-04"), partition("2024-10-05")
"""Days of 20,000 days after 1970, and of the next."""


async def test_a_partition_that_time_lets_into_the_filter_is_evaluated_then_and_only_once(redis_url: str) -> None:
    eight = [MIB] * 8
    async with in_world(redis_url, {"lakewright.filter": "dt < current_date"}) as world:
        world.now_ms = ONE_O_CLOCK_MS
        await world.write(TODAY, eight)
        await world.write(TOMORROW, eight)
        rebuilds = (await world.decider.follower.load(TABLE)).state.rebuilds
        assert await world.jobs() == []
        world.now_ms += 23 * HOUR_MS - 1
        assert await world.decider.tick() == TimerRunResult(0, 0)
        world.now_ms += 1
        assert (await world.decider.tick()).jobs == 1
        (job,) = await world.jobs()
        payload = JobPayload.decode(job.payload)
        assert (job.key.partition, payload.reason, payload.decided_ms) == (TODAY, Reason.ELIGIBLE, world.now_ms)
        records = await LedgerReader(world.queue).newest(TABLE.id, limit=99)
        known = [one for one in records if isinstance(one, LedgerRecord) and one.partition == TODAY]
        assert {one.reason for one in known} == {Reason.FILTERED, Reason.ELIGIBLE}
        assert not any(contradictions(one) for one in known)
        assert {one.literal_filter for one in known if one.reason is Reason.FILTERED} == {"dt < date '2024-10-04'"}
        eligible = next(one for one in known if one.reason is Reason.ELIGIBLE)
        assert eligible.message.endswith("The filter dt < current_date was dt < date '2024-10-05'.")
        await world.run_job()
        world.now_ms += 6 * HOUR_MS
        while await world.decider.tick() != TimerRunResult(0, 0):
            pass
        assert await world.jobs() == [], "nothing was left to do, and tomorrow has not come"
        assert (await world.decider.follower.load(TABLE)).state.rebuilds == rebuilds, "nothing was counted again"
        world.now_ms += 18 * HOUR_MS
        assert (await world.decider.tick()).jobs == 1


async def test_a_full_file_with_many_deleted_rows_is_rewritten_when_its_partition_enters(redis_url: str) -> None:
    async with in_world(redis_url, {"lakewright.filter": "dt < current_date"}) as world:
        world.now_ms = ONE_O_CLOCK_MS
        full = replace(world.file(TODAY, POLICY.target_bytes), rows=10, dv_id="d", deleted_rows=5)
        world.log.add([full])
        await world.decider.follow()
        assert await world.jobs() == []
        world.now_ms += 23 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(1, 1)


async def test_a_timer_that_is_late_leaves_alone_what_has_left_and_waits_for_it_to_enter_again(redis_url: str) -> None:
    async with in_world(redis_url, {"lakewright.filter": "dt != current_date"}) as world:
        world.now_ms = ONE_O_CLOCK_MS
        await world.write(TOMORROW, TWO_SMALL)
        (idle_ms,) = (at for name, at in (await world.timers.all(TABLE.id)).items() if name.startswith("idle"))
        assert idle_ms == ONE_O_CLOCK_MS + 6 * HOUR_MS
        world.now_ms += 30 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(1, 0)
        world.now_ms = 20_002 * DAY_MS - 1
        assert await world.decider.tick() == TimerRunResult(0, 0)
        world.now_ms += 1
        assert (await world.decider.tick()).jobs == 1
        (job,) = await world.jobs()
        assert JobPayload.decode(job.payload).rewrite_kind is RewriteKind.IDLE


async def test_one_late_file_in_a_settled_partition_has_no_timer_and_two_have(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        world.now_ms += 6 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(1, 1)
        await world.run_job()
        await world.write(partition(1), [MIB])
        assert await world.timers.all(TABLE.id) == {}
        await world.write(partition(1), [MIB])
        world.now_ms += 6 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(1, 1)
        await world.run_job()
        assert await world.timers.all(TABLE.id) == {}


async def test_a_window_that_is_over_is_settled_while_the_next_ones_are_written_to(redis_url: str) -> None:
    async with in_world(redis_url, {"lakewright.time-window": "1h", "lakewright.idle-compaction-after": "2h"}) as world:
        world.now_ms = 100 * HOUR_MS
        for hour in range(6):
            for _ in range(3):
                await world.write(partition(1), [100_000])
                world.now_ms += HOUR_MS // 3
                ticked = await world.decider.tick()
                # Each of the windows that have been over for two hours is idle-compacted once.
                assert ticked.jobs == int(hour >= 2 and world.now_ms % HOUR_MS == 0)
                if ticked.jobs:
                    await world.run_job()
        live = (await world.log.snapshot()).files
        assert sorted(file.size_bytes for file in live) == [100_000] * 6 + [300_000] * 4
        assert {COMPACTION_TIMERS.parse(name) for name in await world.timers.all(TABLE.id)} == {
            TimerTarget(partition(1), RewriteKind.IDLE)
        }
        assert len(await world.timers.all(TABLE.id)) == 2
        world.now_ms += 3 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(2, 1)
        await world.run_job()
        assert await world.timers.all(TABLE.id) == {}
        assert len((await world.log.snapshot()).files) == 6


@pytest.mark.parametrize("deciders", [2, 5])
async def test_any_number_of_deciders_settle_a_partition_once(redis_url: str, deciders: int) -> None:
    async with in_world(redis_url) as world:
        for number in range(8):
            await world.write(partition(number), TWO_SMALL)
        world.now_ms += 6 * HOUR_MS
        ticked = await asyncio.gather(*(world.new_decider().tick() for _ in range(deciders)))
        assert sum(one.jobs for one in ticked) == len(await world.jobs()) == 8
        records = [
            one for one in await LedgerReader(world.queue).newest(TABLE.id, limit=100) if one.reason is Reason.IDLE
        ]
        assert len(records) == 8


async def test_timers_outlast_a_restart_and_a_rebuild(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        await world.write(partition(2), [2 * MIB])
        world.log.add([world.file(partition(2), 2 * MIB, settled=True)])
        await world.decider.follow()
        world.now_ms += HOUR_MS
        changed = TableMetadata("u-1", DT, {"lakewright.idle-compaction-after": "2h"})
        world.log.add(metadata=changed, data_change=False)
        restarted = world.new_decider()
        await restarted.follow()
        # The second partition holds one file that was never idle-compacted: there is nothing to merge it with.
        assert list(await world.timers.all(TABLE.id)) == [timer_name(RewriteKind.IDLE, partition(1))]
        assert await restarted.tick() == TimerRunResult(0, 0)
        world.now_ms += HOUR_MS
        assert await restarted.tick() == TimerRunResult(1, 1)


@pytest.mark.parametrize("name", ["lakewright.enabled", "lakewright.idle-compaction-after"])
async def test_what_is_switched_off_has_no_timers(redis_url: str, name: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        off = "false" if name.endswith("enabled") else "off"
        world.log.add(metadata=TableMetadata("u-1", DT, {name: off}), data_change=False)
        await world.decider.follow()
        world.now_ms += 6 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(0, 0)
        await world.write(partition(1), [2 * MIB])
        assert await world.timers.all(TABLE.id) == {}


async def test_a_table_that_was_removed_leaves_no_timers_behind(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        await world.registry.remove(TABLE)
        world.now_ms += 6 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(0, 0)
        assert not await world.queue.redis.exists(keys.due_tables("default"), keys.timers("default", TABLE.id))
        await world.registry.register(TABLE)
        await world.write(partition(1), [2 * MIB])
        await delete_table(world.queue, TABLE.id, kinds=["compact"])
        assert not await world.queue.redis.exists(keys.due_tables("default"), keys.timers("default", TABLE.id))


async def test_a_partition_that_has_a_job_already_is_settled_after_it(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), [100_000] * 9)
        assert len(await world.jobs()) == 1
        world.now_ms += 6 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(1, 0)
        (job,) = await world.jobs()
        assert JobPayload.decode(job.payload).rewrite_kind is RewriteKind.LEVELS
        assert list((await world.timers.all(TABLE.id)).values()) == [world.now_ms + AGAIN_MS]


async def test_a_partition_that_is_left_to_its_writers_is_settled_when_they_are_done(redis_url: str) -> None:
    async with in_world(
        redis_url, {"lakewright.dml-policy": "never", "lakewright.idle-compaction-after": "1h"}
    ) as world:
        world.log.command("MERGE", world.now_ms, 300_000, [world.file(partition(1), size) for size in TWO_SMALL])
        await world.decider.follow()
        world.now_ms += HOUR_MS
        assert await world.decider.tick() == TimerRunResult(1, 0)
        (record, *_) = await LedgerReader(world.queue).newest(TABLE.id, limit=1)
        assert record.reason is Reason.DEFERRED_TO_WRITERS
        assert list((await world.timers.all(TABLE.id)).values()) == [world.now_ms + AGAIN_MS]
        world.now_ms += 2 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(1, 1)
        assert await world.timers.all(TABLE.id) == {}


async def test_a_full_rewrite_that_waits_is_not_lost_to_the_next_commit(redis_url: str) -> None:
    """Its timer has fired and the newest payload requests levels; what was requested before goes with them."""
    async with in_world(
        redis_url, {"lakewright.full-rewrite-interval": "24h", "lakewright.idle-compaction-after": "off"}
    ) as world:
        await world.write(partition(1), TWO_SMALL)
        world.now_ms += 24 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(1, 1)
        await world.write(partition(1), [100_000] * 9)
        (claim,) = await world.queue.run(commands.claim("default", worker="w", nonce="c", slots=1, lease_ms=60_000))
        payload = JobPayload.decode(claim.payload)
        assert payload.rewrite_kind is RewriteKind.LEVELS
        assert payload.with_extent(claim.extent).rewrite_kind is RewriteKind.FULL


async def test_a_partition_that_is_never_idle_is_merged_once_per_interval(redis_url: str) -> None:
    async with in_world(redis_url, {"self-optimizing.minor.trigger.interval": str(2 * HOUR_MS)}) as world:
        await world.write(partition(1), TWO_SMALL)
        for _ in range(2):
            assert await world.decider.tick() == TimerRunResult(0, 0)
            world.now_ms += HOUR_MS
            await world.write(partition(1), [100])
        assert await world.decider.tick() == TimerRunResult(1, 1)
        (job,) = await world.jobs()
        payload = JobPayload.decode(job.payload)
        assert (payload.reason, payload.rewrite_kind) == (Reason.IDLE, RewriteKind.IDLE)
        await world.run_job()
        assert await world.timers.all(TABLE.id) == {}


async def test_a_full_rewrite_comes_once_per_interval_and_only_after_a_change(redis_url: str) -> None:
    async with in_world(
        redis_url, {"lakewright.full-rewrite-interval": "24h", "lakewright.idle-compaction-after": "off"}
    ) as world:
        await world.write(partition(1), TWO_SMALL)
        for _ in range(3):
            world.now_ms += 8 * HOUR_MS
            await world.write(partition(1), [100])
        assert await world.decider.tick() == TimerRunResult(1, 1)
        (job,) = await world.jobs()
        payload = JobPayload.decode(job.payload)
        assert (payload.reason, payload.rewrite_kind) == (Reason.FULL_REWRITE_DUE, RewriteKind.FULL)
        await world.run_job()
        for _ in range(9):
            world.now_ms += 8 * HOUR_MS
            assert await world.decider.tick() == TimerRunResult(0, 0)


async def test_a_full_rewrite_comes_after_the_number_of_commits_to_its_partition(redis_url: str) -> None:
    off = {"lakewright.idle-compaction-after": "off", "lakewright.filter": "dt = '1'"}
    async with in_world(redis_url, {"lakewright.full-every-commits": "3", **off}) as world:
        for _ in range(3):
            await world.write(partition(2), [100])
        for number in range(3):
            assert await world.jobs() == [], number
            await world.write(partition(1), [MIB])
        (job,) = await world.jobs()
        payload = JobPayload.decode(job.payload)
        assert (job.key.partition, payload.rewrite_kind) == (partition(1), RewriteKind.FULL)
        assert payload.reason == Reason.COMMIT_COUNT_REACHED
        await world.run_job()
        # Another decider goes on counting, and our own commit does not count.
        world.decider = world.new_decider()
        for _ in range(2):
            await world.write(partition(1), [MIB])
        assert await world.jobs() == []
        await world.write(partition(1), [MIB])
        assert [job.key.partition for job in await world.jobs()] == [partition(1)]
        records = await LedgerReader(world.queue).newest(TABLE.id, limit=20)
        assert not any(contradictions(record) for record in records)


async def test_a_rebuild_does_not_put_a_full_rewrite_off(redis_url: str) -> None:
    async with in_world(
        redis_url, {"lakewright.full-rewrite-interval": "24h", "lakewright.idle-compaction-after": "off"}
    ) as world:
        await world.write(partition(1), TWO_SMALL)
        before = await world.timers.all(TABLE.id)
        world.now_ms += 20 * HOUR_MS
        world.log.oldest = len(world.log.commits) + 1
        world.log.add([world.file(partition(1), 100)])
        world.log.add([world.file(partition(1), 100)])
        await world.decider.follow()
        assert await world.timers.all(TABLE.id) == before


async def test_what_a_timer_led_to_can_be_recomputed_from_the_ledger(redis_url: str) -> None:
    async with in_world(redis_url, {"lakewright.full-rewrite-interval": "24h"}) as world:
        await world.write(partition(1), TWO_SMALL)
        world.now_ms += 24 * HOUR_MS
        assert await world.decider.tick() == TimerRunResult(2, 1)
        records = await LedgerReader(world.queue).newest(TABLE.id, limit=10)
        assert {record.reason for record in records} >= {Reason.IDLE, Reason.NO_PROMOTION}
        assert all(recompute(record) is record.verdict for record in records)
        assert not any(contradictions(record) for record in records)
        quiet = next(record for record in records if record.reason is Reason.IDLE)
        assert quiet.verdict is DecisionKind.ENQUEUE
        assert "is idle" in quiet.message
        assert "A job was queued." in quiet.message


async def test_a_timer_that_changed_since_it_was_read_is_not_taken(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        (timer,) = await world.timers.due(TABLE.id, world.now_ms + 6 * HOUR_MS, limit=9)
        world.now_ms += 1
        await world.write(partition(1), [MIB])
        before = await world.timers.all(TABLE.id)
        taken = await world.timers.fire(TABLE.id, timer, rearm_at_ms=0, job=None, decision=("{}", {"x": 1}))
        assert taken is DecideOutcome.TIMER_CHANGED
        assert await world.timers.all(TABLE.id) == before
        again = Timer(timer.name, before[timer.name])
        assert (
            await world.timers.fire(TABLE.id, again, rearm_at_ms=0, job=None, decision=("", {})) is DecideOutcome.NONE
        )
        assert await world.timers.all(TABLE.id) == {}


class MeetingLog(MemoryLog):
    """A log whose snapshot can be read only while those of all others that share its barrier are."""

    def __init__(self, barrier: asyncio.Barrier) -> None:
        super().__init__(TableMetadata("t", ()))
        self._barrier = barrier

    async def live_files(self, at: Position | None = None) -> LiveFiles:
        await asyncio.wait_for(self._barrier.wait(), scaled(30))
        return await super().live_files(at)


async def test_tables_are_read_side_by_side(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        barrier = asyncio.Barrier(TABLES_AT_ONCE)
        tables = [TableRef(TableId(f"m-{n}"), f"m{n}", f"memory:///m{n}") for n in range(2 * TABLES_AT_ONCE)]
        logs = {table.location: MeetingLog(barrier) for table in tables}
        for table in tables:
            await world.registry.register(table)
        await world.queue.redis.zadd(keys.due_tables("default"), {table.id: 1 for table in tables})
        follower = TableTracker(world.queue, logs.__getitem__, lambda: world.now_ms, Alone(PolicyDefaults(POLICY)))
        await TimerRunner(world.queue, world.registry, follower, lambda: world.now_ms).run_once()
        assert await world.timers.due_tables(world.now_ms + AGAIN_MS, limit=1) == ()


async def test_tables_that_cannot_be_followed_do_not_keep_the_others_waiting(redis_url: str) -> None:
    """They are due for longer than the table that can be followed, and more of them than one tick reads."""
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        broken = [TableRef(TableId(f"b-{n}"), f"b{n}", f"memory:///b{n}") for n in range(TABLES_PER_TICK + 1)]
        for table in broken:
            await world.registry.register(table)
        await world.queue.redis.zadd(keys.due_tables("default"), {table.id: 1 for table in broken})

        def opened(location: str) -> MemoryLog:
            if location == TABLE.location:
                return world.log
            if location == broken[0].location:
                raise ValueError("a log that no one foresaw")
            raise RetryableError("the bucket is away")

        follower = TableTracker(world.queue, opened, lambda: world.now_ms, Alone(PolicyDefaults(POLICY)))
        settle = TimerRunner(world.queue, world.registry, follower, lambda: world.now_ms)
        world.now_ms += 6 * HOUR_MS
        assert [(await settle.run_once()).jobs for _ in range(2)] == [0, 1]
        assert await world.timers.due_tables(world.now_ms, limit=9) == ()
        world.now_ms += AGAIN_MS
        assert len(await world.timers.due_tables(world.now_ms, limit=2 * TABLES_PER_TICK)) == len(broken)
