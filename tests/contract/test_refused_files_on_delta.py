"""Decider and actor on a real Delta table of which files are refused: both see the same files, schema and properties.

The refusal comes from a seam around the engine, so that it does not depend on what the engine can rewrite today.
"""

import asyncio
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from actor.engines import EngineSet
from actor.formats.delta.engine import DeltaEngine
from actor.heartbeat import Heartbeat, LeaseTimes
from actor.ports import Control, GroupOutcome, GroupStatus, RewriteOutcome, RewriteRequest
from actor.queue_executor import SyncQueueExecutor, connect
from actor.worker import ActorContext, Worker, WorkerSettings
from decider.formats.delta.format import DeltaFormat
from decider.state.effective_policy import PolicyDefaults
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.queue_executor import connect as connect_async
from decider.store.tables.table_state import TableStateStore
from decider.tracking.tracker import TableTracker
from shared.errors import RefusedFiles
from shared.partition_refusals import PartitionRefusals, TableFingerprint
from shared.policy.policy import MIB, Policy
from shared.refusals import RefusalReason
from shared.table import DataFile, PartitionKey, TableId, TableRef
from tests.contract.formats.worlds import access
from tests.support.delta_lab import DeltaLab
from tests.support.timed_world import Alone

pytestmark = [pytest.mark.spark, pytest.mark.redis]

POLICY = Policy(target_bytes=8 * MIB, min_input_files=4, max_job_wait_s=None)
HERE = PartitionKey('{"dt":"a b"}')


class RefusingEngine:
    """Delta's engine, but for groups with a file that a test refuses."""

    def __init__(self, engine: DeltaEngine) -> None:
        self._engine = engine
        self.refused: set[str] = set()
        self.attempts = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        (group,) = request.groups
        bad = tuple(file.path for file in group.files if file.path in self.refused)
        if not bad:
            return self._engine.rewrite(request, control)
        self.attempts += 1
        error = RefusedFiles(f"{bad[0]}: a type", reason=RefusalReason.TYPES, files=bad)
        return RewriteOutcome(None, (GroupOutcome(group, GroupStatus.REFUSED, error=error),), 0, 0)


class Story:
    """A table, its decider and its actor."""

    def __init__(self, lab: DeltaLab, url: str, actor: ActorContext) -> None:
        self.path = lab.directory / "t"
        self.table = TableRef(TableId("t-1"), "t", self.path.as_uri())
        self.engine = RefusingEngine(lab.engine)
        self.worker = Worker(
            EngineSet([self.engine]), SyncQueueExecutor(connect(url), "default"), actor, WorkerSettings(idle_s=0.01)
        )
        self.queue = AsyncQueueExecutor(connect_async(url), "default")
        self.tracker = TableTracker(
            self.queue, DeltaFormat(access()).open, lambda: 1_000_000, Alone(PolicyDefaults(POLICY))
        )
        self.states = TableStateStore(self.queue)

    def append(self, commits: int = 4) -> None:
        for number in range(commits):
            rows = pa.table({"id": [number, number + 1], "dt": ["a b"] * 2})
            write_deltalake(self.path, rows, mode="append", partition_by=["dt"], schema_mode="merge")

    async def run(self) -> int:
        """Follow the log and run all jobs; returns their number."""
        runs = 0
        await self.tracker.follow(self.table)
        while await asyncio.to_thread(self.worker.run_next):
            runs += 1
            await self.tracker.follow(self.table)
        return runs

    async def remembered(self) -> PartitionRefusals:
        found = await self.states.refusals(self.table.id)
        return PartitionRefusals.decode(found.stored.get(HERE, ""))

    def live(self) -> list[DataFile]:
        return list(self.engine.read_partition(self.table.location, HERE).files)  # type: ignore[operator]

    def ids(self) -> list[int]:
        return sorted(DeltaTable(self.path).to_pyarrow_table().column("id").to_pylist())


@pytest.fixture
def actor(redis_url: str) -> Iterator[ActorContext]:
    heartbeat = Heartbeat(SyncQueueExecutor(connect(redis_url), "default"), "a-1", LeaseTimes())
    heartbeat.start()
    yield ActorContext("a-1", heartbeat, threading.Event())
    heartbeat.close()


async def test_a_refused_file_of_a_delta_table_is_tried_once_until_it_its_schema_or_its_properties_change(
    lab: DeltaLab, redis_url: str, actor: ActorContext
) -> None:
    made = Story(lab, redis_url, actor)

    async def story() -> None:
        made.append(8)
        before = made.ids()
        bad = made.live()[3].path
        made.engine.refused = {bad}
        assert await made.run() == 1
        (known,) = (await made.remembered()).refusals
        assert (made.engine.attempts, known.paths, known.count) == (1, (bad,), 1)
        assert {file.path for file in made.live()} > {bad}
        assert len(made.live()) == 2
        state = await made.states.state(made.table.id)
        live = made.engine.read_partition(made.table.location, HERE)  # type: ignore[operator]
        assert state is not None
        assert state.metadata.schema_digest
        assert TableFingerprint.of(state.metadata, POLICY) == TableFingerprint.of(live.metadata, POLICY)
        for _ in range(3):
            made.append(8)
            await made.run()
        assert made.engine.attempts == 1
        assert bad in {file.path for file in made.live()}
        for lift in (
            f"ALTER TABLE delta.`{made.path}` ADD COLUMN more INT",
            f"ALTER TABLE delta.`{made.path}` SET TBLPROPERTIES ('delta.logRetentionDuration' = '40 days')",
        ):
            attempts = made.engine.attempts
            lab.sql(lift)
            await made.run()
            assert made.engine.attempts == attempts + 1 or not (await made.remembered()).refusals
            made.append(8)
            await made.run()
            assert made.engine.attempts == attempts + 1
        lab.sql(f"DELETE FROM delta.`{made.path}` WHERE id >= 0")
        await made.run()
        assert not (await made.remembered()).refusals
        assert len(before) == 16

    try:
        await story()
    finally:
        await made.queue.redis.aclose()
