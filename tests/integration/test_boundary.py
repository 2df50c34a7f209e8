"""A decider registers, reads and has rewritten only what lies where it may look, links and paths of logs included."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decider.background.discovery import DiscoveryLimits
from tests.support import delta_tables
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings

pytestmark = pytest.mark.redis

FAST = DiscoveryLimits(interval_s=0, requests_per_s=10_000.0)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A root with a link to a table that lies outside of it, and one to the folder above that table."""
    (tmp_path / "lake" / "sales").mkdir(parents=True)
    WrittenTable(tmp_path / "secret" / "payroll")
    (tmp_path / "lake" / "sales" / "payroll").symlink_to(tmp_path / "secret" / "payroll")
    (tmp_path / "lake" / "all").symlink_to(tmp_path / "secret")
    return tmp_path / "lake"


@pytest.fixture
def decider(redis_url: str, lake: Path) -> Iterator[LiveDecider]:
    with LiveDecider(decider_settings(redis_url, roots=(lake.as_uri(),), discovery=FAST)) as live:
        yield live


def names(decider: LiveDecider) -> list[str]:
    return [table["name"] for table in decider.get("/v1/tables")["tables"]]


def test_a_link_out_of_the_roots_is_registered_by_no_call_event_or_walk(decider: LiveDecider, lake: Path) -> None:
    WrittenTable(lake / "sales" / "orders")
    outside = decider.post("/v1/tables", {"location": (lake.parent / "secret" / "payroll").as_uri()})
    assert 400 <= outside.status_code < 500
    for place in (lake / "sales" / "payroll", lake / "all" / "payroll"):
        answer = decider.post("/v1/tables", {"location": place.as_uri()})
        assert answer.status_code == outside.status_code
        assert "by a link" in answer.text
        reported = decider.post("/v1/events", {"table": place.as_uri()}).json()
        assert reported["ignored"] == [{"reason": "outside_allowed_roots", "count": 1}]
    (found,) = decider.run(decider.services.requests.discovery.run_once())
    assert (found.tables, found.new_tables, found.unreadable) == (1, 1, 2)
    assert "by a link" in found.error
    assert names(decider) == ["sales.orders"]


def test_a_table_that_became_a_link_after_it_was_registered_is_refused(decider: LiveDecider, lake: Path) -> None:
    WrittenTable(lake / "sales" / "orders")
    name = decider.register(lake / "sales" / "orders")
    (lake / "sales" / "orders").rename(lake / "moved")
    (lake / "sales" / "orders").symlink_to(lake.parent / "secret" / "payroll")
    decider.sweep()
    assert "by a link" in decider.get(f"/v1/tables/{name}")["refusal"]["reason"]


def commit(table: Path, *actions: dict[str, Any]) -> None:
    """Commit as a foreign writer does."""
    info = {"commitInfo": {"timestamp": 1_767_225_600_000, "operation": "WRITE"}}
    file = table / "_delta_log" / f"{delta_tables.newest(table) + 1:020d}.json"
    file.write_text("\n".join(map(json.dumps, [info, *actions])))


@pytest.mark.parametrize("path", ["{victim}/part-0.parquet", "../../secret/payroll/x.parquet", "%2e%2e/x.parquet"])
def test_a_table_that_names_a_file_of_another_is_refused_until_it_no_longer_does(
    decider: LiveDecider, lake: Path, path: str
) -> None:
    table = WrittenTable(lake / "sales" / "orders", days=("2026-01-01",))
    name = decider.register(table.path)
    outside = path.format(victim=(lake.parent / "secret" / "payroll").as_uri())
    add = next(iter(delta_tables.live(table.path).values())) | {"path": outside, "dataChange": True}
    commit(table.path, {"add": add})
    table_jobs = decider.get("/v1/jobs", table=name)["jobs"]
    decider.sweep()
    assert outside in decider.get(f"/v1/tables/{name}")["refusal"]["reason"]
    assert decider.get("/v1/jobs", table=name)["jobs"] == table_jobs
    assert decider.post(f"/v1/tables/{name}/optimize", {"dry_run": True}).status_code >= 400
    gone = {key: add[key] for key in ("path", "partitionValues", "size")}
    commit(table.path, {"remove": gone | {"dataChange": True, "extendedFileMetadata": True}})
    decider.sweep()
    status = decider.get(f"/v1/tables/{name}")
    assert (status["refusal"], status["state"]["version"]) == (None, delta_tables.newest(table.path))
