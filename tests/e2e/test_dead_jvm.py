"""A job under which the JVM dies: people see the cause, and after the third death the job is set aside."""

import os
import random
import uuid

import pytest
from deltalake import write_deltalake

from actor.queue_executor import SyncQueueExecutor, connect
from shared.queue import commands
from shared.queue.limits import CRASHES_UNTIL_EXCLUSIVE
from shared.queue.model import RunResult
from tests.support import writers
from tests.support.outside import own_commits
from tests.support.queue_bench import end_of
from tests.support.stack import Stack, lakewright
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(540),
    pytest.mark.long("crashes"),
]

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
    lakewright("queue", "set", "backoff-base=1ms", "backoff-cap=1ms", env=cli).check_returncode()

    shows_cause(stack, job, deaths=1, how="kill", cause="SIGKILL (9)")
    until("the job is ready", lambda: crash_unseen(stack))
    shows_cause(stack, job, deaths=3, how="oom", cause="OutOfMemoryError: Java heap space")

    for command, words in ((["jobs", "show", job], "OutOfMemoryError"), (["actors", "list"], "died")):
        reported = lakewright(*command, env=cli | {"COLUMNS": "2000"})
        assert words in reported.stdout
    assert {one["state"] for one in stack.get("/v1/actors")["actors"]} == {"died"}
    assert not own_commits(table)
    assert writers.found(table) == before


def shows_cause(stack: Stack, job: str, *, deaths: int, how: str, cause: str) -> None:
    """Run an actor whose JVM dies, and search for the cause in the job and in the actor's log."""
    actor = stack.start("actor", ["-m", "tests.support.dying_actor", how])
    assert actor.popen.wait(scaled(START_S)) == 1, "an actor without an engine ends, and its supervisor starts another"
    shown = stack.get(f"/v1/jobs/{job}")["job"]
    is_last = deaths > CRASHES_UNTIL_EXCLUSIVE
    assert (shown["state"], shown["engine_crashes"]) == ("quarantined" if is_last else "delayed", deaths)
    assert cause in shown["error"]
    stated = actor.log.read_text()
    assert '"event": "jvm_died"' in stated
    assert cause in stated
    assert ('"event": "job_isolated"' in stated) == is_last
    if how == "oom":
        assert "Terminating due to java.lang.OutOfMemoryError" in stated, "the end of what the JVM printed is kept"


def crash_unseen(stack: Stack) -> bool:
    """Let another actor's engine die under the job, without the time that starting a JVM takes."""
    queue = SyncQueueExecutor(connect(stack.redis.url), "default")
    claims = queue.run(commands.claim("default", worker="x", nonce=uuid.uuid4().hex, slots=1, lease_ms=60_000))
    for claim in claims:
        died = {"cost_bytes": 0, "seen_version": -1, "error": "it died elsewhere"}
        queue.run(end_of(claim, RunResult.CRASHED, worker="x", **died))
    return bool(claims)
