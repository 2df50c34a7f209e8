"""Work windows of tables, from their properties to the queue: what is shown, and what requests and scalers see."""

from pathlib import Path
from uuid import uuid4

import pytest
from deltalake import DeltaTable

from decider.background.queue_upkeep import WorkWindowTimes
from decider.store.queue.backlog import read_backlog
from shared.policy.work_windows import HORIZON_MS
from shared.queue import commands, keys
from shared.queue.decode import text
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.waiting import until

pytestmark = pytest.mark.redis

WINDOW = "lakewright.window"


def closed_now(decider: LiveDecider) -> str:
    """A window of an hour that opened and closed half a day ago."""
    hour = (decider.run(decider.services.operations.redis.time())[0] // 3_600 + 12) % 24
    return f"{hour:02}:00-{(hour + 1) % 24:02}:00 UTC"


def closed_table(decider: LiveDecider, folder: Path) -> str:
    """A table with a job that waits for its window."""
    table = WrittenTable(folder / "orders", days=["2026-01-01"])
    table.append(9)
    set_window(table, closed_now(decider))
    return decider.register(table.path)


def claimed(decider: LiveDecider) -> int:
    queue = decider.services.queue.executor
    call = commands.claim(queue.name, worker="w", nonce=uuid4().hex, slots=5, lease_ms=60_000)
    return len(decider.run(queue.run(call)))


def test_a_table_outside_of_its_window_says_so_everywhere(decider: LiveDecider, tmp_path: Path) -> None:
    name = closed_table(decider, tmp_path)
    assert claimed(decider) == 0

    table = decider.get(f"/v1/tables/{name}")
    assert table["work_window"]["is_open"] is False
    assert table["work_window"]["applies_to"] == "all"
    (job,) = decider.get("/v1/jobs?state=delayed")["jobs"]
    assert job["may_start_at"] == table["work_window"]["changes_at"]
    detail = decider.get(f"/v1/jobs/{job['id']}")
    assert [one["detail"] for one in detail["timeline"] if one["event"] == "window_opens"]
    until("it is listed so", lambda: decider.get("/v1/table-rows")["rows"][0]["condition"] == "outside_window")
    queue = decider.services.queue.executor
    assert decider.run(read_backlog(queue)).jobs == 0, "no actor is started for it"


def test_a_request_runs_at_any_time_unless_it_names_a_band(decider: LiveDecider, tmp_path: Path) -> None:
    name = closed_table(decider, tmp_path)
    assert claimed(decider) == 0
    asked = decider.client.post(f"/v1/tables/{name}/optimize", json={"priority": "low", "mode": "full"})
    assert asked.status_code == 202, asked.text
    assert claimed(decider) == 0
    asked = decider.client.post(f"/v1/tables/{name}/optimize", json={"mode": "full"})
    assert asked.status_code == 202, asked.text
    assert decider.run(read_backlog(decider.services.queue.executor)).jobs == 1
    assert claimed(decider) == 1


def test_a_window_that_cannot_be_read_leaves_the_last_good_one_in_force(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders")
    table.append()
    set_window(table, "20:00-06:00 Europe/Berlin")
    name = decider.register(table.path)
    set_window(table, "20:00-06:00 Europe/Atlantis")
    decider.sweep()
    shown = decider.get(f"/v1/tables/{name}")
    assert shown["work_window"]["windows"] == "20:00-06:00 Europe/Berlin"
    (issue,) = shown["policy"]["issues"]
    assert "no time zone 'Europe/Atlantis' here; expected one of the IANA's" in issue["reason"]


def set_window(table: WrittenTable, window: str) -> None:
    DeltaTable(str(table.path)).alter.set_table_properties({WINDOW: window}, raise_if_not_exists=False)


def test_the_times_are_renewed_and_a_window_that_is_removed_is_gone(decider: LiveDecider, tmp_path: Path) -> None:
    name = closed_table(decider, tmp_path)
    queue = decider.services.queue.executor

    def stored() -> dict[str, str]:
        found = decider.run(queue.redis.hgetall(keys.work_windows(queue.name)))
        return {text(table): text(window) for table, window in found.items()}

    ((table, window),) = stored().items()
    held, times, windows = window.split("|")
    old = f"{held}|{times.split(',')[0]}|{windows}"
    decider.run(queue.redis.hset(keys.work_windows(queue.name), table, old))
    assert decider.run(WorkWindowTimes(queue).run_once()) == 1
    renewed = [int(one) for one in stored()[table].split("|")[1].replace(",", "-").split("-")]
    assert renewed[-1] - renewed[0] > HORIZON_MS - 2 * 86_400_000

    set_window(WrittenTable(tmp_path / "orders"), "none")
    decider.sweep()
    assert stored() == {}
    assert decider.get(f"/v1/tables/{name}")["work_window"] is None
