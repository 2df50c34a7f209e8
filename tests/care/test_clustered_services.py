"""A table with CLUSTER BY under real services: two hundred commits, clustered by OPTIMIZE alone, rows as written."""

import json
from collections import Counter

import pytest

from decider.web.base_model import MAX_PAGE
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.commit_metadata import decode
from shared.layout.partition_stats import CUBE_TAG
from shared.policy.policy import MIB, ClusterMode, Policy
from tests.support.delta_tables import HandTable, commit_info, live, newest, rows
from tests.support.outside import is_at_rest
from tests.support.stack import Stack
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.redis]

NAME = "db.clustered"
COMMITS = 200
ROWS = 1_000
"""Rows of one file: with so many, its bytes are mostly data, as in the file that it is merged into."""

AT_ONCE = 5
"""Commits after which the test waits for the services to do what is due: as slow writers would."""

POLICY = Policy(cluster=ClusterMode.ON, target_bytes=MIB, min_input_files=8).with_traits(is_clustered=True)
"""What `PROPERTIES` set."""

PROPERTIES = {"lakewright.cluster": "on", "lakewright.target-file-size": "1 MiB", "lakewright.min-input-files": "8"}
CLUSTERED = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["appendOnly", "clustering", "domainMetadata", "invariants"],
}
COLUMNS = {"domainMetadata": {"domain": "delta.clustering", "removed": False}}


def files(table: HandTable) -> ClusteredFiles:
    found = live(table.path).values()
    return ClusteredFiles.of((add["size"], CUBE_TAG in (add.get("tags") or {})) for add in found)


def append(table: HandTable) -> int:
    """Commit one file, at the next version that OPTIMIZE does not take meanwhile."""
    action = {"add": table.new_file(ROWS, {})}
    while True:
        try:
            return table.commit([action])
        except FileExistsError:
            continue


def modes(table: HandTable) -> Counter[str | None]:
    """The modes of all commits of ours."""
    marks = (decode(commit_info(table.path, at).get("userMetadata")) for at in range(newest(table.path) + 1))
    return Counter(mark.mode for mark in marks if mark is not None)


def test_two_hundred_commits_are_clustered_when_it_pays_and_no_rewrite_of_ours_touches_them(stack: Stack) -> None:
    table = HandTable(stack.tables / "t", configuration=PROPERTIES, protocol=CLUSTERED)
    columns = json.dumps({"clusteringColumns": [["id"]], "domainName": "delta.clustering"})
    table.commit([{"domainMetadata": COLUMNS["domainMetadata"] | {"configuration": columns}}])
    stack.decider(LAKEWRIGHT_SWEEP_S="1")
    stack.post("/v1/tables", {"location": table.path.as_uri(), "name": NAME}).raise_for_status()
    stack.actor()
    until("the actor is there", lambda: stack.get("/v1/actors")["actors"], seconds=120)
    for at in range(COMMITS):
        version = append(table)
        if (at + 1) % AT_ONCE == 0:
            stack.notify(table.path, version)
            # A timer that is due leads to its job some seconds later, and nothing shows it until then.
            until("the table is clustered", lambda: not files(table).need(POLICY).is_due, seconds=120)
            until("the decider and the actor are at rest", lambda: is_at_rest(stack, NAME, table.path), seconds=120)
    until("all work is done", lambda: is_at_rest(stack, NAME, table.path), seconds=240)
    runs = modes(table)
    funnel = stack.get("/v1/status")["funnel"]
    decisions = stack.get(f"/v1/tables/{NAME}/decisions", limit=MAX_PAGE)["decisions"]
    print(f"\n{COMMITS} commits: runs {dict(runs)}; {files(table)}; cluster_* {funnel.get('cluster_runs')}")
    assert runs.keys() == {"cluster"}
    # One for each quarter by which the table grew, and not one for every eight commits.
    assert 5 <= runs["cluster"] <= COMMITS // 8 * 0.6
    assert funnel["cluster_runs"] >= runs["cluster"]
    assert not funnel.get("jobs_failed"), funnel
    compactions = [one for one in decisions if one["action"] == "compact"]
    assert {one["reason"] for one in compactions} == {"clustered_table", "own_commit"}
    assert {one["decision"] for one in compactions} == {"skip"}
    assert any(one["reason"] == "unclustered_bytes" for one in decisions)
    assert [row[0] for row in rows(table.path)] == list(range(COMMITS * ROWS))
    listed = stack.get(f"/v1/tables/{NAME}/optimizations")["optimizations"]
    assert {one["optimization_name"] for one in listed} == {"cluster"}
