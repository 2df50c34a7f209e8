"""Logs that add live files again, remove files twice, and remove files that were never there.

The state equals the snapshot within one sweep, and for logs without anything odd no request is added. Logs are seeded;
half of them have a checksum for each version, the others checkpoints that name their number of files.
"""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from decider.decide.actions import ACTIONS
from decider.state.effective_policy import PolicyDefaults
from decider.store.tables.table_state import TableStateStore
from decider.tracking.drift_check import DEFAULT_EVERY_MS, MAX_MISSES
from decider.tracking.tracker import TableTracker
from shared.jobs.payload import JobPayload
from shared.layout.planner import plan
from shared.policy.policy import MIB
from shared.table import DataFile, RemovedFile, TableId, TableMetadata, TableRef
from tests.support.memory_log import CHECKPOINT_EVERY, MemoryLog, count_live_files
from tests.support.timed_world import DT, POLICY, TABLE, Alone, World, in_world, partition

pytestmark = pytest.mark.redis

LOGS, BLOCKS = 200, 10
KINDS = ("added again", "removed again", "never there")


def removal(file: DataFile) -> RemovedFile:
    return RemovedFile(file.path, None, file.size_bytes, file.partition, tags=file.tags)


class OddTable:
    """A seeded log, and a process that follows it and may be replaced by one that has seen nothing."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.dice = world, random.Random(seed)
        self.table = TableRef(TableId(f"odd-{seed}"), f"odd-{seed}", f"memory:///odd-{seed}")
        self.log = MemoryLog(TableMetadata("u-1", DT))
        self.log.has_checksums, self.log.has_checkpoints = seed % 2 == 0, seed % 2 == 1
        self.live: list[DataFile] = []
        self.removed: list[DataFile] = []
        self.names = 0
        self.restart()

    def restart(self) -> None:
        self.tracker = TableTracker(
            self.world.queue,
            lambda _: self.log,
            lambda: self.world.now_ms,
            Alone(PolicyDefaults(POLICY)),
            actions=ACTIONS,
        )

    async def follow(self) -> str:
        return (await self.tracker.follow(self.table)).rescan

    async def sweep(self) -> str:
        self.world.now_ms += DEFAULT_EVERY_MS + 1
        return await self.follow()

    def write(self) -> None:
        added = [self.file() for _ in range(self.dice.randint(1, 3))]
        gone = self.live.pop(self.dice.randrange(len(self.live))) if len(self.live) > 3 else None
        self.log.add(added, [removal(gone)] if gone else [])
        self.live += added
        self.removed += [gone] if gone else []

    def file(self) -> DataFile:
        self.names += 1
        return DataFile(f"f{self.names}", self.dice.randint(1, MIB), partition(self.dice.randint(0, 2)))

    def write_odd(self, kind: str) -> None:
        if kind == "added again":
            self.log.add([self.dice.choice(self.live)])
        else:
            self.log.add(removed=[removal(self.dice.choice(self.removed) if kind == "removed again" else self.file())])

    async def is_exact(self) -> bool:
        states = TableStateStore(self.world.queue).iterate_partitions(self.table.id)
        stored = {key: state async for key, state in states if state.files}
        return stored == count_live_files((await self.log.snapshot()).files, POLICY)


@pytest.mark.parametrize("block", range(BLOCKS))
async def test_the_state_of_an_odd_log_equals_its_snapshot_within_one_sweep(redis_url: str, block: int) -> None:
    found: Counter[str] = Counter()
    async with in_world(redis_url) as world:
        for seed in range(block, LOGS, BLOCKS):
            odd = OddTable(world, seed)
            for _ in range(8):
                odd.write()
                await odd.follow()
            await odd.sweep()
            # Of two kinds one could hide the other from whatever only counts.
            kind = odd.dice.choice(KINDS)
            for _ in range(odd.dice.randint(1, 4)):
                odd.write()
                if odd.dice.random() < 0.5:
                    odd.restart()
                    await odd.follow()
                    await odd.sweep()
                odd.write_odd(kind)
                await odd.follow()
            while len(odd.log.commits) % CHECKPOINT_EVERY != 1:
                odd.write()
                await odd.follow()
            found["exact at once" if await odd.is_exact() else "found by the sweep"] += 1
            await odd.sweep()
            assert await odd.is_exact(), f"seed {seed}: {kind}"
    print(f"block {block}: {dict(found)}")
    assert found["exact at once"]


class CountingLog(MemoryLog):
    """A log that counts the requests of each kind."""

    def __init__(self, metadata: TableMetadata) -> None:
        super().__init__(metadata)
        self.requests: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if name in ("totals", "checkpointed_files", "live_files", "checkpoint", "contains", "end_of_history"):
            object.__getattribute__(self, "requests")[name] += 1
        return super().__getattribute__(name)


@pytest.mark.parametrize("has_checksums", [True, False])
async def test_a_log_without_anything_odd_costs_one_request_a_check_and_is_never_read_as_a_whole(
    redis_url: str, has_checksums: bool
) -> None:
    checks = 6  # Of five commits each: fewer than levels are fitted to.

    async with in_world(redis_url) as world:
        odd = OddTable(world, 1)
        odd.log = log = CountingLog(TableMetadata("u-1", DT))
        log.has_checksums, log.has_checkpoints = has_checksums, not has_checksums
        await odd.follow()
        for _ in range(checks):
            for _ in range(5):
                odd.write()
                assert await odd.follow() == ""
            assert await odd.sweep() == ""
        assert log.requests["totals"] + log.requests["checkpointed_files"] == checks
        assert (log.requests["checkpointed_files"] > 0) is not has_checksums
        assert log.requests["live_files"] == 1, "at first sight"


UNSEEN = ("added again", "never there")


def write_unseen(odd: OddTable, kind: str) -> None:
    """Repeat an action on a file of which a new process knows nothing."""
    if kind == "added again":
        odd.log.command("WRITE", odd.world.now_ms, 1, [replace(odd.dice.choice(odd.live), modified_ms=1)])
    else:
        odd.log.add(removed=[removal(replace(odd.dice.choice(odd.live), path="stranger"))])


async def followed_by_a_new_process(odd: OddTable) -> None:
    for _ in range(8):
        odd.write()
    await odd.follow()
    odd.live.append(odd.file())
    odd.log.command("WRITE", odd.world.now_ms, 1, odd.live[-1:])
    await odd.follow()
    odd.restart()
    await odd.follow()


@pytest.mark.parametrize("kind", UNSEEN)
async def test_an_action_on_a_file_that_the_process_has_not_seen_is_checked_at_once(redis_url: str, kind: str) -> None:
    """A checksum is there a moment after its commit, so a check that finds none is made again, thrice."""
    async with in_world(redis_url) as world:
        for is_late in (False, True):
            odd = OddTable(world, 2 + 2 * is_late)
            await followed_by_a_new_process(odd)
            write_unseen(odd, kind)
            odd.log.has_checksums = not is_late
            found = await odd.follow()
            odd.log.has_checksums = True
            found = found or await odd.follow()
            assert found.startswith("drift")
            assert await odd.is_exact()


@pytest.mark.parametrize("kind", UNSEEN)
async def test_where_no_writer_counts_the_log_is_read_within_a_day_and_once(redis_url: str, kind: str) -> None:
    async with in_world(redis_url) as world:
        odd = OddTable(world, 1)
        odd.log = log = CountingLog(TableMetadata("u-1", DT))
        await followed_by_a_new_process(odd)
        write_unseen(odd, kind)
        assert await odd.follow() == ""
        reads, found = log.requests["live_files"], []
        for _ in range(26):
            odd.write()
            found.append(await odd.sweep())
        assert [reason.split(":")[0] for reason in found if reason] == ["drift"]
        assert await odd.is_exact()
        assert log.requests["live_files"] == reads + 2, "compared, and rebuilt"
        assert log.requests["totals"] <= 26 + MAX_MISSES


async def test_removals_of_files_that_the_process_has_not_seen_cost_one_request_each_batch(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        odd = OddTable(world, 1)
        odd.log = log = CountingLog(TableMetadata("u-1", DT))
        log.has_checksums = True
        await followed_by_a_new_process(odd)
        before = log.requests["totals"], log.requests["live_files"]
        for file in odd.live[:5]:
            log.add([odd.file()], [removal(file)])
            assert await odd.follow() == ""
        assert (log.requests["totals"], log.requests["live_files"]) == (before[0] + 5, before[1])


@pytest.mark.parametrize("kind", KINDS[:2])
async def test_what_this_process_has_seen_is_rebuilt_at_once_when_it_is_repeated(redis_url: str, kind: str) -> None:
    async with in_world(redis_url) as world:
        odd = OddTable(world, 4)
        for _ in range(8):
            odd.write()
            await odd.follow()
        odd.write_odd(kind)
        assert kind in await odd.follow()
        assert await odd.is_exact()


PARTITION = partition(1)


def small(name: object) -> DataFile:
    return DataFile(f"small-{name}", MIB // 2, PARTITION)


async def is_exact(world: World) -> bool:
    live = count_live_files((await world.log.snapshot()).files, POLICY)
    stored = {
        key: state async for key, state in TableStateStore(world.queue).iterate_partitions(TABLE.id) if state.files
    }
    return stored == live


async def sweep_after_the_interval(world: World) -> str:
    world.now_ms += DEFAULT_EVERY_MS + 1
    return (await world.decider.follower.follow(TABLE)).rescan


async def test_live_files_added_again_later_are_found_and_the_job_that_they_led_to_plans_nothing(
    redis_url: str,
) -> None:
    async with in_world(redis_url) as world:
        world.log.has_checksums = True
        files = [small(number) for number in range(4)]
        world.log.add(files)
        await world.decider.follow()
        assert await world.jobs() == []
        world.log.add(files)
        world.decider = world.new_decider()
        await world.decider.follow()
        assert not await is_exact(world)

        (job,) = await world.jobs()
        payload = JobPayload.decode(job.payload)
        live = (await world.log.snapshot()).files
        assert plan(PARTITION, live, payload.policy).groups == (), "the actor plans on what is live"
        assert (await sweep_after_the_interval(world)).startswith("drift")
        assert await is_exact(world)


async def test_a_file_removed_again_later_and_a_strangers_file_are_found_and_the_missing_job_comes(
    redis_url: str,
) -> None:
    async with in_world(redis_url) as world:
        world.log.has_checksums = True
        files = [small(number) for number in range(9)]
        world.log.add(files)
        world.log.add(removed=[removal(files[0])])
        world.log.add([small(10), small(11)])
        world.log.add(removed=[removal(one) for one in files[1:4]])
        await world.decider.follow()
        world.decider = world.new_decider()
        for gone in (files[0], small("stranger")):
            world.log.add(removed=[removal(gone)])
            assert (await world.decider.follower.follow(TABLE)).rescan.startswith("drift")
            assert await is_exact(world)


async def test_more_removals_than_there_were_files_are_rebuilt_at_once(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        files = [small(number) for number in range(2)]
        world.log.add(files)
        await world.decider.follow()
        world.log.add(removed=[removal(small(f"stranger-{number}")) for number in range(3)])
        followed = await world.decider.follower.follow(TABLE)
        assert followed.rescan == "the log removed files that the state never held"
        assert await is_exact(world)
