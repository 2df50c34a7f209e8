"""Scheduled tables are those that are optimized without being asked, each with what it waits for."""

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


def scheduled(decider: LiveDecider, **asked: Any) -> dict[str, Any]:
    return {one["name"]: one for one in decider.get("/v1/scheduled", **asked)["tables"]}


def claim(queue: SyncQueueExecutor) -> tuple[Any, ...]:
    return tuple(queue.run(commands.claim("default", worker="w", nonce="n", slots=1, lease_ms=60_000)))


def test_a_table_shows_what_it_waits_for_and_how_its_last_run_ended(
    decider: LiveDecider, queue: SyncQueueExecutor, tmp_path: Path
) -> None:
    busy = WrittenTable(tmp_path / "busy", days=("2026-01-01",))
    busy.append(11)
    off = HandTable(tmp_path / "off", configuration={"lakewright.enabled": "false"})
    for path, name in ((busy.path, "busy"), (WrittenTable(tmp_path / "quiet").path, "quiet"), (off.path, "off")):
        decider.register(path, name)
    decider.post("/v1/tables", {"location": str(tmp_path), "name": "refused"})
    decider.drain()

    until("the job is counted", lambda: scheduled(decider)["busy"]["jobs"])
    found = scheduled(decider)
    assert set(found) == {"busy", "quiet"}, "not what is switched off, nor what cannot be read"
    assert (found["quiet"]["state"], found["quiet"]["jobs"], found["quiet"]["next_due_at"]) == ("compact", 0, None)
    assert (found["busy"]["state"], found["busy"]["jobs"], found["busy"]["last_run_at"]) == ("waiting", 1, None)
    assert found["busy"]["next_due_at"] is not None

    (job,) = claim(queue)
    until("its job is counted", lambda: scheduled(decider)["busy"]["state"] == "running")
    queue.run(end_of(job, RunResult.FAIL, seen_version=99))
    until("its failure is counted", lambda: scheduled(decider)["busy"]["state"] == "backing_off")
    failed = scheduled(decider)["busy"]
    assert (failed["attempts"], failed["last_result"]) == (1, "fail")
    assert failed["next_due_at"] > failed["last_run_at"]


def test_the_list_is_paged_in_the_order_of_names(decider: LiveDecider, tmp_path: Path) -> None:
    for name in ("a.1", "a.2", "b.1"):
        decider.register(WrittenTable(tmp_path / name).path, name)
    first = decider.get("/v1/scheduled", limit=2)
    assert [one["name"] for one in first["tables"]] == ["a.1", "a.2"]
    rest = decider.get("/v1/scheduled", limit=2, page_token=first["next_page_token"])
    assert ([one["name"] for one in rest["tables"]], rest["next_page_token"]) == (["b.1"], None)
    assert set(scheduled(decider, prefix="b.")) == {"b.1"}


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
