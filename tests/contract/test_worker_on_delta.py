"""The whole actor on real parts: a job from Redis, planned and rewritten on a real table, against a real DELETE."""

import asyncio
import json
import random
import secrets
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat, LeaseTimes
from actor.queue_executor import SyncQueueExecutor, connect
from actor.worker import ActorContext, Worker, WorkerSettings
from decider.archive.delta_archive import ArchiveSpec, DeltaArchive
from decider.archive.ledger_rows import LEDGER_SCHEMA
from shared.jobs.payload import JobPayload, PredictedCost
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import KIB, Policy
from shared.policy.properties import policy_digest
from shared.queue import commands, queries
from shared.queue.model import Band, Claim, JobKey, JobRequest
from tests.support.delta_lab import DeltaLab
from tests.support.stack import commits_of

pytestmark = [pytest.mark.spark, pytest.mark.redis]

POLICY = Policy(target_bytes=64 * KIB, min_input_files=2)


@pytest.fixture
def queue(redis_url: str) -> SyncQueueExecutor:
    return SyncQueueExecutor(connect(redis_url), "default")


@pytest.fixture
def actor(redis_url: str) -> Iterator[ActorContext]:
    heartbeat = Heartbeat(SyncQueueExecutor(connect(redis_url), "default"), "a-1", LeaseTimes())
    heartbeat.start()
    yield ActorContext("a-1", heartbeat, threading.Event())
    heartbeat.close()


def small_files(location: Path, files: int) -> None:
    """Write files of some 28 KiB each, so that nine of them make three groups of at least 64 KiB."""
    rng = random.Random(3)
    for number in range(files):
        rows = {
            "id": list(range(number * 100, number * 100 + 100)),
            "v": [rng.randbytes(140).hex() for _ in range(100)],
        }
        write_deltalake(str(location), pa.table(rows), mode="append")


def rows(location: Path) -> list[tuple[int, str]]:
    table = DeltaTable(str(location)).to_pyarrow_table()
    return sorted(zip(table.column("id").to_pylist(), table.column("v").to_pylist(), strict=True))


def test_a_delete_takes_one_input_of_three_groups_and_the_rest_lands_and_the_third_is_planned_again(
    lab: DeltaLab, queue: SyncQueueExecutor, actor: ActorContext
) -> None:
    location = lab.directory / "t"
    small_files(location, 9)
    before = rows(location)
    payload = JobPayload(location.as_uri(), "t", POLICY, "eligible", PredictedCost(9, 6, 0), policy_digest({}))
    spec = JobRequest(JobKey("t-1", WHOLE_TABLE, "compact"), "default", Band.NORMAL, 5, 0, 9, payload.encode())
    queue.run(commands.enqueue("default", spec))
    deleted: list[int] = []

    def delete_one_row(_claim: Claim, point: str) -> None:
        """The barrier: outputs are written and nothing is committed yet."""
        if point == "files_written" and not deleted:
            deleted.append(350)
            lab.sql(f"DELETE FROM delta.`{location}` WHERE id = 350")

    worker = Worker(EngineSet([lab.engine]), queue, actor, WorkerSettings(), delete_one_row)
    assert worker.run_next()

    assert rows(location) == [row for row in before if row[0] != 350]
    (run,) = queue.run(queries.history("default")).runs
    result = json.loads(run.result)
    assert run.run_result == "done"
    assert result["groups_conflicted"] == 1
    assert result["conflicts"] == 1
    first, *later = [
        [action["remove"]["path"] for action in commits_of(location)[version] if "remove" in action]
        for version in result["versions"]
    ]
    assert len(first) == 6, "two of three groups of three files landed"
    assert later, "the third was planned again"
    assert queue.run(queries.job("default", spec.id)) is None


def test_an_archive_is_compacted_like_any_table_and_still_takes_no_batch_twice(
    lab: DeltaLab, queue: SyncQueueExecutor, actor: ActorContext
) -> None:
    """Its batches carry `txn` actions; a rewrite by Spark must keep them known, and the appends must go on."""
    location = lab.directory / "ledger"
    archive = DeltaArchive(ArchiveSpec(location.as_uri(), LEDGER_SCHEMA, ("day",)))
    day = datetime(2026, 1, 1, 14, 3, tzinfo=UTC)
    entries = [f"{number}-0" for number in range(1, 10)]
    stated = {"day": day.date(), "at": day, "record": secrets.token_hex(8_000)}

    def append(number: int) -> bool:
        return asyncio.run(archive.append([stated | {"entry": f"{number}-0"}], app="ledger", number=number))

    assert all(append(number) for number in range(1, 10))
    payload = JobPayload(location.as_uri(), "t", POLICY, "eligible", PredictedCost(9, 8, 0), policy_digest({}))
    spec = JobRequest(
        JobKey("t-1", '{"day":"2026-01-01"}', "compact"), "default", Band.NORMAL, 5, 0, 9, payload.encode()
    )
    queue.run(commands.enqueue("default", spec))
    assert Worker(EngineSet([lab.engine]), queue, actor, WorkerSettings()).run_next()
    table = DeltaTable(str(location))
    assert len(table.file_uris()) < 9
    assert asyncio.run(archive.newest("ledger")) == 9
    assert not append(9)
    assert append(10)
    kept = DeltaTable(str(location)).to_pyarrow_table()
    assert sorted(kept.column("entry").to_pylist()) == sorted([*entries, "10-0"])
    assert set(kept.column("record").to_pylist()) == {stated["record"]}
