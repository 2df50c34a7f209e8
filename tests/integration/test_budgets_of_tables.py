"""Budgets from properties and commands to the queue: what is shown of them, and what scalers see."""

from pathlib import Path
from uuid import uuid4

import pytest
from deltalake import DeltaTable

from decider.background.queue_upkeep import WorkWindowTimes
from decider.store.queue.backlog import read_backlog
from shared.policy.work_windows import HORIZON_MS
from shared.prices import PRESETS
from shared.queue import commands, keys
from shared.queue.decode import text
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.waiting import until

pytestmark = pytest.mark.redis

TOO_SMALL = "0.000001 core-hours/day"


def budgeted_table(decider: LiveDecider, folder: Path, budget: str) -> tuple[str, WrittenTable]:
    """A table with a job, and with a budget."""
    table = WrittenTable(folder / "orders", days=["2026-01-01"])
    table.append(9)
    set_budget(table, budget)
    return decider.register(table.path), table


def set_budget(table: WrittenTable, budget: str) -> None:
    DeltaTable(str(table.path)).alter.set_table_properties({"lakewright.budget": budget}, raise_if_not_exists=False)


def claimed(decider: LiveDecider) -> int:
    queue = decider.services.queue.executor
    call = commands.claim(queue.name, worker="w", nonce=uuid4().hex, slots=5, lease_ms=60_000)
    return len(decider.run(queue.run(call)))


def test_a_table_over_budget_says_so_everywhere(decider: LiveDecider, tmp_path: Path) -> None:
    name, table = budgeted_table(decider, tmp_path, TOO_SMALL)
    assert claimed(decider) == 0

    (budget,) = decider.get(f"/v1/tables/{name}")["budgets"]
    assert (budget["scope"], budget["used"]) == ("table", 0.0)
    (job,) = decider.get("/v1/jobs?state=delayed")["jobs"]
    assert job["may_start_at"] == budget["renewed_at"]
    assert "the budget of its table, which is too small for it even when nothing is used" in job["waits_for"]
    events = {one["event"]: one["detail"] for one in decider.get(f"/v1/jobs/{job['id']}")["timeline"]}
    assert "until then it waits for the budget of its table" in events["budget_renewed"]
    until("it is listed so", lambda: decider.get("/v1/table-rows")["rows"][0]["condition"] == "over_budget")
    assert decider.run(read_backlog(decider.services.queue.executor)).jobs == 0, "no actor is started for it"

    set_budget(table, "none")
    decider.sweep()
    assert decider.get(f"/v1/tables/{name}")["budgets"] == []
    queue = decider.services.queue.executor
    decider.run(queue.redis.zadd(keys.delayed(queue.name), {job["id"]: 0}))
    assert claimed(decider) == 1


def test_budgets_of_a_tenant_and_of_the_queue_are_set_by_command_and_shown(
    decider: LiveDecider, tmp_path: Path
) -> None:
    name, _ = budgeted_table(decider, tmp_path, "100 core-hours/day")
    tenant = decider.get(f"/v1/tables/{name}")["tenant"]
    for body in (
        {"scope": "tenant", "name": tenant, "budget": "2 core-hours/day; 5 USD/month"},
        {"scope": "queue", "budget": "90 GiB/month"},
    ):
        answer = decider.client.put("/v1/queue/weights", json=body)
        assert answer.status_code == 200, answer.text
    assert claimed(decider) == 0
    (job,) = decider.get("/v1/jobs?state=delayed")["jobs"]
    assert job["waits_for"].endswith("whose currency has no prices: set LAKEWRIGHT_PRICES in it")
    shown = [(one["scope"], one["budget"], one["used"]) for one in decider.get("/v1/queue")["budgets"]]
    assert shown == [
        ("queue", "90 GiB/month", 0.0),
        ("tenant", "2 core-hours/day", 0.0),
        ("tenant", "5 USD/month", None),
    ]

    queue = decider.services.queue.executor
    decider.run(WorkWindowTimes(queue, PRESETS["aws-2024-12"]).run_once())
    decider.run(queue.redis.zadd(keys.delayed(queue.name), {job["id"]: 0}))
    assert claimed(decider) == 1
    assert decider.get("/v1/queue")["budgets"][2]["used"] > 0
    used = 'lakewright_budget_used_ratio{budget="2 core-hours/day",name="' + tenant + '",scope="tenant"}'
    until("it is exported", lambda: used in decider.client.get("/metrics").text)

    removed = decider.client.put("/v1/queue/weights", json={"scope": "queue", "budget": "none"})
    assert removed.json()["message"] == "Queue: no budget."
    refused = decider.client.put("/v1/queue/weights", json={"scope": "queue", "budget": "2 eggs/day"})
    assert (refused.status_code, "unknown unit" in refused.text) == (422, True)
    refused = decider.client.put("/v1/queue/weights", json={"scope": "band", "name": "1", "budget": "2 GiB/day"})
    assert refused.status_code == 422


def test_a_table_waits_until_its_writers_have_added_as_much_as_its_amplification_needs(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders", days=["2026-01-01"])
    table.append(9)
    amplification = {"lakewright.max-write-amplification": "100"}
    DeltaTable(str(table.path)).alter.set_table_properties(amplification, raise_if_not_exists=False)
    name = decider.register(table.path)
    assert claimed(decider) == 0
    (job,) = decider.get("/v1/jobs?state=delayed")["jobs"]
    assert job["waits_for"].startswith("max-write-amplification of its table, which grows with what writers add")
    assert "it is too small for the job even then" in job["waits_for"]
    (shown,) = decider.get(f"/v1/tables/{name}")["budgets"]
    assert (shown["scope"], shown["budget"]) == ("amplification", "100 bytes rewritten per byte added/30 days")
    assert (shown["used"], shown["used_ratio"]) == (0.0, 0.0)
    assert decider.get("/v1/queue")["budgets"] == []

    queue = decider.services.queue.executor
    table.append(1, rows=200_000)
    decider.sweep()
    decider.run(queue.redis.zadd(keys.delayed(queue.name), {job["id"]: 0}))
    assert claimed(decider) == 1
    (shown,) = decider.get(f"/v1/tables/{name}")["budgets"]
    assert shown["used"] > 0, "what the job may rewrite"


def test_a_budget_that_cannot_be_read_leaves_the_last_good_one_in_force(decider: LiveDecider, tmp_path: Path) -> None:
    name, table = budgeted_table(decider, tmp_path, "3 core-hours/day")
    set_budget(table, "3 core-hours/week")
    decider.sweep()
    shown = decider.get(f"/v1/tables/{name}")
    assert [one["budget"] for one in shown["budgets"]] == ["3 core-hours/day"]
    (issue,) = shown["policy"]["issues"]
    assert "expected an amount such as 2 core-hours/day" in issue["reason"]


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
