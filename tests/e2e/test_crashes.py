"""Kill -9 of the actor at the two moments that matter: just before and just after its commit became visible."""

import random

import pytest
from deltalake import write_deltalake

from tests.support import writers
from tests.support.outside import assert_state_equals_files, is_at_rest, own_commits
from tests.support.stack import Stack
from tests.support.waiting import until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(300),
    pytest.mark.long("crashes"),
]


def test_an_actor_killed_around_its_commit_neither_loses_nor_repeats_it(stack: Stack) -> None:
    """The first actor dies with its files written, the second right after its commit; the third only reports it."""
    rng = random.Random(5)
    table = stack.tables / "crashes"
    writers.create(table)
    stack.decider(LAKEWRIGHT_SWEEP_S="2")
    stack.post("/v1/tables", {"location": table.as_uri(), "name": "db.crashes"}).raise_for_status()
    for number in range(8):
        rows = writers.batch(rng, number * 1000, 200).set_column(1, "day", [["2026-01-01"] * 200])
        write_deltalake(table, rows, mode="append")
    before = writers.found(table)
    until("a job waits", lambda: stack.get("/v1/status")["queue"]["depth"]["queued"], seconds=60)

    first = stack.actor(pause_at="files_written")
    until("the first actor has written its files", stack.paused, seconds=120)
    first.kill()
    assert not own_commits(table)
    assert writers.found(table) == before

    stack.pause_file.unlink()
    second = stack.actor(pause_at="committed")
    until("the second actor has committed", stack.paused, seconds=120)
    second.kill()
    assert len(own_commits(table)) == 1

    stack.actor()
    until("all work done", lambda: is_at_rest(stack, "db.crashes", table), seconds=120)
    ours = own_commits(table)
    assert len(ours) == 1, "the commit was done again"
    assert writers.found(table) == before
    verdicts = sorted(run["result"] for run in stack.get("/v1/jobs", state="finished")["jobs"])
    assert verdicts == ["done", "expired", "expired"], "what the killed actors began is in the history, too"
    assert stack.get("/v1/status")["funnel"]["commits_recovered"] == 1
    assert_state_equals_files(stack, stack.get("/v1/tables/db.crashes")["id"], table)
