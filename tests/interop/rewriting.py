"""Our rewrite on a whole table: by the engine alone, or by the whole actor from its queue to its commits.

Every partition with several files, or with a deletion vector, becomes one file.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from actor.engines import EngineSet
from actor.formats.delta.engine import DeltaEngine
from actor.heartbeat import Heartbeat, LeaseTimes
from actor.ports import GroupStatus, RewriteRequest
from actor.queue_executor import SyncQueueExecutor, connect
from actor.rewrite.run import FILES_WRITTEN
from actor.worker import ActorContext, Worker, WorkerSettings
from shared.errors import LakewrightError
from shared.jobs.payload import JobPayload, PredictedCost, RewriteKind
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE, partition_key
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.queue import commands, queries
from shared.queue.model import Band, JobKey, JobRequest
from shared.table import PartitionKey
from tests.interop.engines.protocol import Writer
from tests.interop.engines.spark import SparkWriter
from tests.interop.operations import Model, Restore
from tests.interop.table_case import Batch, Case
from tests.interop.table_log import TableLog
from tests.support.delta_lab import mark
from tests.support.steering import Steering

_QUEUE = "default"


class RewriteRefusedError(Exception):
    """We do not rewrite this table; the text says why."""


class EngineRewrite:
    """Rewrites whole tables by one engine, in one commit each; `meanwhile` acts when files are written."""

    def __init__(self, engine: DeltaEngine, meanwhile: Callable[[Path], object] = lambda _: None) -> None:
        self._engine = engine
        self._meanwhile = meanwhile
        self._jobs = itertools.count()

    def __call__(self, location: Path) -> int:
        """Rewrite a table and return how many partitions were; raises RewriteRefusedError with our own reason."""
        uri = location.as_uri()
        try:
            groups = [FileGroup(partition, self._engine.read_partition(uri, partition).files, RewriteMode.MINOR)
                      for partition in worth_a_rewrite(self._engine, location)]  # fmt: skip
            if not groups:
                return 0
            request = RewriteRequest(uri, tuple(groups), mark(f"lab-{next(self._jobs)}", 1))
            outcome = self._engine.rewrite(request, Steering(at={FILES_WRITTEN: lambda: self._meanwhile(location)}))
        except LakewrightError as error:
            raise RewriteRefusedError(str(error)) from error
        landed = [end for end in outcome.groups if end.status is GroupStatus.COMMITTED]
        assert len(landed) == len(groups), outcome
        return len(landed)


class WorkerRewrite:
    """Rewrites whole tables by jobs in a queue and a worker that takes them."""

    def __init__(self, engine: DeltaEngine, redis_url: str, worker: Worker) -> None:
        self._engine = engine
        self._queue = SyncQueueExecutor(connect(redis_url), _QUEUE)
        self._worker = worker
        self._tables = itertools.count()

    def __call__(self, location: Path) -> int:
        """As `EngineRewrite`."""
        try:
            partitions = worth_a_rewrite(self._engine, location)
        except LakewrightError as error:
            raise RewriteRefusedError(str(error)) from error
        table, policy = f"lab-{next(self._tables)}", Policy(min_input_files=2)
        for partition in partitions:
            predicted = PredictedCost(2, 1, 0)
            payload = JobPayload(
                location.as_uri(), table, policy, "asked", predicted, policy_digest({}), RewriteKind.FULL
            )
            key = JobKey(table, partition, "compact")
            self._queue.run(commands.enqueue(_QUEUE, JobRequest(key, _QUEUE, Band.NORMAL, 5, 0, 1, payload.encode())))
        before = len(TableLog.read(location).commits)
        while self._worker.run_next():
            pass
        runs = [run for run in self._queue.run(queries.history(_QUEUE)).runs if run.key.table == table]
        failed = [run for run in runs if run.run_result != "done"]
        if failed:
            raise RewriteRefusedError(f"{failed[0].run_result}: {failed[0].error or failed[0].result}")
        assert not partitions or len(TableLog.read(location).commits) > before, "the worker committed nothing"
        return len(partitions)


@contextmanager
def worker_on(engine: DeltaEngine, redis_url: str) -> Iterator[Worker]:
    """A worker with its heartbeat, as an actor has it."""
    heartbeat = Heartbeat(SyncQueueExecutor(connect(redis_url), _QUEUE), "lab", LeaseTimes())
    heartbeat.start()
    try:
        actor = ActorContext("lab", heartbeat, threading.Event())
        yield Worker(
            EngineSet([engine]), SyncQueueExecutor(connect(redis_url), _QUEUE), actor, WorkerSettings(idle_s=0.05)
        )
    finally:
        heartbeat.close()


def worth_a_rewrite(engine: DeltaEngine, location: Path) -> list[PartitionKey]:
    """Return the partitions with several files or deletion vectors, from a plain replay of the log."""
    uri = location.as_uri()
    columns = engine.read_partition(uri, WHOLE_TABLE).metadata.partition_columns
    files: dict[PartitionKey, list[dict[str, object]]] = {}
    for add in TableLog.read(location).live():
        files.setdefault(partition_key(columns, add["partitionValues"]), []).append(add)
    return sorted(
        partition
        for partition, adds in files.items()
        if len(adds) > 1 or any(add.get("deletionVector") for add in adds)
    )


@dataclass(frozen=True, slots=True)
class Made:
    """A table and its model; `restore` goes back to before the last step."""

    case: Case
    location: Path
    model: Model
    restore: Restore


def make(case: Case, folder: Path, creator: Writer, spark: SparkWriter) -> Made:
    """Make a table in a folder; whatever the creator raises is raised."""
    folder.mkdir(parents=True, exist_ok=True)
    location = folder / ("source" if case.cloned else case.folder)
    model: Model = {}
    creator.create(case, location)
    restore = Restore()
    for step in case.all_steps:
        restore = Restore(version=TableLog.read(location).version, rows=tuple(model.items()))
        if isinstance(step, Batch):
            keys = tuple(case.batch(step.number))
            creator.append(case, location, keys)
            model.update({key: case.row(key) for key in keys})
        else:
            spark.state(step.text, location)
            for key in step.deletes:
                del model[key]
    if not case.cloned:
        return Made(case, location, model, restore)
    spark.clone(location, folder / case.folder)
    return Made(case, folder / case.folder, model, Restore(version=0, rows=tuple(model.items())))
