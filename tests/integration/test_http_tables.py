"""The calls about tables: registering, listing, status, partitions, decisions, optimizing."""

import json
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from deltalake import DeltaTable

from decider.store.tables.table_records import TableRecord, TableRecords
from shared.table import TableId, TableRef
from tests.support.live_decider import LiveDecider, WrittenTable

pytestmark = pytest.mark.redis


def test_registering_twice_finds_the_same_table_and_another_name_is_a_conflict(
    decider: LiveDecider, tmp_path: Path
) -> None:
    WrittenTable(tmp_path / "orders")
    body = {"location": str(tmp_path / "orders"), "name": "sales.orders", "tenant": "sales"}
    first, again = decider.post("/v1/tables", body), decider.post("/v1/tables", {"location": f"{tmp_path}/orders/"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    other = decider.post("/v1/tables", body | {"name": "sales.others"})
    assert (other.status_code, other.json()["field"], other.json()["allowed"]) == (409, "name", "sales.orders")


def test_a_known_table_is_not_given_other_properties_without_a_word(decider: LiveDecider, tmp_path: Path) -> None:
    WrittenTable(tmp_path / "orders")
    body = {"location": str(tmp_path / "orders"), "name": "orders", "properties": {"lakewright.priority": "high"}}
    assert decider.post("/v1/tables", body).status_code == 201
    assert decider.post("/v1/tables", body).status_code == 200
    other = decider.post("/v1/tables", body | {"properties": {"lakewright.priority": "low"}})
    assert (other.status_code, other.json()["field"]) == (409, "properties")
    assert "PATCH /v1/tables/orders" in other.json()["detail"]
    silent = {name: value for name, value in body.items() if name != "properties"}
    assert decider.post("/v1/tables", silent).json()["properties"] == body["properties"]


def test_one_what_if_at_a_time_and_the_next_is_reported_when_to_come_again(
    decider: LiveDecider, tmp_path: Path
) -> None:
    WrittenTable(tmp_path / "orders")
    decider.register(tmp_path / "orders", "orders")
    turn = decider.services.http.expensive_calls.what_if.turn()
    decider.run(turn.__aenter__())
    refused = decider.post("/v1/tables/orders/what-if", {})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    decider.run(turn.__aexit__(None, None, None))
    assert decider.post("/v1/tables/orders/what-if", {}).status_code == 200


def test_a_what_if_compares_what_ranges_of_a_column_read(decider: LiveDecider, tmp_path: Path) -> None:
    WrittenTable(tmp_path / "orders")
    decider.register(tmp_path / "orders", "orders")
    url = "/v1/tables/orders/what-if"
    first = decider.post(url, {})
    assert (first.status_code, first.json().get("sort_keys")) == (200, []), first.text
    (column,) = decider.post(url, {"sort_keys": ["value"]}).json()["sort_keys"]
    assert (column["column"], column["files"] > 0) == ("value", True)
    refused = decider.post(url, {"sort_keys": ["absent"]})
    assert (refused.status_code, refused.json()["field"]) == (422, "sort_keys")
    assert decider.post(url, {"sort_keys": list("abcde")}).status_code == 422


def test_a_name_belongs_to_one_table(decider: LiveDecider, tmp_path: Path) -> None:
    WrittenTable(tmp_path / "a")
    WrittenTable(tmp_path / "b")
    decider.register(tmp_path / "a", "sales.orders")
    taken = decider.post("/v1/tables", {"location": str(tmp_path / "b"), "name": "sales.orders"})
    assert (taken.status_code, taken.json()["field"]) == (422, "name")
    assert len(decider.get("/v1/tables")["tables"]) == 1


def test_tables_are_listed_by_name_page_by_page_and_by_prefix(decider: LiveDecider, tmp_path: Path) -> None:
    names = [f"{catalog}.t{number}" for catalog in ("a", "b") for number in range(4)]
    for name in reversed(names):
        decider.post("/v1/tables", {"location": str(tmp_path / name), "name": name})
    listed, cursor = [], None
    while True:
        page = decider.get("/v1/tables", limit=3, **({"page_token": cursor} if cursor else {}))
        listed += [table["name"] for table in page["tables"]]
        cursor = page["next_page_token"]
        if cursor is None:
            break
    assert listed == names
    assert [table["name"] for table in decider.get("/v1/tables", prefix="b.")["tables"]] == names[4:]
    assert decider.get("/v1/tables", prefix="c")["tables"] == []


def test_a_table_whose_log_cannot_be_read_says_why_and_recovers(decider: LiveDecider, tmp_path: Path) -> None:
    name = decider.register(tmp_path / "orders", "orders")
    status = decider.get(f"/v1/tables/{name}")
    assert status["state"] is None
    assert "no directory" in status["refusal"]["reason"]
    WrittenTable(tmp_path / "orders")
    decider.sweep()
    status = decider.get(f"/v1/tables/{name}")
    assert (status["refusal"], status["state"]["version"]) == (None, 0)


def test_the_policy_names_the_property_that_set_each_value_and_shows_what_is_unusable(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders", configuration={"delta.targetFileSize": "1mb"})
    name = decider.register(table.path)
    values = {one["property"]: one for one in decider.get(f"/v1/tables/{name}")["policy"]["values"]}
    target = values["lakewright.target-file-size"]
    assert (target["value"], target["unit"], target["set_by"]) == (1 << 20, "bytes", "delta.targetFileSize")
    assert values["lakewright.fan-in"]["set_by"] == "default"
    _set_property(table.path, "lakewright.fan-in", "eight")
    decider.sweep()
    policy = decider.get(f"/v1/tables/{name}")["policy"]
    assert [(issue["property"], issue["value"]) for issue in policy["issues"]] == [("lakewright.fan-in", "eight")]
    assert {one["property"]: one["value"] for one in policy["values"]}["lakewright.target-file-size"] == 1 << 20


def _set_property(path: Path, name: str, value: str) -> None:
    """Commit a property as any writer may: the library itself checks names that it knows."""
    log = path / "_delta_log"
    first = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    metadata = next(action for action in first if "metaData" in action)
    metadata["metaData"]["configuration"][name] = value
    version = DeltaTable(str(path)).version() + 1
    (log / f"{version:020d}.json").write_text(json.dumps(metadata))


def test_partitions_come_page_by_page_and_equal_the_rebuild(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders", days=[f"2026-01-{day:02d}" for day in range(1, 9)])
    table.append(20)
    name = decider.register(table.path)
    partitions, cursor = [], None
    while True:
        page = decider.get(f"/v1/tables/{name}/partitions", limit=3, **({"page_token": cursor} if cursor else {}))
        partitions += page["partitions"]
        cursor = page["next_page_token"]
        if cursor is None:
            break
    expected = table.count_files()
    assert [partition["partition_key"] for partition in partitions] == sorted(expected)
    for partition in partitions:
        state, layout = expected[partition["partition_key"]], partition["layout"]
        assert (layout["files"], layout["bytes"]) == (state.files, state.bytes)
        assert layout["mse_bytes2"] == float(state.mse())
        assert partition["partition_label"] == f"dt={partition['partition']['dt']}"


def test_the_decision_in_force_at_a_moment_is_the_last_one_before_it(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    name = decider.register(table.path)
    for _ in range(6):
        table.append()
        decider.sweep()
    path = f"/v1/tables/{name}/decisions"
    newest = decider.get(path)["decisions"]
    assert [one["version"] for one in newest] == [6, 5, 4, 3, 2, 1, 0]
    for wanted in newest:
        moment = datetime.fromtimestamp(wanted["at_ms"] / 1000, UTC).isoformat()
        (found,) = decider.get(path, at=moment)["decisions"]
        assert found["version"] == max(one["version"] for one in newest if one["at_ms"] <= wanted["at_ms"])
    assert decider.get(path, at="2020-01-01T00:00:00Z")["decisions"] == []
    assert len(decider.get(path, partition="dt=2026-01-01", limit=2)["decisions"]) == 2
    assert decider.get(path, partition="dt=1999-01-01")["decisions"] == []


def test_a_request_queues_urgent_jobs_for_the_partitions_named_and_is_in_the_ledger(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    name = decider.register(table.path)
    for day in ("2026-01-01", "2026-01-02"):
        table.append(12, days=(day,))
    answer = decider.post(f"/v1/tables/{name}/optimize", {"partitions": ["dt=2026-01-02"]})
    assert answer.status_code == 202
    (job,) = answer.json()["jobs"]
    assert job["partition_label"] == "dt=2026-01-02"
    by_object = decider.post(f"/v1/tables/{name}/optimize", {"partitions": [{"dt": "2026-01-02"}]}).json()
    assert [one["id"] for one in by_object["jobs"]] == [job["id"]]
    assert by_object["jobs"][0]["outcome"] == "merged"
    assert decider.get(f"/v1/jobs/{job['id']}")["job"]["band"] == "urgent"
    newest = decider.get(f"/v1/tables/{name}/decisions", limit=1)["decisions"][0]
    assert (newest["reason"], newest["outcome"], newest["partition_label"]) == ("requested", "merged", "dt=2026-01-02")


def test_a_request_that_changes_nothing_says_why(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    name = decider.register(table.path)
    answer = decider.post(f"/v1/tables/{name}/optimize", {"force": True}).json()
    assert (answer["jobs"], answer["ignored"]) == ([], "nothing_to_do")
    assert sum(answer["reasons"].values()) == 1
    nowhere = decider.post(f"/v1/tables/{name}/optimize", {"partitions": ["dt=1999-01-01"]}).json()
    assert (nowhere["jobs"], nowhere["ignored"], nowhere["reasons"]) == ([], "no_partition", {})
    plan = decider.post(f"/v1/tables/{name}/optimize", {"partitions": ["dt=1999-01-01"], "dry_run": True}).json()
    assert (plan["plans"], plan["ignored"]) == ([], "no_partition")
    for dry_run in (True, False):
        unsorted = decider.post(f"/v1/tables/{name}/optimize", {"actions": ["sort"], "dry_run": dry_run}).json()
        assert "do not switch this action on" in unsorted["message"]
    dry = decider.post(f"/v1/tables/{name}/optimize", {"dry_run": True}).json()
    assert (dry["plans"], dry["ignored"]) == ([], "nothing_to_do")


def test_a_plan_says_why_other_partitions_are_left_as_they_are(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    table.append(11)
    table.append(1, days=("2026-01-02",))
    name = decider.register(table.path)
    plan = decider.post(f"/v1/tables/{name}/optimize", {"dry_run": True}).json()
    assert plan["message"].endswith(
        "in 1 partition. 1 partition: Fewer than two files are small, so there is nothing to merge."
    )


def test_a_switched_off_table_is_rewritten_only_by_force(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    _set_property(table.path, "lakewright.enabled", "false")
    table.append(11)
    name = decider.register(table.path)
    assert decider.get("/v1/jobs")["jobs"] == []
    path = f"/v1/tables/{name}/optimize"
    assert decider.post(path, {}).json()["ignored"] == "disabled"
    assert decider.post(path, {"dry_run": True}).json()["ignored"] == "disabled"
    assert len(decider.post(path, {"dry_run": True, "force": True}).json()["plans"]) == 1
    assert len(decider.post(path, {"force": True}).json()["jobs"]) == 1


def test_a_removal_that_races_with_a_look_leaves_no_state(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = WrittenTable(tmp_path / "orders")
    stranger = TableRef(TableId("stranger-1"), "stranger", table.path.as_uri())
    registry = decider.services.tables.registry
    assert decider.run(registry.register(stranger))
    real = TableRecords.read

    async def removed_when_read(records: TableRecords, table_id: TableId) -> TableRecord | None:
        known = await real(records, table_id)
        if known is not None:
            await registry.remove(known.table)
        return known

    monkeypatch.setattr(TableRecords, "read", removed_when_read)
    decider.run(decider.services.requests.refresh_queue.put(stranger, None))
    decider.drain()
    assert decider.run(decider.services.tables.states.state(stranger.id)) is None
    assert decider.run(decider.services.tables.states.all_partitions(stranger.id)) == {}
    assert decider.get("/v1/jobs")["jobs"] == []


def test_jobs_are_listed_page_by_page_over_all_states(decider: LiveDecider, tmp_path: Path) -> None:
    days = [f"2026-02-{day:02d}" for day in range(1, 8)]
    table = WrittenTable(tmp_path / "orders", days=days)
    for day in days:
        table.append(6, days=(day,))
    name = decider.register(table.path)
    worth = decider.get(f"/v1/tables/{name}")["eligible_partitions"]
    listed, cursor = [], None
    while True:
        page = decider.get("/v1/jobs", limit=2, table=name, **({"page_token": cursor} if cursor else {}))
        listed += [job["id"] for job in page["jobs"]]
        cursor = page["next_page_token"]
        if cursor is None:
            break
    assert worth >= 5
    assert len(listed) == len(set(listed)) == worth
    gone = decider.client.delete(f"/v1/jobs/{listed[0]}")
    assert gone.json()["outcome"] == "deleted"
    assert decider.client.delete(f"/v1/jobs/{listed[0]}").status_code == httpx.codes.NOT_FOUND
    assert decider.get("/v1/status")["queue"]["depth"]["queued"] == worth - 1
