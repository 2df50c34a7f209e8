"""Budgets from properties and commands to the queue: what is shown of them, and what scalers see."""

from pathlib import Path
from uuid import uuid4

import pytest
from deltalake import DeltaTable

from decider.background.queue_upkeep import WorkWindowTimes
from decider.store.queue.backlog import read_backlog
from shared.prices import PRESETS
from shared.queue import commands, keys
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
