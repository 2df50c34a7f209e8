"""Following a log into a real Redis through all that can happen to a table; the state always equals a rebuild."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from decider.state.effective_policy import PolicyDefaults
from decider.state.file_columns import LiveFiles
from decider.store.tables.table_state import PartitionStates, TableState, TableStateStore
from decider.tracking.rebuild import StateRebuilder
from decider.tracking.table_context import TRUSTED_MS
from decider.tracking.table_tracking import COMMITS_PER_INGEST
from shared.layout.partition_stats import PartitionStats
from shared.policy.policy import MIB, JobOrder, Policy, Priority
from shared.queue import keys, queries
from shared.queue.decode import text
from shared.queue.model import Band
from shared.table import Commit, DataFile, PartitionKey, Position, TableId, TableMetadata
from tests.support.memory_log import MemoryLog, count_live_files
from tests.support.timed_world import DT, POLICY, TABLE, Alone, World, in_world, partition

pytestmark = pytest.mark.redis

META = TableMetadata("u-1", DT)


class FollowedWorld(World):
    """One table and its decider, and what is stored of both."""

    @property
    def states(self) -> TableStateStore:
        return TableStateStore(self.queue)

    async def limits(self) -> dict[str, str]:
        """Weights and limits of tables in the queue."""
        raw = await self.queue.redis.hgetall(keys.config(self.queue.name))
        return {text(name): text(value) for name, value in raw.items() if b"table" in name}

    async def waiting(self) -> int:
        return sum((await self.queue.run(queries.depth("default"))).depth.values())

    async def partitions(self) -> dict[PartitionKey, PartitionStats]:
        return await self.states.all_partitions(TABLE.id)

    async def expect_exact(self, policy: Policy = POLICY) -> None:
        """The cursor stands at the newest version and the partitions equal a rebuild."""
        cursor = await self.states.state(TABLE.id)
        assert cursor is not None
        assert cursor.version == len(self.log.commits) - 1
        assert await self.partitions() == count_live_files((await self.log.snapshot()).files, policy)


def files(of: PartitionKey, count: int, tag: object = "") -> list[DataFile]:
    return [DataFile(f"{of}-{tag}-{number}", 100_000, of) for number in range(count)]


@pytest.mark.parametrize("widths", [(101,), (1001,), (399, 700), (1000, 1)])
async def test_wide_commits_are_taken_and_every_partition_that_needs_a_job_gets_one(
    redis_url: str, widths: tuple[int, ...]
) -> None:
    """A backfill touches more partitions than one ingest may carry; it must neither stop the table nor drop a job."""
    async with in_world(redis_url, of=FollowedWorld) as world:
        for number, width in enumerate(widths):
            world.log.add(file for n in range(width) for file in files(partition(n), 8, number))
        await world.decider.follower.follow(TABLE)
        await world.expect_exact()
        assert await world.waiting() == max(widths)


async def test_a_state_is_read_once_and_what_was_stored_since_is_known(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a rebuild, and after each batch of commits, the state is the stored one without another read."""
    reads = 0
    stored = TableStateStore.state

    async def counted(self: TableStateStore, table: TableId) -> TableState | None:
        nonlocal reads
        reads += 1
        return await stored(self, table)

    async with in_world(redis_url, of=FollowedWorld) as world:
        monkeypatch.setattr(TableStateStore, "state", counted)
        batches = 2 * COMMITS_PER_INGEST + 1
        for round_ in (1, 2):  # In the first one, the levels are fitted to the files, which is a rebuild.
            for number in range(batches):
                world.log.add(files(partition(number % 3), 2, (round_, number)))
            followed = await world.decider.follower.follow(TABLE)
            assert (reads, followed.version) == (round_, round_ * batches)
            assert followed.state == await stored(world.states, TABLE.id)
        assert followed.commits == batches


