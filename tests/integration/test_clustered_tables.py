"""A table with CLUSTER BY: decided by what is not clustered, given to its format's own OPTIMIZE, and to no rewrite."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.layout.cells.counts import CellFiles
from shared.layout.cells.tags import CELL_TAG
from shared.layout.clustered_files import ClusterReason
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.partition_stats import CUBE_TAG
from shared.policy.policy import MIB, ClusterMode, Policy
from shared.table import CommitOrigin
from tests.support.delta_tables import HandTable, added
from tests.support.live_decider import LiveDecider

pytestmark = pytest.mark.redis

CLUSTERED = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["clustering", "domainMetadata", "appendOnly", "invariants"],
}
ON = {"lakewright.cluster": "on", "lakewright.target-file-size": "1 MiB", "lakewright.min-input-files": "8"}
IN_CELLS = {"lakewright.cluster": "cells", "lakewright.target-file-size": "1 MiB"}
POLICY = Policy(cluster=ClusterMode.CELLS, target_bytes=MIB)
CUBE = {CUBE_TAG: "c"}
URL = "/v1/tables/t"


def jobs(decider: LiveDecider) -> list[str]:
    return sorted(job["kind"] for job in decider.get("/v1/jobs")["jobs"])


def registered(decider: LiveDecider, path: Path, **more: Any) -> HandTable:
    table = HandTable(path, protocol=CLUSTERED, configuration=ON, **more)
    decider.register(table.path, "t")
    return table


def cluster(table: HandTable, tags: Mapping[str, str] = CUBE, **info: str) -> None:
    """Commit what a run does: all files become one, with these tags."""
    kept = ("path", "partitionValues", "size", "tags")
    gone = [add for version in range(1, table.version + 1) for add in added(table.path, version)]
    removes = [
        {"remove": {name: add[name] for name in kept if name in add} | {"dataChange": False, "deletionTimestamp": 1}}
        for add in gone
    ]
    output = table.new_file(20, {}) | {"dataChange": False, "tags": tags, "size": sum(a["size"] for a in gone)}
    table.commit([*removes, {"add": output}], **info)


def test_a_run_is_decided_when_it_is_due_and_recorded_and_no_other_rewrite_is(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = registered(decider, tmp_path / "t")
    table.append(7)
    decider.tick()
    assert jobs(decider) == []
    shown = decider.get(URL)
    assert shown["refusal"] is None
    assert any("Delta's own OPTIMIZE clusters it" in note for note in shown["policy"]["notes"])
    table.append(3)
    decider.tick()
    assert jobs(decider) == ["cluster"]
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
    assert jobs(decider) == []
    counted = decider.post(f"{URL}/actions/cluster", {"dry_run": True}).json()
    assert (counted["due"], counted["reason"], counted["unclustered_files"]) == (False, "below_cluster_threshold", 8)
    assert counted["rewritten_bytes"] == counted["unclustered_bytes"] + counted["clustered_bytes"]
    before = decider.run(decider.services.tables.states.state(decider.get(URL)["id"])).clustered
    table.commit([{"metaData": table.metadata(configuration={**ON, "lakewright.cluster-threshold": "0.9"})}])
    decider.tick()
    assert decider.run(decider.services.tables.states.state(decider.get(URL)["id"])).clustered == before
    table.commit([{"metaData": table.metadata(configuration={**ON, "lakewright.cluster-threshold": "0.1"})}])
    decider.tick()
    assert jobs(decider) == ["cluster"]
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
    assert jobs(decider) == ["checkpoint", "cluster", "vacuum"]

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
    assert jobs(decider) == ["compact"]
    table.commit([{"protocol": CLUSTERED}])
    decider.tick()
    assert jobs(decider) == ["cluster"]
    table.commit([{"metaData": table.metadata(configuration={})}])
    decider.tick()
    assert jobs(decider) == []
    assert decider.get(URL)["refusal"]["code"] == "unsafe_feature"
    table.commit([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata"]}}])
    decider.tick()
    assert jobs(decider) == ["compact"]


def test_a_table_in_cells_gets_a_run_for_what_is_new_and_for_what_the_last_one_left(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = HandTable(tmp_path / "t", protocol=CLUSTERED, configuration=IN_CELLS)
    decider.register(table.path, "t")
    for _ in range(10):
        table.append(size=100_000)
    decider.tick()
    assert jobs(decider) == []
    assert any("rewrites keep it in cells" in note for note in decider.get(URL)["policy"]["notes"])
    table.append(size=100_000)
    decider.tick()
    assert jobs(decider) == ["cluster"]
    made = decider.get(f"{URL}/decisions", limit=50)["decisions"]
    assert {(one["action"], one["reason"]) for one in made} == {
        ("compact", "clustered_table"),
        ("cluster", "half_a_run_due"),
    }
    assert any("New: 11 files" in one["message"] for one in made)
    dry = decider.post(f"{URL}/actions/cluster", {"dry_run": True}).json()
    assert (dry["due"], dry["reason"], dry["unclustered_files"]) == (True, "half_a_run_due", 11)
    assert dry["rewritten_bytes"] == 1_100_000
    assert "11 files with 1100000 bytes are new" in dry["message"]

    def told(left_bytes: int) -> str:
        mark = CommitMetadata(CommitOrigin("j", 1), left_bytes=left_bytes, settled_files=0, settled_bytes=0)
        return mark.encode()

    def cells() -> CellFiles:
        found = decider.run(decider.services.tables.states.state(decider.get(URL)["id"])).cells
        assert found is not None
        return found

    cluster(table, {CELL_TAG: "[]"}, operation="OPTIMIZE", userMetadata=told(900_000))
    decider.tick()
    assert (cells().new_files, cells().left_bytes, cells().files.clustered_bytes) == (0, 900_000, 1_100_000)
    assert decider.post(f"{URL}/actions/cluster", {"dry_run": True}).json()["reason"] == "nothing_unclustered"
    # Less than two pieces and few files do not count, and then they do.
    table.append(size=100_000)
    decider.tick()
    assert cells().need(POLICY) is ClusterReason.BELOW_RUN
    table.append(size=100_000)
    decider.tick()
    assert cells().need(POLICY) is ClusterReason.HALF_A_RUN
    table.commit([], userMetadata=told(0))
    decider.tick()
    assert cells().left_bytes == 900_000, "only a run of ours tells what is left"
    before = cells()
    table.commit([{"metaData": table.metadata(configuration={**IN_CELLS, "lakewright.fan-in": "4"})}])
    decider.tick()
    assert cells() == before, "counted again"
    table.commit([{"metaData": table.metadata(configuration=ON)}])
    decider.tick()
    assert decider.run(decider.services.tables.states.state(decider.get(URL)["id"])).cells is None
