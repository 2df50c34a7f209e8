"""A table in cells: decided by what is new and by what the last run reported, and given to no other rewrite."""

from pathlib import Path

import pytest

from shared.layout.cells.counts import CellFiles
from shared.layout.cells.tags import CELL_TAG
from shared.layout.clustered_files import ClusterReason
from shared.layout.commit_metadata import CommitMetadata
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
IN_CELLS = {"lakewright.cluster": "cells", "lakewright.target-file-size": "1 MiB"}
POLICY = Policy(cluster=ClusterMode.CELLS, target_bytes=MIB)
URL = "/v1/tables/t"


def rewrite_all(table: HandTable, left_bytes: int) -> None:
    """Commit what a run does: all files become one, and its mark reports what is left."""
    gone = [add for version in range(1, table.version + 1) for add in added(table.path, version)]
    removes = [
        {"remove": {**{name: add[name] for name in ("path", "partitionValues", "size")}, "dataChange": False}}
        for add in gone
    ]
    output = table.new_file(20, {}) | {"dataChange": False, "tags": {CELL_TAG: "[]"}}
    output["size"] = sum(add["size"] for add in gone)
    table.commit([*removes, {"add": output}], operation="OPTIMIZE", userMetadata=report(left_bytes))


def report(left_bytes: int) -> str:
    return CommitMetadata(CommitOrigin("j", 1), left_bytes=left_bytes, settled_files=0, settled_bytes=0).encode()


def test_a_table_in_cells_gets_a_run_for_what_is_new_and_for_what_the_last_one_left(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = HandTable(tmp_path / "t", protocol=CLUSTERED, configuration=IN_CELLS)
    decider.register(table.path, "t")
    for _ in range(10):
        table.append(size=100_000)
    decider.tick()
    assert decider.job_kinds() == []
    assert any("rewrites keep it in cells" in note for note in decider.get(URL)["policy"]["notes"])
    table.append(size=100_000)
    decider.tick()
    assert decider.job_kinds() == ["cluster"]
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

    def cells() -> CellFiles:
        found = decider.run(decider.services.tables.states.state(decider.get(URL)["id"])).cells
        assert found is not None
        return found

    rewrite_all(table, 900_000)
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
    table.commit([], userMetadata=report(0))
    decider.tick()
    assert cells().left_bytes == 900_000, "only a run of ours reports what is left"
    before = cells()
    table.commit([{"metaData": table.metadata(configuration={**IN_CELLS, "lakewright.fan-in": "4"})}])
    decider.tick()
    assert cells() == before, "counted again"
    table.commit([{"metaData": table.metadata(configuration={"lakewright.cluster": "on"})}])
    decider.tick()
    assert decider.run(decider.services.tables.states.state(decider.get(URL)["id"])).cells is None
