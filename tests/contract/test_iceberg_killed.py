"""A real actor killed with kill -9 around the commit to an Iceberg table: one commit, and not a row lost or doubled."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.iceberg_rest_lake import RestLake, rest_lake
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


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[RestLake]:
    with rest_lake(tmp_path) as running:
        yield running


@pytest.fixture
def stack(tmp_path: Path, redis_server: RedisServer, lake: RestLake) -> Iterator[Stack]:
    services = {
        "LAKEWRIGHT_CATALOGS": json.dumps({"lake": lake.options}),
        "LAKEWRIGHT_ROOTS": "catalog://lake",
        "LAKEWRIGHT_POLICY": "target-file-size=64kb,min-input-files=2,fan-in=2",
    }
    made = Stack(tmp_path, redis_server, services)
    yield made
    made.close()


@pytest.mark.parametrize(("point", "rewrites"), [("files_written", 0), ("committed", 1)])
def test_an_actor_killed_around_the_commit_leaves_one_commit(
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


def states(stack: Stack) -> set[str]:
    """Return the states of all jobs."""
    return {one["state"] for one in stack.get("/v1/jobs")["jobs"]}


def files(stack: Stack) -> int:
    """Return how many files the decider counts."""
    return sum(one["layout"]["files"] for one in stack.get("/v1/tables/t/partitions")["partitions"])
