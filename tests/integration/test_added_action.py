"""An action is added by one module and one entry in the registry: the rest treats it as it treats compaction."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from decider.archive.ledger_reader import LedgerReader
from decider.archive.ledger_rows import ledger_row
from decider.decide import ledger
from decider.decide.decision import DecisionKind
from decider.store.tables.cleanup import delete_table
from decider.store.tables.ingest import CounterReader
from shared.jobs.payload import COMPACT, JobPayload
from shared.layout.eligibility import Reason
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB
from shared.queue import commands, keys
from shared.queue.model import Band, JobRequest, JobState, RunResult
from shared.table import RemovedFile, TableMetadata, VacuumMark
from tests.support.decisions import TABLE as SOME_TABLE
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.timed_world import DT, HOUR_MS, TABLE, World, in_world, partition
from tests.support.toy_action import CENSUS, WITH_TOY, CensusReason
from tests.support.toy_table_action import INVENTORY, WITH_TOY_TABLE, InventoryReason

pytestmark = pytest.mark.redis

LARGE = 9 * 1024 * 1024


@pytest.fixture
def decider(redis_url: str) -> Iterator[LiveDecider]:
    with LiveDecider(decider_settings(redis_url), WITH_TOY) as live:
        yield live


def _now() -> str:
    return datetime.now(UTC).isoformat()


async def _finish_job(world: World) -> None:
    """Run the one queued job, which finds all done."""
    call = {"worker": "w", "nonce": "c"}
    (claim,) = await world.queue.run(commands.claim("default", **call, slots=1, lease_ms=60_000))
    done = {"run_result": RunResult.DONE, "cost_bytes": 0, "seen_version": claim.version}
    await world.queue.run(commands.finish("default", worker="w", nonce="f", id=claim.id, token=claim.token, **done))


async def test_an_added_action_is_evaluated_at_commits_and_rebuilds_enqueued_recorded_and_counted(
    redis_url: str,
) -> None:
    async with in_world(redis_url, actions=WITH_TOY) as world:
        await world.write(partition(1), [LARGE] * 2)
        assert await world.jobs() == []
        await world.write(partition(1), [LARGE])
        (job,) = await world.jobs()
        assert (job.key.kind, job.key.partition, job.state) == (CENSUS, partition(1), JobState.QUEUED)
        assert JobPayload.decode(job.payload).reason == CensusReason.MANY_FILES
        reader = LedgerReader(world.queue, WITH_TOY)
        records = [one for one in await reader.newest(TABLE.id, limit=10) if one.action == CENSUS]
        found = [(one.verdict, one.reason, one.outcome) for one in records if isinstance(one, ledger.LedgerRecord)]
        assert found == [
            (DecisionKind.ENQUEUE, CensusReason.MANY_FILES, "queued"),
            (DecisionKind.SKIP, CensusReason.FEW_FILES, ""),
        ]
        assert (await CounterReader(world.queue).read(TABLE.id))["enqueued"] == 1
        # Another policy has the state rebuilt, and every partition evaluated for every action.
        world.log.add(metadata=TableMetadata("u-1", DT, {"lakewright.tolerance": "0.2"}), data_change=False)
        await world.decider.follow()
        newest = (await reader.newest(TABLE.id, limit=1))[0]
        assert {one.action for one in await reader.newest(TABLE.id, limit=2)} == {COMPACT, CENSUS}
        assert newest.version == 3


async def test_a_timer_of_an_added_action_evaluates_its_partition(redis_url: str) -> None:
    async with in_world(redis_url, actions=WITH_TOY) as world:
        await world.write(partition(1), [LARGE] * 3)
        await _finish_job(world)
        assert await world.jobs() == []
        assert await world.timers.all(TABLE.id) == {f"{CENSUS} {partition(1)}": world.now_ms + HOUR_MS}
        world.now_ms += HOUR_MS
        done = await world.decider.tick()
        assert (done.timers, done.jobs) == (1, 1)
        assert [job.key.kind for job in await world.jobs()] == [CENSUS]


async def test_jobs_of_an_added_action_are_withdrawn_where_a_table_is_switched_off(redis_url: str) -> None:
    async with in_world(redis_url, actions=WITH_TOY) as world:
        await world.write(partition(1), [100_000] * 12)
        assert {job.key.kind for job in await world.jobs()} == {COMPACT, CENSUS}
        off = TableMetadata("u-1", DT, {"lakewright.enabled": "false"})
        world.log.add(metadata=off, data_change=False)
        await world.decider.follow()
        assert await world.jobs() == []


def test_an_added_action_is_seen_through_the_api_and_leaves_with_its_table(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders", seed=3)
    name = decider.register(tmp_path / "orders")
    table.append(4)
    decider.sweep()
    decisions = decider.get(f"/v1/tables/{name}/decisions", limit=500)["decisions"]
    assert {one["action"] for one in decisions} == {COMPACT, CENSUS}
    counted = [one for one in decisions if one["action"] == CENSUS and one["decision"] == "enqueue"]
    assert counted
    assert all(one["reason_text"] == CensusReason.MANY_FILES.message for one in counted)
    effective = decider.get(f"/v1/tables/{name}/decisions", at=_now())["decisions"]
    pairs = [(one["partition_key"], one["action"]) for one in effective]
    assert sorted(pairs) == sorted({(one["partition_key"], one["action"]) for one in decisions})
    (partition,) = {one["partition_key"] for one in counted[:1]}
    label = next(one["partition_label"] for one in counted if one["partition_key"] == partition)
    of_one = decider.get(f"/v1/tables/{name}/decisions", at=_now(), partition=label)["decisions"]
    assert sorted(one["action"] for one in of_one) == [CENSUS, COMPACT]
    jobs = [job for job in decider.get("/v1/jobs", table=name)["jobs"] if job["kind"] == CENSUS]
    assert {job["partition_key"] for job in jobs} == {one["partition_key"] for one in counted}
    assert decider.client.delete(f"/v1/tables/{name}").is_success
    assert decider.get("/v1/jobs")["jobs"] == []


def test_an_added_action_is_in_views_plans_and_requests_of_a_table_without_an_edit_elsewhere(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",), seed=5)
    name = decider.register(tmp_path / "orders")
    table.append(3)
    decider.sweep()
    path = f"/v1/tables/{name}"
    (partition,) = decider.get(f"{path}/partitions")["partitions"]
    found = {one["action"]: (one["decision"], one["reason"]) for one in partition["decisions"]}
    assert set(found) == {COMPACT, CENSUS}
    assert found[CENSUS] == ("enqueue", CensusReason.MANY_FILES)
    assert decider.get(path)["eligible_partitions"] == 1
    dry = decider.post(f"{path}/optimize", {"dry_run": True}).json()
    (census,) = [plan for plan in dry["plans"] if plan["action"] == CENSUS]
    assert (census["files_replaced"], census["files_removed"]) == (4, 0)
    assert dry["partitions"] == 1
    asked = decider.post(f"{path}/optimize", {}).json()
    assert CENSUS in {job["action"] for job in asked["jobs"]}
    assert all(job["id"].endswith(f".{job['action']}") for job in asked["jobs"])
    notes = decider.post(f"{path}/what-if", {"max_commits": 10}).json()["notes"]
    assert f"Only compaction is replayed, and not: {CENSUS}." in notes


def test_a_partition_without_work_counts_once_for_each_reason_of_an_action_and_once_for_a_shared_one(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",), seed=7)
    name = decider.register(tmp_path / "orders")
    path = f"/v1/tables/{name}/optimize"
    for body in ({}, {"dry_run": True}):
        reasons = decider.post(path, body).json()["reasons"]
        assert (reasons.pop(CensusReason.FEW_FILES), list(reasons.values())) == (1, [1])
    assert decider.client.patch(f"/v1/tables/{name}", json={"properties": {"lakewright.enabled": "false"}}).is_success
    table.append(3)
    decider.sweep()
    for body in ({}, {"dry_run": True}):
        assert decider.post(path, body).json()["reasons"] == {"disabled": 1}


async def test_a_record_of_an_added_action_becomes_a_row_of_the_archive(redis_url: str) -> None:
    async with in_world(redis_url, actions=WITH_TOY) as world:
        await world.write(partition(1), [LARGE] * 3)
        stream = await world.queue.redis.xrange(keys.ledger("default", TABLE.id))
        rows = [ledger_row(SOME_TABLE, "1-0", fields[b"record"].decode(), "", WITH_TOY) for _, fields in stream]
        assert [row["action"] for row in rows] == [COMPACT, CENSUS]


ON = {"lakewright.row-group-copy": "never"}
TIMER = f"{INVENTORY} {WHOLE_TABLE}"


async def _remove(world: World, size: int = 9 * MIB) -> None:
    """Write a file and remove it again."""
    file = world.file(partition(1), size)
    world.log.add([file])
    world.log.add((), [RemovedFile(file.path, None, size, file.partition, tags={})])
    await world.decider.follow()


async def test_commits_set_the_timer_of_a_table_which_decides_queues_and_records(redis_url: str) -> None:
    async with in_world(redis_url, ON, actions=WITH_TOY_TABLE) as world:
        await world.write(partition(1), [9 * MIB])
        assert TIMER not in await world.timers.all(TABLE.id)
        await _remove(world)
        assert (await world.timers.all(TABLE.id))[TIMER] == 2 * HOUR_MS
        world.now_ms = 2 * HOUR_MS
        done = await world.decider.tick()
        assert (done.timers, done.jobs) == (1, 1)
        (job,) = [job for job in await world.jobs() if job.key.kind == INVENTORY]
        assert (job.key.partition, job.band) == (WHOLE_TABLE, Band.BACKGROUND)
        (record,) = await LedgerReader(world.queue, WITH_TOY_TABLE).newest(TABLE.id, limit=1)
        assert isinstance(record, ledger.LedgerRecord)
        assert (record.reason, record.outcome) == (InventoryReason.REMOVED, "queued")
        # The end of a vacuum in the log ends what it freed, and the timer.
        world.log.add(data_change=False, by_us=True)
        world.log.commits[-1] = replace(world.log.commits[-1], vacuum=VacuumMark(2 * HOUR_MS))
        await world.decider.follow()
        assert TIMER not in await world.timers.all(TABLE.id)


async def test_a_table_without_the_property_has_no_timer_and_one_switched_off_loses_timer_and_job(
    redis_url: str,
) -> None:
    async with in_world(redis_url, actions=WITH_TOY_TABLE) as world:
        await _remove(world)
        assert await world.timers.all(TABLE.id) == {}
        world.log.add(metadata=TableMetadata("u-1", DT, ON), data_change=False)
        await world.decider.follow()
        assert TIMER in await world.timers.all(TABLE.id), "what was removed before is known after a rebuild"
        world.now_ms = 2 * HOUR_MS
        await world.decider.tick()
        assert [job.key.kind for job in await world.jobs()] == [INVENTORY]
        off = TableMetadata("u-1", DT, ON | {"lakewright.enabled": "false"})
        world.log.add(metadata=off, data_change=False)
        await world.decider.follow()
        assert await world.jobs() == []
        assert TIMER not in await world.timers.all(TABLE.id)


async def test_a_table_whose_action_is_switched_off_loses_a_waiting_job_unless_a_person_requested_it(
    redis_url: str,
) -> None:
    """The owner takes the property away: what is queued would still be done, hours later."""
    async with in_world(redis_url, ON, actions=WITH_TOY_TABLE) as world:
        for reason, left in ((InventoryReason.REMOVED, []), (Reason.REQUESTED, [INVENTORY])):
            world.log.add(metadata=TableMetadata("u-1", DT, ON), data_change=False)
            await _remove(world)
            world.now_ms += 2 * HOUR_MS
            await world.decider.tick()
            (job,) = await world.jobs()
            payload = json.dumps({**json.loads(job.payload), "reason": reason})
            same = JobRequest(job.key, job.tenant, job.band, job.priority, job.cost_bytes, job.version, payload)
            await world.queue.run(commands.enqueue(world.queue.name, replace(same, precedence=1)))
            world.log.add(metadata=TableMetadata("u-1", DT, {}), data_change=False)
            await world.decider.follow()
            assert [job.key.kind for job in await world.jobs()] == left


async def test_the_job_on_a_table_leaves_with_it(redis_url: str) -> None:
    async with in_world(redis_url, ON, actions=WITH_TOY_TABLE) as world:
        await _remove(world)
        world.now_ms = 2 * HOUR_MS
        await world.decider.tick()
        assert len(await world.jobs()) == 1
        await delete_table(world.queue, TABLE.id, kinds=WITH_TOY_TABLE.kinds)
        assert await world.jobs() == []
