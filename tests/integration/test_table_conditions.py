"""A list of tables says of each whether it is optimized, and what it waits for; a paused one keeps its jobs."""

from pathlib import Path
from typing import Any

import pytest

from actor.queue_executor import SyncQueueExecutor
from shared.queue import commands
from shared.queue.model import RunResult
from tests.support.delta_tables import HandTable
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.queue_bench import end_of
from tests.support.waiting import until

pytestmark = pytest.mark.redis


def conditions(decider: LiveDecider) -> dict[str, str]:
    return {one["name"]: one["condition"] for one in decider.get("/v1/tables")["tables"]}


def claim(queue: SyncQueueExecutor) -> tuple[Any, ...]:
    return tuple(queue.run(commands.claim("default", worker="w", nonce="n", slots=1, lease_ms=60_000)))


def test_a_table_shows_what_it_waits_for_and_whether_it_is_optimized_at_all(
    decider: LiveDecider, queue: SyncQueueExecutor, tmp_path: Path
) -> None:
    busy = WrittenTable(tmp_path / "busy", days=("2026-01-01",))
    busy.append(11)
    off = HandTable(tmp_path / "off", configuration={"lakewright.enabled": "false"})
    for path, name in ((busy.path, "busy"), (WrittenTable(tmp_path / "quiet").path, "quiet"), (off.path, "off")):
        decider.register(path, name)
    decider.post("/v1/tables", {"location": str(tmp_path), "name": "refused"})
    decider.drain()

    until("the job is counted", lambda: conditions(decider)["busy"] == "waiting")
    others = {"quiet": "compact", "off": "disabled", "refused": "refused"}
    assert conditions(decider) == {"busy": "waiting", **others}
    assert {name: decider.get(f"/v1/tables/{name}")["condition"] for name in conditions(decider)} == conditions(decider)
    (job,) = claim(queue)
    until("its job is counted", lambda: conditions(decider)["busy"] == "running")
    queue.run(end_of(job, RunResult.FAIL, seen_version=99))
    until("its failure is counted", lambda: conditions(decider)["busy"] == "backing_off")
    (delayed,) = decider.get("/v1/jobs", state="delayed")["jobs"]
    assert (delayed["table_name"], delayed["attempts"]) == ("busy", 1)
    assert delayed["retry_at"] > delayed["enqueued_at"]


def test_a_paused_table_keeps_its_job_until_it_is_resumed(
    decider: LiveDecider, queue: SyncQueueExecutor, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    table.append(11)
    name = decider.register(table.path, "orders")
    paused = decider.post(f"/v1/tables/{name}/pause", {})
    assert paused.json() == {"message": "Table orders is paused; running jobs continue."}
    assert claim(queue) == ()
    decider.post(f"/v1/tables/{name}/resume", {})
    (job,) = queue.run(commands.claim("default", worker="w", nonce="m", slots=1, lease_ms=60_000))
    assert job.key.table == decider.get(f"/v1/tables/{name}")["id"]
    assert decider.post("/v1/tables/unknown/pause", {}).status_code == 404