async def test_a_history_whose_end_was_read_is_not_asked_for_again(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read costs a request to a catalog. Only a version that an event named is searched for once more."""
    reads = []
    changes = MemoryLog.changes

    def counted(
        self: MemoryLog, after: Position, metadata: TableMetadata, *, until: int | None = None
    ) -> AsyncGenerator[Commit, None]:
        reads.append(after.version)
        return changes(self, after, metadata, until=until)

    async with in_world(redis_url, of=FollowedWorld) as world:
        monkeypatch.setattr(MemoryLog, "changes", counted)
        world.log.add(files(partition(1), 1))
        await world.decider.follower.follow(TABLE)
        for commits, hint, expected in ((1, None, 1), (3, None, 1), (COMMITS_PER_INGEST + 1, None, 2), (1, 10**6, 2)):
            reads.clear()
            for number in range(commits):
                full = DataFile(f"{commits}-{hint}-{number}", POLICY.target_bytes, partition(1))
                world.log.add([full])
            await world.decider.follower.follow(TABLE, hint)
            await world.expect_exact()
            assert len(reads) == expected, (commits, hint)


async def test_a_late_event_leads_to_the_end_of_the_log_and_one_in_time_no_further(redis_url: str) -> None:
    """Where the next commit is there already, it is read at once, and its own event finds nothing to do."""
    async with in_world(redis_url, of=FollowedWorld) as world:

        async def version_after(commits: int, hinted: int) -> int:
            for _ in range(commits):
                world.now_ms += 60_000
                world.log.command("WRITE", world.now_ms, 0, [world.file(partition(1), POLICY.target_bytes)])
            return (await world.decider.follower.follow(TABLE, hinted)).version

        assert await version_after(9, 7) == 7, "how often writers commit was not known"
        assert await version_after(0, 8) == 8, "no later than the next commit"
        assert await version_after(2, 9) == 11
        await world.expect_exact()
        assert await version_after(1, 10) == 11, "what was read already"
        assert await version_after(0, 12) == 12


async def test_a_merge_that_a_later_commit_leads_to_waits_for_the_moment_of_the_first_one(redis_url: str) -> None:
    async with in_world(redis_url, of=FollowedWorld) as world:

        async def committed(added: Sequence[DataFile]) -> None:
            world.now_ms += 60_000
            world.log.command("WRITE", world.now_ms, 0, added)
            await world.decider.follow()

        for number in range(6):
            await committed([DataFile(f"full-{number}", POLICY.target_bytes, partition(0))])
        for number in (1, 2, 3):
            await committed(files(partition(number), 8))
        jobs = {job.key.partition: job for job in await world.jobs()}
        waits = [
            await world.queue.redis.hget(keys.job("default", jobs[partition(number)].id), "quiet")
            for number in (1, 2, 3)
        ]
        assert waits == [b"150000", b"90000", b"30000"]


async def test_a_process_that_has_not_listed_a_history_looks_behind_the_end_that_it_read(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits may be missing there, which a reader takes for the end."""
    changes = MemoryLog.changes

    def torn(
        self: MemoryLog, after: Position, metadata: TableMetadata, *, until: int | None = None
    ) -> AsyncGenerator[Commit, None]:
        return changes(self, after, metadata, until=after.version + 1 if until is None else until)

    async with in_world(redis_url, of=FollowedWorld) as world:
        await world.decider.follower.follow(TABLE)
        monkeypatch.setattr(MemoryLog, "changes", torn)
        for number in range(4):
            world.log.add(files(partition(1), 1, number))
        await world.tracker(POLICY).follow(TABLE)
        await world.expect_exact()


async def test_an_event_and_a_timer_at_once_read_a_table_once(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    live_files = MemoryLog.live_files

    async def counted(self: MemoryLog, at: Position | None = None) -> LiveFiles:
        reads.append(at)
        await asyncio.sleep(0)
        return await live_files(self, at)

    async with in_world(redis_url, of=FollowedWorld) as world:
        monkeypatch.setattr(MemoryLog, "live_files", counted)
        world.log.add(files(partition(1), 1))
        follower = world.tracker(Policy(target_bytes=16 * MIB))
        known = await world.states.state(TABLE.id)
        results = await asyncio.gather(*(follower.follow(TABLE, hint, known=known) for hint in (None, 1, None)))
        assert len(reads) == 1
        assert [bool(result.rescan) for result in results] == [True, False, False]
        assert {result.state.version for result in results} == {1}
        await world.expect_exact(Policy(target_bytes=16 * MIB))


@pytest.mark.parametrize("hint", [None, 3])
async def test_a_table_made_again_at_its_place_is_rebuilt(redis_url: str, hint: int | None) -> None:
    async with in_world(redis_url, of=FollowedWorld) as world:
        for number in range(5):
            world.log.add(files(partition("old"), 1, number))
        await world.decider.follower.follow(TABLE)
        world.log.commits = MemoryLog(TableMetadata("u-2", DT)).commits
        for number in range(3):
            world.log.add(files(partition("new"), 8, number))
        world.now_ms += TRUSTED_MS
        followed = await world.decider.follower.follow(TABLE, hint)
        assert "created again" in followed.rescan
        await world.expect_exact()


async def test_a_table_made_again_that_is_longer_already_is_not_folded_onto_the_dead_one(redis_url: str) -> None:
    async with in_world(redis_url, of=FollowedWorld) as world:
        for number in range(5):
            world.log.add(files(partition("old"), 1, number))
        await world.decider.follower.follow(TABLE)
        world.log.commits = MemoryLog(TableMetadata("u-2", DT)).commits
        for number in range(9):
            world.log.add(files(partition("new"), 1, number))
        restarted = world.tracker()
        await restarted.follow(TABLE, 9)
        await world.expect_exact()


@pytest.mark.parametrize("before", [replace(POLICY, enabled=False), replace(POLICY, min_input_files=20)])
async def test_a_changed_default_of_the_service_reaches_idle_partitions(redis_url: str, before: Policy) -> None:
    async with in_world(redis_url, of=FollowedWorld) as world:
        strict = world.tracker(before)
        world.log.add(files(partition(1), 8))
        await strict.follow(TABLE)
        assert await world.jobs() == []
        await world.tracker().follow(TABLE)
        assert len(await world.jobs()) == 1


async def test_a_change_of_what_only_bears_on_the_queue_counts_no_table_again_and_applies_at_once(
    redis_url: str,
) -> None:
    """By a default of the service, and by the table's own property; any other default has the table counted again."""
    async with in_world(redis_url, of=FollowedWorld) as world:
        world.log.add(files(partition(1), 12))
        await world.decider.follower.follow(TABLE)
        first = replace(POLICY, priority=Priority.LOW, read_weight=Fraction(3), job_order=JobOrder.BALANCED)
        world.log.add(files(partition(2), 12))
        assert not (await world.tracker(first).follow(TABLE)).rescan
        own = replace(META, configuration={"lakewright.priority": "high", "lakewright.max-concurrent-jobs": "2"})
        version = world.log.add(metadata=own, data_change=False)
        assert not (await world.tracker(first).follow(TABLE, version)).rescan
        assert await world.limits() == {f"limit:table|{TABLE.id}": "2"}
        world.log.add(files(partition(3), 12))
        first = replace(first, weight=Fraction(3))
        assert not (await world.tracker(first).follow(TABLE)).rescan
        assert await world.limits() == {f"limit:table|{TABLE.id}": "2", f"weight:table|{TABLE.id}": "3"}
        bands = {job.key.partition: job.band for job in await world.jobs()}
        assert bands == {partition(1): Band.NORMAL, partition(2): Band.LOW, partition(3): Band.HIGH}
        await world.expect_exact()
        assert (await world.tracker(replace(first, tolerance=Fraction(1, 2))).follow(TABLE)).rescan


async def test_a_fold_is_refused_where_another_decider_rebuilt_under_another_policy(redis_url: str) -> None:
    """The version is the same and the levels are others: mixing them would be a silent, lasting drift."""
    async with in_world(redis_url, of=FollowedWorld) as world:
        world.log.add([*files(partition(1), 3), *files(partition(2), 3)])
        await world.decider.follower.follow(TABLE)
        lagging = MemoryLog(META)
        lagging.commits = list(world.log.commits)
        other = world.tracker(replace(POLICY, target_bytes=64 * MIB), lagging)
        world.log.add(files(partition(1), 1, "new"))
        read, before = world.log.changes, []

        async def rebuilt_meanwhile(
            after: Position, metadata: TableMetadata, *, until: int | None = None
        ) -> AsyncGenerator[Commit, None]:
            async for commit in read(after, metadata, until=until):
                if not before:
                    before.append(await other.follow(TABLE))
                yield commit

        world.log.changes = rebuilt_meanwhile  # type: ignore[method-assign]
        await world.decider.follower.follow(TABLE)
        assert before
        await world.expect_exact()


async def test_a_fold_is_refused_where_another_decider_rebuilt_at_the_same_version(redis_url: str) -> None:
    """A drift is repaired at the version that it was found at: partitions that were read before would bring it back."""
    async with in_world(redis_url, of=FollowedWorld) as world:
        world.log.add(files(partition(1), 3, "old"))
        await world.decider.follower.follow(TABLE)
        wrong = PartitionStats(files=9, bytes=900_000).encode()
        await world.queue.redis.hset(keys.partitions("default", TABLE.id), partition(1), wrong)
        lagging = MemoryLog(META)
        lagging.commits = list(world.log.commits)
        other = StateRebuilder(world.queue, lambda: world.now_ms, Alone(PolicyDefaults(POLICY)))
        read, repaired = TableStateStore.calibrated_partitions, []

        async def repaired_meanwhile(
            states: TableStateStore, table: TableId, wanted: Sequence[PartitionKey]
        ) -> PartitionStates:
            known = await read(states, table, wanted)
            if not repaired:
                repaired.append(await other.rebuild(TABLE, lagging, await states.state(table), "drift"))
            return known

        world.log.add(files(partition(1), 1, "new"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TableStateStore, "calibrated_partitions", repaired_meanwhile)
            await world.decider.follower.follow(TABLE)
        assert repaired
        assert repaired[0] is not None
        await world.expect_exact()


async def test_levels_are_fitted_to_what_writers_append_and_the_table_is_counted_again_under_them(
    redis_url: str,
) -> None:
    async with in_world(redis_url, of=FollowedWorld) as world:

        def append(commits: int, size_bytes: int) -> None:
            for _ in range(commits):
                number = len(world.log.commits)
                world.log.add([DataFile(f"f{number}", size_bytes, partition(1))])

        append(31, 70_000)
        await world.decider.follower.follow(TABLE)
        cursor = await world.states.state(TABLE.id)
        assert cursor is not None
        assert (cursor.level_fit.typical_file_bytes, cursor.rebuilds) == (0, 0)
        append(1, 70_000)
        followed = await world.decider.follower.follow(TABLE)
        assert "levels fitted to new files of 0.0668 MiB" in followed.rescan
        fitted = POLICY.fitted_to(70_000)
        assert fitted.size_levels.floors != POLICY.size_levels.floors
        await world.expect_exact(fitted)
        append(3, 70_000)
        restarted = world.tracker()
        assert (await restarted.follow(TABLE)).rescan == "", "the fit is part of the state"
        await world.expect_exact(fitted)
        world.log.add(metadata=replace(META, configuration={"lakewright.fan-in": "8"}))
        await restarted.follow(TABLE)
        await world.expect_exact(POLICY)
        cursor = await world.states.state(TABLE.id)
        assert cursor is not None
        assert cursor.level_fit.typical_file_bytes == 70_000
        assert restarted.effective(TABLE, cursor).policy.size_levels == POLICY.size_levels
