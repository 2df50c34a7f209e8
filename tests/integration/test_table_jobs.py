"""Vacuum, checkpoint and reclaim through the API and the command line: previews, jobs, records, refusals."""

import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from decider.gateway.credentials import Credentials, parse_tokens
from shared.jobs.options import DeduplicateOptions, ExpiryOptions, VacuumOptions
from shared.jobs.payload import JobPayload
from shared.paths.locations import table_id
from shared.queue import queries
from tests.support.aged_table import (
    DAY_MS,
    contents,
    data_files,
    files_needed,
    history,
    now_ms,
    remove_long_ago,
    set_time,
    versions,
)
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.local_vacuum import LocalTable, run_locally
from tests.support.stack import ROOT
from tests.support.waiting import until

pytestmark = pytest.mark.redis

NAME = "sales.orders"
URL = f"/v1/tables/{NAME}"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve days of history, and an old orphan; written once, because it takes longer than most tests."""
    path = tmp_path_factory.mktemp("written") / "orders"
    history(path, days=12)
    (path / "orphan.parquet").write_bytes(b"x")
    set_time(path / "orphan.parquet", now_ms() - 8 * DAY_MS)
    return path


@pytest.fixture
def table(decider: LiveDecider, written: Path, tmp_path: Path) -> Path:
    """A registered copy of it, with its times."""
    path = Path(shutil.copytree(written, tmp_path / "orders"))
    decider.register(path, NAME)
    return path


def jobs(decider: LiveDecider, kind: str) -> list[dict[str, Any]]:
    return [job for job in decider.get("/v1/jobs", limit=100)["jobs"] if job["kind"] == kind]


def options_of(decider: LiveDecider, job: str) -> VacuumOptions:
    view = decider.run(decider.services.queue.executor.run(queries.job("default", job)))
    found = VacuumOptions.decode(JobPayload.decode(view.payload).options)
    assert found.requested_ms is not None
    assert found.requested_ms <= now_ms()
    return replace(found, requested_ms=None)


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_a_dry_run_lists_exactly_what_a_run_deletes(
    decider: LiveDecider, table: Path, *, with_checkpoint: bool
) -> None:
    if with_checkpoint:
        DeltaTable(table).create_checkpoint()
    needed = files_needed(table, contents(table, 7))
    answer = decider.post(f"{URL}/actions/vacuum", {"dry_run": True, "orphans": True})
    assert answer.status_code == 200
    listed = {one["name"]: one["bytes"] for one in answer.json()["deletions"]}
    assert listed.keys() == data_files(table) - needed
    assert all(size == (table / name).stat().st_size for name, size in listed.items())
    assert answer.json()["orphan_files"] == 1
    assert jobs(decider, "vacuum") == []
    local = LocalTable(table)
    run_locally(local)
    assert set(local.deleted) == listed.keys()
    assert decider.post(f"{URL}/actions/vacuum", {"dry_run": True, "orphans": True}).json()["files"] == 0


def test_a_retention_below_the_tables_least_one_is_refused_without_force(decider: LiveDecider, table: Path) -> None:
    for dry_run in (True, False):
        refused = decider.post(f"{URL}/actions/vacuum", {"retain_hours": 24, "dry_run": dry_run})
        assert (refused.status_code, refused.json()["field"]) == (422, "retain_hours")
    assert jobs(decider, "vacuum") == []
    few = decider.post(f"{URL}/actions/vacuum", {"dry_run": True}).json()["files"]
    more = decider.post(f"{URL}/actions/vacuum", {"retain_hours": 24, "force": True, "dry_run": True}).json()["files"]
    assert more > few > 0
    assert len(data_files(table)) > more


def test_the_retention_of_the_format_counts_where_a_property_is_shorter(decider: LiveDecider, table: Path) -> None:
    properties = {"lakewright.min-retain": "1 hour"}
    DeltaTable(table).alter.set_table_properties(properties, raise_if_not_exists=False)
    for dry_run in (True, False):
        refused = decider.post(f"{URL}/actions/vacuum", {"retain_hours": 24, "dry_run": dry_run})
        assert (refused.status_code, refused.json()["allowed"]) == (422, "168 hours or more")
    assert jobs(decider, "vacuum") == []
    assert any("168 hours" in note for note in decider.get(URL)["policy"]["notes"])


def test_a_vacuum_and_a_checkpoint_are_queued_recorded_and_shown(decider: LiveDecider, table: Path) -> None:
    assert table.exists()
    assert "1 job." in decider.command("vacuum", NAME, "--orphans").stdout
    assert "already queued" in decider.command("vacuum", NAME, "--retain-hours", "1000").stdout
    assert "1 job." in decider.command("checkpoint", NAME).stdout
    (vacuum,), (checkpoint,) = jobs(decider, "vacuum"), jobs(decider, "checkpoint")
    assert (vacuum["partition_key"], checkpoint["partition_key"]) == ("{}", "{}")
    # Two requests at one version are one job, with the options of either.
    assert options_of(decider, vacuum["id"]) in (VacuumOptions(with_orphans=True), VacuumOptions(retain_s=3_600_000))
    decisions = decider.get(f"{URL}/decisions", limit=50)["decisions"]
    asked = [one for one in decisions if one["action"] in ("vacuum", "checkpoint")]
    assert {one["reason"] for one in asked} == {"requested"}
    assert decider.client.delete(URL).is_success
    assert decider.get("/v1/jobs")["jobs"] == []


def test_older_rows_are_removed_on_request_only_where_the_table_has_a_key(decider: LiveDecider, table: Path) -> None:
    refused = decider.post(f"{URL}/actions/deduplicate", {})
    assert (refused.status_code, refused.json()["field"]) == (422, "primary-key")
    keyed = {"lakewright.primary-key": "id", "lakewright.sequence-by": "day"}
    DeltaTable(table).alter.set_table_properties(keyed, raise_if_not_exists=False)
    shown = decider.command("deduplicate", NAME, "--dry-run")
    assert shown.exit_code == 0, shown.output
    (job,) = jobs(decider, "deduplicate")
    view = decider.run(decider.services.queue.executor.run(queries.job("default", job["id"])))
    assert JobPayload.decode(view.payload).options == DeduplicateOptions(dry_run=True).encode()
    (record,) = (one for one in decider.get(f"{URL}/decisions")["decisions"] if one["action"] == "deduplicate")
    assert record["reason"] == "requested"


def test_rows_are_deleted_by_age_on_request_only_where_the_tables_own_properties_name_one(
    decider: LiveDecider, table: Path
) -> None:
    aged = {"lakewright.delete-rows-after": "90 days of day"}
    answers = [
        decider.post(f"{URL}/actions/expire", {}),
        decider.client.patch(URL, json={"properties": aged}),
        decider.post(f"{URL}/optimize", {"values": aged}),
        decider.post(f"{URL}/actions/expire", {}),
    ]
    assert [answer.status_code for answer in answers] == [422] * 4
    assert answers[0].json()["field"] == "delete-rows-after"
    assert jobs(decider, "expire") == []
    DeltaTable(table).alter.set_table_properties(aged, raise_if_not_exists=False)
    before_ms = time.time_ns() // 1_000_000
    shown = decider.command("expire", NAME, "--dry-run")
    assert shown.exit_code == 0, shown.output
    (job,) = jobs(decider, "expire")
    view = decider.run(decider.services.queue.executor.run(queries.job("default", job["id"])))
    options = ExpiryOptions.decode(JobPayload.decode(view.payload).options)
    assert options.dry_run
    assert before_ms <= options.decided_ms <= time.time_ns() // 1_000_000


def test_no_operator_can_name_a_key(decider: LiveDecider, table: Path) -> None:
    """Twenty rows became five by a registration that named a key which no owner had named."""
    keyed = {"lakewright.primary-key": "id", "lakewright.sequence-by": "day"}
    assert decider.client.delete(URL).is_success
    answers = [
        decider.post("/v1/tables", {"location": str(table), "name": NAME, "properties": keyed}),
        decider.post("/v1/tables", {"location": str(table), "name": NAME}),
        decider.client.patch(URL, json={"properties": keyed}),
        decider.post(f"{URL}/optimize", {"values": keyed}),
        decider.post(f"{URL}/actions/deduplicate", {}),
    ]
    assert [answer.status_code for answer in answers] == [422, 201, 422, 422, 422]
    assert "ALTER TABLE" in answers[2].json()["detail"]
    assert jobs(decider, "deduplicate") == []


def test_reclaim_asks_for_the_tables_name_and_is_forced_to_the_hours_that_are_given(
    decider: LiveDecider, table: Path
) -> None:
    refused = decider.command("reclaim", NAME)
    assert refused.exit_code == 1
    assert jobs(decider, "vacuum") == []
    assert "2 jobs." in decider.command("reclaim", NAME, "--confirm", NAME, "--retain-hours", "24").stdout
    (job,) = jobs(decider, "vacuum")
    assert options_of(decider, job["id"]) == VacuumOptions(with_orphans=True, force=True, retain_s=86_400)
    newest = DeltaTable(table).version()
    kept = contents(table, 1)
    run_locally(LocalTable(table), options_of(decider, job["id"]))
    assert contents(table, 1, after=newest) == kept
    assert data_files(table) == files_needed(table, kept)


def test_reclaim_without_hours_keeps_the_whole_retention(decider: LiveDecider, table: Path) -> None:
    """A property that is shorter than the least retention counts where a person writes the hours, not by itself."""
    DeltaTable(table).alter.set_table_properties({"lakewright.retain": "1 hour"}, raise_if_not_exists=False)
    assert decider.post(f"{URL}/actions/reclaim", {"confirm": NAME}).status_code == 202
    (job,) = jobs(decider, "vacuum")
    assert options_of(decider, job["id"]) == VacuumOptions(with_orphans=True)


def test_a_dry_run_is_shown_by_the_command_line(decider: LiveDecider, table: Path) -> None:
    shown = decider.command("vacuum", NAME, "--dry-run", "--orphans").stdout
    assert "would be deleted; 1 of them in no commit." in shown
    assert "orphan.parquet" in shown
    as_json = json.loads(decider.command("--json", "vacuum", NAME, "--dry-run").stdout)
    assert (as_json["orphan_files"], "orphan.parquet" in str(as_json)) == (0, False)
    assert (table / "orphan.parquet").exists()


def test_the_signal_is_folded_from_commits_restored_by_a_rebuild_and_ended_by_a_vacuum(
    decider: LiveDecider, table: Path
) -> None:
    on = {"lakewright.vacuum": "on", "lakewright.orphans-every": "off"}
    assert decider.client.patch(URL, json={"properties": on}).is_success
    decider.sweep()

    def removals() -> Any:
        state = decider.run(decider.services.tables.states.state(table_id(table.as_uri())))
        assert state is not None
        return state.removals

    rebuilt = removals()
    assert rebuilt.files == len(data_files(table)) - len(DeltaTable(table).file_uris()) - 1
    DeltaTable(table).delete("id < 50")
    decider.sweep()
    assert removals().files > rebuilt.files
    run_locally(LocalTable(table))
    decider.sweep()
    ended = removals()
    assert ended.vacuumed_ms > 0
    assert ended.files < rebuilt.files
    assert ended.expired(now_ms() - 7 * DAY_MS) == (0, 0)


@pytest.mark.parametrize("hours", [0, 1])
def test_less_than_the_retention_is_forced_by_an_admin_alone(redis_url: str, written: Path, hours: int) -> None:
    """As a purge of history is: an operator may vacuum, and see what a forced vacuum would delete."""
    tokens = {role: f"{role}-t0ken-for-tests-only" for role in ("viewer", "operator", "admin")}
    known = Credentials(tokens=parse_tokens(",".join(f"{role}:{token}" for role, token in tokens.items())))
    with LiveDecider(decider_settings(redis_url, known=known)) as live:

        def post(role: str, url: str, body: dict[str, Any]) -> int:
            headers = {"authorization": f"Bearer {tokens[role]}"}
            return live.client.post(url, json=body, headers=headers).status_code

        assert post("admin", "/v1/tables", {"location": written.as_uri(), "name": NAME}) == 201
        for command, allowed in (
            ("vacuum", {"operator", "admin"}),
            ("checkpoint", {"operator", "admin"}),
            ("reclaim", {"admin"}),
        ):
            body = {"confirm": "unknown"} if command == "reclaim" else {}
            passed = {role for role in tokens if post(role, f"/v1/tables/unknown/actions/{command}", body) == 404}
            assert passed == allowed, command
        forced = {"force": True, "retain_hours": hours, "orphans": True}
        assert post("operator", f"{URL}/actions/vacuum", {**forced, "dry_run": True}) == 200
        assert [post(role, f"{URL}/actions/vacuum", forced) for role in tokens] == [403, 403, 202]


FILES = 200


def start(table: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.support.local_vacuum", str(table)], cwd=ROOT)


def test_a_vacuum_killed_twice_is_finished_by_the_third_run(tmp_path: Path) -> None:
    table = tmp_path / "t"
    history(table, days=12)
    remove_long_ago(table, FILES)
    newest, before = versions(table)[-1], contents(table, 7)
    needed = files_needed(table, before)
    left = [len(data_files(table))]
    for _ in range(2):
        vacuum = start(table)
        until("the vacuum deletes", lambda: len(data_files(table)) < left[-1] - 10)
        vacuum.kill()
        vacuum.wait()
        left.append(len(data_files(table)))
        assert versions(table)[-1] == newest, "no end is committed before the end"
        assert needed <= data_files(table)
    assert len(needed) < left[2] < left[1] < left[0]
    rest = run_locally(LocalTable(table), VacuumOptions(with_orphans=True))
    assert rest.is_complete
    assert rest.figures["files_deleted"] == left[2] - len(needed)
    assert data_files(table) == needed
    assert contents(table, 7, after=newest) == before
    assert DeltaTable(table).history(1)[0]["operation"] == "VACUUM END"
