"""Tables with a sort order and tables with CLUSTER BY against a live decider: decisions, jobs and dry runs."""

import random
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.layout.partition_stats import CUBE_TAG
from shared.queue.model import JobState
from tests.support.delta_tables import HandTable, added
from tests.support.live_decider import LiveDecider
from tests.support.table_lives import alter

pytestmark = pytest.mark.redis

KEYS = 1_000_000


class KeyedTable:
    """A table of full files of random keys: 64 KiB is their target."""

    def __init__(self, path: Path, seed: int = 1) -> None:
        self.path = path
        self._dice = random.Random(seed)
        self.append()
        alter(self, {"lakewright.target-file-size": "64kb", "lakewright.max-depth": "2"})  # type: ignore[arg-type]

    def append(self) -> None:
        dice = self._dice
        keys = pa.array(dice.randrange(KEYS) for _ in range(3_000))
        texts = pa.array(f"{dice.getrandbits(128):032x}" for _ in range(3_000))
        deltalake.write_deltalake(self.path, pa.table({"k": keys, "t": texts}), mode="append")


def sorts(decider: LiveDecider, name: str) -> list[tuple[str, str]]:
    found = decider.get(f"/v1/tables/{name}/decisions", limit=100)["decisions"]
    return [(one["decision"], one["reason"]) for one in found if one["action"] == "sort"]


def test_a_table_is_sorted_from_the_moment_on_that_its_properties_name_an_order(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = KeyedTable(tmp_path / "t")
    table.append()
    name = decider.register(table.path)
    assert sorts(decider, name) == []
    alter(table, {"lakewright.sort-by": "K desc"})  # type: ignore[arg-type]
    decider.sweep()
    assert sorts(decider, name) == [("skip", "within_depth")]
    table.append()
    decider.sweep()
    assert sorts(decider, name)[0] == ("enqueue", "too_deep")
    (job,) = [one for one in decider.get("/v1/jobs", table=name)["jobs"] if one["kind"] == "sort"]
    assert job["state"] == JobState.QUEUED
    (partition,) = decider.get(f"/v1/tables/{name}/partitions")["partitions"]
    assert [one["reason"] for one in partition["decisions"] if one["action"] == "sort"] == ["too_deep"]
    assert partition["layout"]["depth"] == 3


def test_the_files_to_sort_are_shown_and_queued_by_command(decider: LiveDecider, tmp_path: Path) -> None:
    table = KeyedTable(tmp_path / "t")
    for _ in range(3):
        table.append()
    alter(table, {"lakewright.sort-by": "k", "lakewright.enabled": "false"})  # type: ignore[arg-type]
    name = decider.register(table.path)
    url = f"/v1/tables/{name}/optimize"
    plan = decider.post(url, {"dry_run": True, "actions": ["sort"], "force": True}).json()
    (one,) = plan["plans"]
    assert (one["action"], one["files_replaced"], one["files_removed"]) == ("sort", 4, 0)
    assert [group["mode"] for group in one["groups"]] == ["sort"]
    assert decider.post(url, {"actions": ["sort"]}).json()["ignored"] == "disabled"
    alter(table, {"lakewright.enabled": "true"})  # type: ignore[arg-type]
    decider.sweep()

    def call(*arguments: str) -> str:
        result = decider.command(*arguments)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    assert "4 files would be replaced" in call("sort", name, "--dry-run")
    assert "sort" in call("sort", name)
    (job,) = [one for one in decider.get("/v1/jobs", table=name)["jobs"] if one["kind"] == "sort"]
    assert job["partition_key"] == "{}"


def test_an_action_that_does_not_exist_is_refused_by_name(decider: LiveDecider, tmp_path: Path) -> None:
    table = KeyedTable(tmp_path / "t")
    name = decider.register(table.path)
    refused = decider.post(f"/v1/tables/{name}/optimize", {"actions": ["tidy"]})
    assert refused.status_code == 422
    assert "compact" in refused.json()["allowed"]


CLUSTERED = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["clustering", "domainMetadata", "appendOnly", "invariants"],
}
ON = {"lakewright.cluster": "on", "lakewright.target-file-size": "1 MiB", "lakewright.min-input-files": "8"}
URL = "/v1/tables/t"


def registered(decider: LiveDecider, path: Path, **more: Any) -> HandTable:
    table = HandTable(path, protocol=CLUSTERED, configuration=ON, **more)
    decider.register(table.path, "t")
    return table


def cluster(table: HandTable) -> None:
    """Commit what OPTIMIZE does: all files become one, in a Z-cube."""
    kept = ("path", "partitionValues", "size", "tags")
    gone = [add for version in range(1, table.version + 1) for add in added(table.path, version)]
    removes = [
        {"remove": {name: add[name] for name in kept if name in add} | {"dataChange": False, "deletionTimestamp": 1}}
        for add in gone
    ]
    cube = table.new_file(20, {}) | {"dataChange": False, "tags": {CUBE_TAG: "c"}, "size": sum(a["size"] for a in gone)}
    table.commit([*removes, {"add": cube}])


