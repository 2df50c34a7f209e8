"""One table in memory and deciders on a real queue, with a clock turned by hand: stories about time that take none."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from decider.background.timer_runner import TimerRunner, TimerRunResult
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.state.effective_policy import PolicyDefaults
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.timer_queries import TimerStore
from decider.tracking.tracker import TableTracker
from shared.jobs.payload import JobPayload, RewriteKind
from shared.layout.partition_stats import IDLE_COMPACTED_TAG
from shared.layout.planner import FileGroup, plan, plan_full, plan_idle_compaction
from shared.policy.policy import MIB, Policy
from shared.queue import commands, queries
from shared.queue.model import JobState
from shared.queue.records import JobView
from shared.table import DataFile, PartitionColumn, PartitionKey, RemovedFile, TableId, TableMetadata, TableRef
from tests.support.memory_log import MemoryLog
from tests.support.queue_bench import end_of


class Alone:
    """The defaults of a decider that shares its Redis with no other."""

    def __init__(self, defaults: PolicyDefaults) -> None:
        self.current = defaults

    async def refresh(self) -> bool:
        """Return False: there is no one to ask."""
        return False


HOUR_MS = 3_600_000
POLICY = Policy(target_bytes=8 * MIB)
DT = (PartitionColumn("dt", "dt", "string"),)
TABLE = TableRef(TableId("t-1"), "t", "memory:///t")


class World:
    """One registered table, its log, and a decider with a clock that is turned by hand."""

    def __init__(
        self, url: str, configuration: dict[str, str] | None = None, actions: ActionRegistry = ACTIONS
    ) -> None:
        self.actions = actions
        self.metadata = TableMetadata("u-1", DT, configuration or {})
        self.log = MemoryLog(self.metadata)
        self.queue = AsyncQueueExecutor(connect(url), "default")
        self.registry = TableRegistry(self.queue.redis, now_ms=lambda: self.now_ms)
        self.timers = TimerStore(self.queue)
        self.now_ms = 1_000_000
        self.files = 0
        self.decider = self.new_decider()

    def new_decider(self) -> "Decider":
        return Decider(self)

    def tracker(self, policy: Policy = POLICY, log: MemoryLog | None = None) -> TableTracker:
        """Return what follows the table, or another log of it, in a decider with these defaults."""
        defaults = Alone(PolicyDefaults(policy))
        return TableTracker(self.queue, lambda _: log or self.log, lambda: self.now_ms, defaults, actions=self.actions)

    async def write(self, partition: PartitionKey, sizes: Iterable[int]) -> None:
        """Commit files, and let the decider see it."""
        self.log.add([self.file(partition, size) for size in sizes])
        await self.decider.follow()

    def file(self, partition: PartitionKey, size: int, *, settled: bool = False) -> DataFile:
        self.files += 1
        tags = {IDLE_COMPACTED_TAG: "1"} if settled else {}
        return DataFile(f"f{self.files}", size, partition, modified_ms=self.now_ms, tags=tags)

    async def jobs(self) -> list[JobView]:
        pages = [await self.queue.run(queries.jobs("default", state)) for state in JobState]
        return [job for page in pages for job in page.jobs]

    async def run_job(self) -> None:
        """Play the actor, as far as it plans: groups become files of their size, each round a commit."""
        (claim,) = await self.queue.run(
            commands.claim("default", worker="w", nonce=f"c{self.files}", slots=1, lease_ms=60_000)
        )
        partition, payload = (
            PartitionKey(claim.key.partition),
            JobPayload.decode(claim.payload).with_extent(claim.extent),
        )
        rounds = 0
        while groups := _planned(partition, await self._live(partition), payload):
            merged = [replace(self.file(partition, group.bytes), tags=group.tags) for group in groups]
            gone = [
                RemovedFile(file.path, None, file.size_bytes, partition, tags=file.tags)
                for group in groups
                for file in group.files
            ]
            self.log.add(merged, gone, data_change=False, by_us=True)
            rounds += 1
        assert rounds, "the job found nothing to do"
        await self.queue.run(end_of(claim, cost_bytes=0))
        await self.decider.follow()

    async def _live(self, partition: PartitionKey) -> list[DataFile]:
        return [file for file in (await self.log.snapshot()).files if file.partition == partition]


def _planned(partition: PartitionKey, files: list[DataFile], payload: JobPayload) -> tuple[FileGroup, ...]:
    if payload.rewrite_kind is RewriteKind.FULL:
        return plan_full(partition, files, payload.policy).groups
    groups = plan(partition, files, payload.policy).groups
    if groups or payload.rewrite_kind is RewriteKind.LEVELS:
        return groups
    return plan_idle_compaction(partition, files, payload.policy, ended_by_ms=payload.ended_by_ms).groups


W = TypeVar("W", bound=World)


class Decider:
    """A follower and its timers."""

    def __init__(self, world: World) -> None:
        self.follower = world.tracker()
        self.settle = TimerRunner(world.queue, world.registry, self.follower, lambda: world.now_ms)

    async def follow(self) -> None:
        await self.follower.follow(TABLE)

    async def tick(self) -> TimerRunResult:
        return await self.settle.run_once()


def partition(name: object) -> PartitionKey:
    return PartitionKey(f'{{"dt":"{name}"}}')


@asynccontextmanager
async def in_world(
    url: str,
    configuration: dict[str, str] | None = None,
    *,
    actions: ActionRegistry = ACTIONS,
    of: type[W] = World,  # type: ignore[assignment]
) -> AsyncIterator[W]:
    world = of(url, configuration, actions)
    await world.registry.register(TABLE)
    await world.decider.follow()
    try:
        yield world
    finally:
        await world.queue.redis.aclose()


TWO_SMALL = [MIB, MIB]
"""Two files that no level lets merge, and that are far from the target."""
