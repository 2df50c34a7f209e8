"""Rewrites run on executors that were sent everything, and one that is killed costs a second attempt of its task."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support import spark_events, writers
from tests.support.large_files import contents, everything, large_table, left_behind
from tests.support.spark_world import World
from tests.support.stack import Process
from tests.support.waiting import until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.long("spark-cluster"),
]

WAYS = {"copied": "auto", "encoded": "never"}
"""Values of `lakewright.row-group-copy`, by how rows are written then."""

LARGE_FILES = {"copied": 20, "encoded": 8}
"""Files of 36 MB, so many that the executor that writes them is found before it has finished."""


@pytest.fixture(scope="module")
def one_actor(world: World) -> Iterator[Process]:
    """Run one actor for all tests of this file."""
    kept = {"spark.dynamicAllocation.executorIdleTimeout": "600s"}  # Starting one takes longer than most of its tasks.
    with world.actor("one", options=kept) as process:
        yield process


@pytest.mark.usefixtures("one_actor")
@pytest.mark.parametrize("way", WAYS)
def test_row_groups_are_copied_and_rows_encoded_on_executors(world: World, way: str) -> None:
    rng, table = random.Random(5), world.stack.tables / f"small-{way}"
    writers.create(table, **{"lakewright.row-group-copy": WAYS[way]})
    writers.append_small_files(table, rng, files=8)
    before = writers.found(table)
    world.register(table)
    until("the table is compacted", lambda: world.is_done(table), seconds=120)
    assert writers.found(table) == before
    (measured, *_) = [run["measured"] for run in world.runs(table)]
    assert (measured.get("groups_copied", 0) > 0) is (way == "copied"), measured
    assert (measured.get("encoded_switched_off", 0) > 0) is (way == "encoded"), measured
    for run in world.runs(table):
        ended = spark_events.of_job(world.events, run["id"])
        assert ended, "no task carries the job's tag"
        assert "driver" not in {one.executor for one in ended}
        assert {one.reason for one in ended} == {"Success"}


def test_workers_were_given_nothing_but_spark(world: World, one_actor: Process) -> None:
    """The folders of jars and of the actor are empty to executors, and yet the exact rewrite passed its self-test."""
    for executor in world.cluster.executors():
        for folder in world.cluster.hidden:
            assert not list(Path(f"/proc/{executor.pid}/root{folder}").iterdir())
    assert "self_test_passed" in one_actor.log.read_text()


@pytest.mark.usefixtures("one_actor")
@pytest.mark.parametrize("way", WAYS)
def test_an_executor_killed_in_a_rewrite_costs_a_second_attempt_and_leaves_no_file(world: World, way: str) -> None:
    configuration = {"lakewright.row-group-copy": WAYS[way], "lakewright.target-file-size": "1gb"}
    table = large_table(world.stack.tables / f"large-{way}", files=LARGE_FILES[way], configuration=configuration).path
    before, rows = everything(table), contents(table)
    world.register(table)
    writing = until("an executor writes", lambda: world.cluster.executor_that_writes(table), seconds=120)
    begun = everything(table) - before
    writing.kill()
    until("the table is compacted", lambda: world.is_done(table), seconds=240)
    (run,) = world.runs(table)
    assert (run["result"], run["attempts"]) == ("done", 0), run
    reasons = [one.reason for one in spark_events.of_job(world.events, run["id"])]
    assert "ExecutorLostFailure" in reasons, "no task was lost: this shows nothing"
    live = {uri.rpartition("/")[2] for uri in DeltaTable(str(table)).file_uris()}
    assert begun
    assert not begun & live, "the file was complete when the executor was killed: this shows nothing"
    assert contents(table) == rows
    assert left_behind(table, before) == []
