"""A job under which the JVM dies: people see the cause, and after the third death the job is set aside."""

import os
import random
import subprocess
import sys

import pytest
from deltalake import write_deltalake

from tests.support import writers
from tests.support.outside import is_at_rest, own_commits
from tests.support.stack import ROOT, Stack, until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.redis, pytest.mark.timeout(600)]

START_S = 240
"""Longest time for Spark to start on a busy machine."""


def test_a_job_that_kills_its_jvm_says_why_runs_alone_and_is_set_aside(stack: Stack) -> None:
    rng = random.Random(6)
    table = stack.tables / "deadly"
    writers.create(table)
    stack.decider(LAKEWRIGHT_SWEEP_S="2")
    stack.post("/v1/tables", {"location": table.as_uri(), "name": "db.deadly"}).raise_for_status()
    for number in range(8):
        rows = writers.batch(rng, number * 1000, 200).set_column(1, "day", [["2026-01-01"] * 200])
        write_deltalake(table, rows, mode="append")
    before = writers.found(table)
    until("a job waits", lambda: stack.get("/v1/status")["queue"]["depth"]["queued"])
    (waiting,) = stack.get("/v1/jobs", state="queued")["jobs"]
    job, cli = waiting["id"], {**os.environ, "LAKEWRIGHT_URL": stack.url}
    subprocess.run(
        [sys.executable, "-m", "services.cli", "queue", "set", "backoff-base=1ms", "backoff-cap=1ms"],
        cwd=ROOT, env=cli, check=True,
    )  # fmt: skip

    for deaths, (how, cause) in enumerate(
        [("kill", "SIGKILL (9)"), ("oom", "OutOfMemoryError"), ("kill", "SIGKILL")], 1
    ):
        actor = stack.start("actor", ["-m", "tests.support.dying_actor", how])
        assert actor.popen.wait(START_S) == 1, "an actor without an engine ends, and its supervisor starts another"
        shown = stack.get(f"/v1/jobs/{job}")["job"]
        assert (shown["state"], shown["deaths"]) == ("quarantined" if deaths == 3 else "delayed", deaths)
        assert cause in shown["error"]
        said = actor.log.read_text()
        assert '"event": "jvm_died"' in said
        assert cause in said
        assert ('"event": "job_runs_alone"' in said) == (deaths == 3)
        if how == "oom":
            assert "Terminating due to java.lang.OutOfMemoryError" in said, "the end of what the JVM printed is kept"

    for command, words in ((["jobs", "show", job], "SIGKILL"), (["actors", "list"], "died")):
        told = subprocess.run(
            [sys.executable, "-m", "services.cli", *command],
            cwd=ROOT, env=cli | {"COLUMNS": "2000"}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert words in told.stdout
    assert {one["state"] for one in stack.get("/v1/actors")["actors"]} == {"died"}
    assert not own_commits(table)
    assert writers.found(table) == before

    stack.post(f"/v1/jobs/{job}/requeue", {}).raise_for_status()
    stack.actor()
    until("all work done", lambda: is_at_rest(stack, "db.deadly", table), START_S)
    assert writers.found(table) == before
    assert len(own_commits(table)) == 1
