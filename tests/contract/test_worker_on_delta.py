"""The whole actor on real parts: jobs from Redis, alone or in one commit, on a real table, against a real DELETE."""

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
from actor.worker import ActorContext, ProgressHook, Worker, WorkerSettings
from decider.archive.delta_archive import ArchiveSpec, DeltaArchive
from decider.archive.ledger_rows import LEDGER_SCHEMA
from shared.jobs.payload import JobPayload, PredictedCost
from shared.layout.commit_metadata import decode
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import KIB, MIB, Policy
from shared.policy.properties import policy_digest
from shared.queue import commands, queries
from shared.queue.model import Band, Claim, JobId, JobKey, JobRequest, Share
from shared.queue.records import RunRecord
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


SHARED = WorkerSettings(share=Share(8, 128 * MIB))
Rows = list[tuple[str, int, str]]


class Shop:
    """A table of three partitions with three small files each, a job for each partition, and a worker."""

    def __init__(self, lab: DeltaLab, url: str) -> None:
        self.lab = lab
        self.location = lab.directory / "t"
        self.queue = SyncQueueExecutor(connect(url), "default")
        self.heartbeat = Heartbeat(SyncQueueExecutor(connect(url), "default"), "a-1", LeaseTimes())
        self.heartbeat.start()
        rng = random.Random(5)
        for number in range(9):
            rows = {
                "p": ["abc"[number % 3]] * 100,
                "id": list(range(number * 100, number * 100 + 100)),
                "v": [rng.randbytes(140).hex() for _ in range(100)],
            }
            write_deltalake(str(self.location), pa.table(rows), mode="append", partition_by=["p"])
        payload = JobPayload(self.location.as_uri(), "t", POLICY, "eligible", PredictedCost(3, 2, 0), policy_digest({}))
        self.jobs: dict[str, JobId] = {}
        for name in "abc":
            key = JobKey("t-1", lab.partition(p=name), "compact")
            request = JobRequest(key, "default", Band.NORMAL, 5, 90 * KIB, 9, payload.encode())
            self.queue.run(commands.enqueue("default", request))
            self.jobs[name] = request.id

    def run(self, reached: ProgressHook = lambda _claim, _point: None) -> dict[str, RunRecord]:
        """Run what one claim returns; the records of the runs by partition."""
        actor = ActorContext("a-1", self.heartbeat, threading.Event())
        assert Worker(EngineSet([self.lab.engine]), self.queue, actor, SHARED, reached).run_next()
        by_job = {job: name for name, job in self.jobs.items()}
        return {by_job[run.id]: run for run in self.queue.run(queries.history("default")).runs}

    def rows(self, *partitions: str) -> Rows:
        """The rows of the live files, as they are when each is read by itself."""
        table = DeltaTable(str(self.location)).to_pyarrow_table(filters=[("p", "in", partitions or tuple("abc"))])
        columns = [table.column(name).to_pylist() for name in ("p", "id", "v")]
        return sorted(zip(*columns, strict=True))

    def our_commits(self) -> list[tuple[int, set[JobId]]]:
        """Version and jobs of each commit that is ours."""
        found = []
        for version, actions in enumerate(commits_of(self.location)):
            texts = [action["commitInfo"].get("userMetadata") for action in actions if "commitInfo" in action]
            mark = decode(texts[0]) if texts else None
            if mark is not None:
                found.append((version, {JobId(origin.job) for origin in mark.origins}))
        return found


@pytest.fixture
def shop(lab: DeltaLab, redis_url: str) -> Iterator[Shop]:
    made = Shop(lab, redis_url)
    yield made
    made.heartbeat.close()


def test_three_jobs_are_one_commit_in_which_each_finds_its_token_and_a_conflict_takes_out_one_group(
    shop: Shop,
) -> None:
    before = shop.rows()
    claims: dict[str, Claim] = {}

    def delete_one_row(claim: Claim, point: str) -> None:
        """The barrier: all outputs are written and nothing is committed yet."""
        if point == "files_written" and not claims:
            shop.lab.sql(f"DELETE FROM delta.`{shop.location}` WHERE id = 150")
        claims[claim.id] = claim

    runs = shop.run(delete_one_row)
    assert shop.rows() == [row for row in before if row[1] != 150]
    assert {run.run_result for run in runs.values()} == {"done"}
    (shared, jobs), (alone, again) = shop.our_commits()
    assert jobs == set(shop.jobs.values())
    assert again == {shop.jobs["b"]}, "the partition of the deleted row was planned again"
    conflicted = {name: json.loads(run.result)["groups_conflicted"] for name, run in runs.items()}
    assert conflicted == {"a": 0, "b": 1, "c": 0}
    versions = {name: json.loads(run.result)["versions"] for name, run in runs.items()}
    assert versions == {"a": [shared], "b": [alone], "c": [shared]}
    removed = [action["remove"]["path"] for action in commits_of(shop.location)[shared] if "remove" in action]
    assert sorted(path.partition("/")[0] for path in removed) == ["p=a"] * 3 + ["p=c"] * 3
    for claim in claims.values():
        found = shop.lab.engine.find_commit(shop.location.as_uri(), job=claim.id, token=claim.token, since_version=0)
        assert found == shared, "all tokens of the commit are found, that of the group that was taken out, too"


def test_a_damaged_input_of_one_job_is_refused_and_the_others_land(shop: Shop) -> None:
    others = shop.rows("a", "c")
    damaged = next(path for path in sorted((shop.location / "p=b").glob("*.parquet")))
    content = damaged.read_bytes()
    damaged.write_bytes(content[:8] + b"\x00" * (len(content) - 16) + content[-8:])
    runs = shop.run()
    assert {name: run.run_result for name, run in runs.items()} == dict.fromkeys("abc", "done")
    assert [name for name, run in runs.items() if "damaged" in str(run)] == ["b"]
    assert shop.rows("a", "c") == others
    assert {name: json.loads(run.result)["versions"] != [] for name, run in runs.items()} == {
        "a": True,
        "b": False,
        "c": True,
    }
    damaged.write_bytes(content)
    assert len(shop.rows("b")) == 300, "the partition is as it was"
