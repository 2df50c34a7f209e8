"""The table of scheduled jobs has what the queue has, whoever writes it, and answers SQL."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from decider.archive.delta_archive import ArchiveSpec
from decider.archive.scheduled_jobs import KEPT_HOURS, SCHEDULED_SCHEMA, VACUUM_EVERY, ScheduledJobsTable, scheduled_row
from decider.background.scheduled_jobs import ScheduledJobs
from shared.errors import RetryableError
from shared.queue.model import Band, JobId, JobKey, JobState
from shared.queue.records import JobView
from shared.table import PartitionKey, TableId
from tests.support import delta_tables as tables
from tests.support.live_decider import LiveDecider, decider_settings

pytestmark = pytest.mark.redis


@pytest.fixture
def decider(redis_url: str, tmp_path: Path) -> Iterator[LiveDecider]:
    with LiveDecider(decider_settings(redis_url, scheduled=str(tmp_path / "scheduled"))) as live:
        yield live


def ask(folder: Path, statement: str) -> list[dict[str, Any]]:
    builder = QueryBuilder().register("scheduled", DeltaTable(str(folder)))
    return list(pa.table(builder.execute(statement).read_all()).to_pylist())


def listed(decider: LiveDecider) -> int:
    duty = decider.task("scheduled_jobs")
    assert isinstance(duty, ScheduledJobs)
    return decider.run(duty.run_once())


def job(number: int, **more: Any) -> JobView:
    values: dict[str, Any] = {
        "id": JobId(f"j{number}"),
        "key": JobKey(TableId("t"), PartitionKey("{}"), "compact"),
        "tenant": "default",
        "state": JobState.QUEUED,
        "band": Band.NORMAL,
        "priority": 5,
        "cost_bytes": 1,
        "version": 3,
        "payload": "",
        "enqueued_at_ms": 1_767_276_188_000,
        "attempts": 0,
        "revision": 1,
    }
    return JobView(**{**values, **more})


def place(folder: Path) -> ScheduledJobsTable:
    return ScheduledJobsTable(ArchiveSpec(folder.as_uri(), SCHEDULED_SCHEMA))


def test_jobs_are_rows_with_their_reason_and_size_until_they_are_gone(decider: LiveDecider, tmp_path: Path) -> None:
    folder = tmp_path / "scheduled"
    assert listed(decider) == 0
    assert ask(folder, "SELECT * FROM scheduled") == []
    made = tables.HandTable(tmp_path / "orders")
    made.append(20)
    name = decider.register(made.path, "orders")
    assert listed(decider) == 1
    (row,) = ask(folder, "SELECT * FROM scheduled")
    (queued,) = decider.get("/v1/jobs")["jobs"]
    for column, field in (("job", "id"), ("table_id", "table"), ("table_name", "table_name"), ("kind", "kind")):
        assert row[column] == queued[field]
    for field in ("state", "tenant", "band", "reason", "partition_key", "version", "attempts"):
        assert row[field] == queued[field]
    assert row["table_name"] == name
    assert row["predicted_bytes"] == queued["predicted"]["bytes"] > 0
    assert row["predicted_files_removed"] == queued["predicted"]["files_removed"] > 0
    (total,) = ask(folder, "SELECT kind, sum(predicted_bytes) AS bytes FROM scheduled GROUP BY kind")
    assert total == {"kind": "compact", "bytes": row["predicted_bytes"]}
    version = DeltaTable(str(folder)).version()
    assert listed(decider) == 1
    assert DeltaTable(str(folder)).version() == version, "equal rows are not written again"
    decider.client.delete(f"/v1/jobs/{queued['id']}").raise_for_status()
    assert listed(decider) == 0
    assert ask(folder, "SELECT * FROM scheduled") == []


def test_two_deciders_at_once_never_list_a_job_twice(tmp_path: Path) -> None:
    async def race(rows: list[dict[str, Any]]) -> list[bool]:
        return list(await asyncio.gather(*(place(tmp_path / "s").replace(rows) for _ in range(4))))

    for number in range(5):
        rows = [scheduled_row(job(one)) for one in range(number + 1)]
        assert any(asyncio.run(race(rows)))
        found = [row["job"] for row in ask(tmp_path / "s", "SELECT job FROM scheduled ORDER BY job")]
        assert found == [f"j{one}" for one in range(number + 1)]


def test_files_of_old_versions_are_deleted_now_and_then(tmp_path: Path) -> None:
    for hours, left in ((0, 1), (KEPT_HOURS, VACUUM_EVERY)):
        folder = tmp_path / str(hours)
        kept = ScheduledJobsTable(place(folder).place, kept_hours=hours)
        for number in range(VACUUM_EVERY):
            asyncio.run(kept.replace([scheduled_row(job(number))]))
        assert len(list(folder.glob("*.parquet"))) == left
        assert [row["job"] for row in ask(folder, "SELECT job FROM scheduled")] == [f"j{VACUUM_EVERY - 1}"]


@pytest.mark.parametrize("payload", ["", "no json", "[1]", json.dumps({"predicted": {"bytes": "many"}})])
def test_a_job_whose_payload_cannot_be_read_is_a_row_all_the_same(payload: str) -> None:
    row = scheduled_row(job(1, payload=payload, worker="a", error="e"))
    assert (row["job"], row["table_name"], row["predicted_bytes"], row["actor"]) == ("j1", "t", None, "a")


def test_a_store_that_takes_nothing_is_an_error_that_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("no folder")
    with pytest.raises(RetryableError, match="cannot write the scheduled jobs"):
        asyncio.run(place(tmp_path / "s").replace([scheduled_row(job(1))]))
