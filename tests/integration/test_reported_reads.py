"""Reported reads weigh a table's jobs, unless its owner says how much; its filters are kept for what-if."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from decider.whatif.recorded_filters import RecordedFilter, parse_filters
from tests.support.live_decider import LiveDecider, WrittenTable

pytestmark = pytest.mark.redis

EQUAL = {"type": "eq", "term": "id", "value": 7}
SCAN = {"report-type": "scan-report", "table-name": "lake.sales.orders", "filter": EQUAL, "metrics": {}}


def report(decider: LiveDecider, reports: Sequence[dict[str, Any]]) -> Any:
    answer = decider.post("/v1/scan-reports", reports)
    assert answer.status_code == 202, answer.text
    return answer.json()


def reads(decider: LiveDecider, name: str) -> Any:
    return decider.get(f"/v1/tables/{name}/reads")


def step(decider: LiveDecider) -> int:
    (job,) = decider.get("/v1/jobs")["jobs"]
    return int(job["priority"])


def test_a_table_that_is_read_more_goes_first_unless_its_owner_weighs_reads(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "t", days=("2026-01-01",))
    table.append(10)
    name = decider.register(table.path, "sales.orders")
    assert reads(decider, name) == {"reads_per_hour": 0.0, "read_weight": 1.0, "filters": []}
    before = step(decider)
    # Sixteen in the first hour are sixteen an hour.
    assert report(decider, [SCAN] * 10 + [{"table": "sales.orders", "times": 6}]) == {"reads": 16, "unknown_tables": []}
    found = reads(decider, name)
    assert (found["reads_per_hour"], found["read_weight"]) == (16.0, 16.0)
    table.append()
    decider.sweep()
    # The file that came since may be worth a step of its own.
    assert step(decider) in (before - 4, before - 5)
    DeltaTable(table.path).alter.set_table_properties({"lakewright.read-weight": "0.5"}, raise_if_not_exists=False)
    # A job keeps the best of its requests' steps, so another one shows the weight.
    (job,) = decider.get("/v1/jobs")["jobs"]
    decider.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    table.append()
    decider.sweep()
    assert step(decider) in (before + 1, before, before - 1)
    assert reads(decider, name)["read_weight"] == 0.5
    (value,) = [
        one
        for one in decider.get(f"/v1/tables/{name}")["policy"]["values"]
        if one["property"] == "lakewright.read-weight"
    ]
    assert (value["value"], value["source"]) == (0.5, "table")


def test_what_readers_filtered_by_is_read_by_what_if(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", days=("2026-01-01",))
    table.append()
    name = decider.register(table.path, "orders")
    above = {"type": "gt", "term": "id", "value": 3}
    report(decider, [{"table": name, "filter": above, "times": 3}, {"table": name, "filter": EQUAL}])
    report(decider, [{"table": name, "filter": EQUAL, "times": 4}, {"table": name, "filter": True}])
    answer = reads(decider, name)
    assert answer["filters"] == [{"filter": EQUAL, "times": 5}, {"filter": above, "times": 3}]
    assert parse_filters(json.dumps(answer, indent=2)) == (RecordedFilter(EQUAL, 5), RecordedFilter(above, 3))


def test_tables_that_are_not_registered_are_named_and_a_body_with_an_error_counts_nothing(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "t", days=("2026-01-01",))
    table.append()
    name = decider.register(table.path, "orders")
    assert report(decider, [{"table": "b.c"}, {"table": name}, {"table": "a"}]) == {
        "reads": 1,
        "unknown_tables": ["a", "b.c"],
    }
    refused = decider.post("/v1/scan-reports", [{"table": name}, {"table": name, "times": -1}])
    assert (refused.status_code, refused.json()["field"]) == (400, "times")
    assert "report 2: times is -1" in refused.json()["detail"]
    assert reads(decider, name)["reads_per_hour"] == 1.0


def test_nothing_is_left_of_a_table_that_is_unregistered(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", days=("2026-01-01",))
    table.append()
    name = decider.register(table.path, "orders")
    report(decider, [{"table": name, "filter": EQUAL}])
    decider.client.delete(f"/v1/tables/{name}").raise_for_status()
    decider.register(table.path, name)
    assert reads(decider, name) == {"reads_per_hour": 0.0, "read_weight": 1.0, "filters": []}
