"""A real actor killed with kill -9 around the commit to an Iceberg table: one commit, and not a row lost or doubled.

What the actor left behind is an orphan; a vacuum deletes it days later, and nothing that is needed.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.iceberg_rest_lake import ICEBERGS, OURS, RestLake, rest_lake
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack
from tests.support.waiting import until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.e2e,
    pytest.mark.usefixtures("redis_url"),
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
    pytest.mark.long("iceberg"),
]

COMMITS = 6
START_S = 120.0
FOUR_DAYS_S = 4 * 86_400
"""Orphans are deleted once they are three days old."""
EVERYTHING = {"orphans": True, "retain_hours": 0, "force": True}


@pytest.fixture
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RestLake]:
    with rest_lake(tmp_path, request.param) as running:
        yield running


@pytest.fixture
def stack(tmp_path: Path, redis_server: RedisServer, lake: RestLake) -> Iterator[Stack]:
    services = {
        "LAKEWRIGHT_CATALOGS": json.dumps({"lake": lake.options}),
        "LAKEWRIGHT_ROOTS": "catalog://lake",
        "LAKEWRIGHT_DISCOVER": "active",
        "LAKEWRIGHT_POLICY": "target-file-size=64kb,min-input-files=2,fan-in=2",
    }
    made = Stack(tmp_path, redis_server, services)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("lake", "point", "rewrites"),
    [(OURS, "files_written", 0), (ICEBERGS, "files_written", 0), (ICEBERGS, "committed", 1)],
    indirect=["lake"],
)
def test_an_actor_killed_around_the_commit_leaves_one_commit_and_a_vacuum_deletes_its_orphan(
    stack: Stack, lake: RestLake, point: str, rewrites: int
) -> None:
    lake.make(COMMITS)
    rows = lake.ids()
    stack.decider()
    stack.post("/v1/tables", {"location": "catalog://lake/db/t", "name": "t"}).raise_for_status()
    first = stack.actor(pause_at=point)
    until(f"the actor is at {point}", lambda: first.alive and stack.paused(), seconds=START_S)
    assert (lake.rewrites(), lake.data_files()) == (rewrites, COMMITS + 1)
    first.kill()
    stack.actor()
    until("another actor did the job", lambda: states(stack) == {"finished"}, seconds=START_S)
    assert (lake.ids(), lake.files(), lake.rewrites()) == (rows, 1, 1)
    orphans = 1 - rewrites
    assert lake.data_files() == COMMITS + 1 + orphans, "what a killed actor wrote is an orphan, and nothing else is"
    until("the decider counts the output alone", lambda: files(stack) == 1, seconds=30)
    history = stack.get("/v1/tables/t/optimizations")["optimizations"]
    assert [one["input"]["num_files"] for one in history] == [COMMITS]

    four_days_ago = time.time() - FOUR_DAYS_S
    before = lake.data_paths()
    for file in before:
        os.utime(file, (four_days_ago, four_days_ago))
    planned = (
        stack.post("/v1/tables/t/actions/vacuum", {**EVERYTHING, "dry_run": True})
        .raise_for_status()
        .json()["deletions"]
    )
    data = {one["name"]: one["orphan"] for one in planned if one["name"].startswith("data/")}
    assert sorted(data.values()) == [False] * COMMITS + [True] * orphans
    stack.post("/v1/tables/t/actions/vacuum", EVERYTHING).raise_for_status()
    until("the output alone is left", lambda: lake.data_files() == 1, seconds=START_S)
    gone = {file.relative_to(file.parents[1]).as_posix() for file in before - lake.data_paths()}
    assert gone == set(data), "the vacuum deletes what its dry run showed"
    assert (lake.ids(), lake.files()) == (rows, 1)


@pytest.mark.parametrize("lake", [OURS], indirect=True)
def test_an_actor_killed_while_it_rewrites_manifests_leaves_each_file_listed_once(stack: Stack, lake: RestLake) -> None:
    lake.make(COMMITS)
    rows = lake.ids()
    stack.decider(LAKEWRIGHT_POLICY="enabled=false")
    stack.post("/v1/tables", {"location": "catalog://lake/db/t", "name": "t"}).raise_for_status()
    first = stack.actor(pause_at="rewrite_manifests:rewriting")
    stack.post("/v1/tables/t/actions/rewrite-manifests", {}).raise_for_status()
    until("the actor is at the manifests", lambda: first.alive and stack.paused(), seconds=START_S)
    first.kill()
    stack.actor()
    until("another actor did the job", lambda: states(stack) == {"finished"}, seconds=START_S)
    assert (lake.ids(), lake.files(), lake.rewrites()) == (rows, COMMITS, 1)
    assert lake.catalog.load_table("db.t").inspect.manifests().num_rows == 1


@pytest.mark.parametrize(
    ("lake", "phase"), [(OURS, "deleting"), (OURS, "committed"), (OURS, "taking_out")], indirect=["lake"]
)
def test_an_actor_killed_while_it_deletes_rows_by_their_age_leaves_exactly_those_that_are_not_over(
    stack: Stack, lake: RestLake, phase: str
) -> None:
    lake.make_aged({"lakewright.delete-rows-after": "30 days of at, rows"}, [(60, 61), (60, 1), (1, 2), (45, 2, 3)])
    kept, before = [11, 20, 21, 31, 32], lake.ids()
    stack.decider(LAKEWRIGHT_POLICY="enabled=false")
    stack.post("/v1/tables", {"location": "catalog://lake/db/t", "name": "t"}).raise_for_status()
    first = stack.actor(pause_at=f"expire:{phase}")
    stack.post("/v1/tables/t/actions/expire", {}).raise_for_status()
    until("the actor deletes rows", lambda: first.alive and stack.paused(), seconds=START_S)
    first.kill()
    assert set(kept) <= set(lake.ids()) <= set(before)
    stack.actor()
    until("another actor did the job", lambda: states(stack) == {"finished"}, seconds=START_S)
    assert lake.ids() == kept
    until("the decider counts the files that are left", lambda: files(stack) == lake.files() == 3, seconds=30)


def states(stack: Stack) -> set[str]:
    """Return the states of all jobs."""
    return {one["state"] for one in stack.get("/v1/jobs")["jobs"]}


def files(stack: Stack) -> int:
    """Return how many files the decider counts."""
    return sum(one["layout"]["files"] for one in stack.get("/v1/tables/t/partitions")["partitions"])