def test_a_run_is_decided_when_it_is_due_and_recorded_and_no_other_rewrite_is(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = registered(decider, tmp_path / "t")
    table.append(7)
    decider.tick()
    assert decider.job_kinds() == []
    shown = decider.get(URL)
    assert shown["refusal"] is None
    assert any("Delta's own OPTIMIZE clusters it" in note for note in shown["policy"]["notes"])
    table.append(3)
    decider.tick()
    assert decider.job_kinds() == ["cluster"]
    decisions = decider.get(f"{URL}/decisions", limit=50)["decisions"]
    assert {(one["action"], one["reason"]) for one in decisions} == {
        ("compact", "clustered_table"),
        ("cluster", "unclustered_bytes"),
    }
    assert any("Not clustered: 10 files" in one["message"] for one in decisions)
    assert decider.get("/v1/status")["tables_refused"] == 0

    for force in (False, True):
        answer = decider.post(f"{URL}/optimize", {"force": force}).json()
        assert (answer["jobs"], answer["reasons"]) == ([], {"clustered_table": 1})
        dry = decider.post(f"{URL}/optimize", {"dry_run": True, "force": force}).json()
        assert (dry["plans"], dry["reasons"]) == ([], {"clustered_table": 1})
    replayed = decider.post(f"{URL}/what-if", {}).json()
    assert any("which is not replayed" in note for note in replayed["notes"])
    assert not any("refused" in note for note in replayed["notes"])
    refused = decider.post(f"{URL}/actions/deduplicate", {})
    assert (refused.status_code, refused.json()["field"]) == (409, "format")


def test_what_was_clustered_counts_for_the_next_run_and_after_a_rebuild(decider: LiveDecider, tmp_path: Path) -> None:
    table = registered(decider, tmp_path / "t")
    table.append(40)
    cluster(table)
    decider.tick()
    counted = decider.post(f"{URL}/actions/cluster", {"dry_run": True}).json()
    assert (counted["due"], counted["reason"], counted["unclustered_files"]) == (False, "nothing_unclustered", 0)
    # Eight files are not a quarter of forty.
    table.append(8)
    decider.tick()
    assert decider.job_kinds() == []
    counted = decider.post(f"{URL}/actions/cluster", {"dry_run": True}).json()
    assert (counted["due"], counted["reason"], counted["unclustered_files"]) == (False, "below_cluster_threshold", 8)
    assert counted["rewritten_bytes"] == counted["unclustered_bytes"] + counted["clustered_bytes"]
    before = decider.run(decider.services.tables.states.state(decider.get(URL)["id"])).clustered
    table.commit([{"metaData": table.metadata(configuration={**ON, "lakewright.cluster-threshold": "0.9"})}])
    decider.tick()
    assert decider.run(decider.services.tables.states.state(decider.get(URL)["id"])).clustered == before
    table.commit([{"metaData": table.metadata(configuration={**ON, "lakewright.cluster-threshold": "0.1"})}])
    decider.tick()
    assert decider.job_kinds() == ["cluster"]
    cluster(table)
    decider.tick()
    assert decider.post(f"{URL}/actions/cluster", {"dry_run": True}).json()["unclustered_files"] == 0


def test_a_person_runs_it_at_once_vacuums_it_and_reads_why_another_table_cannot_be(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = registered(decider, tmp_path / "t")
    table.append(2)
    run = CliRunner()
    shown = run.invoke(app, ["--url", decider.url, "cluster", "t", "--dry-run"])
    assert "2 files with" in shown.stdout
    assert "not due" in shown.stdout
    assert "1 job." in run.invoke(app, ["--url", decider.url, "cluster", "t"]).stdout
    for kind in ("vacuum", "checkpoint"):
        assert decider.post(f"{URL}/actions/{kind}", {}).json()["message"] == "1 job."
    assert decider.post(f"{URL}/actions/vacuum", {"dry_run": True}).json()["message"].startswith("0 files")
    assert decider.job_kinds() == ["checkpoint", "cluster", "vacuum"]

    plain = HandTable(tmp_path / "plain", configuration=ON)
    plain.append(12)
    decider.register(plain.path, "plain")
    decider.tick()
    for body in ({}, {"dry_run": True}):
        refused = decider.post("/v1/tables/plain/actions/cluster", body)
        assert (refused.status_code, refused.json()["field"]) == (422, "table")
    off = HandTable(tmp_path / "off", protocol=CLUSTERED)
    off.append(12)
    decider.register(off.path, "off")
    for body in ({}, {"dry_run": True}):
        assert "Set lakewright.cluster=on" in decider.post("/v1/tables/off/actions/cluster", body).json()["message"]
    assert "cluster" not in {job["kind"] for job in decider.get("/v1/jobs")["jobs"] if job["table_name"] != "t"}


def test_a_table_that_becomes_clustered_loses_its_rewrites_and_gets_its_own(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = HandTable(tmp_path / "t", configuration=ON)
    table.append(12)
    decider.register(table.path, "t")
    assert decider.job_kinds() == ["compact"]
    table.commit([{"protocol": CLUSTERED}])
    decider.tick()
    assert decider.job_kinds() == ["cluster"]
    table.commit([{"metaData": table.metadata(configuration={})}])
    decider.tick()
    assert decider.job_kinds() == []
    assert decider.get(URL)["refusal"]["code"] == "unsafe_feature"
    table.commit([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata"]}}])
    decider.tick()
    assert decider.job_kinds() == ["compact"]
