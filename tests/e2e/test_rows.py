"""The promise: whatever writers, crashes and restarts do, no row is lost or doubled, and the state stays exact."""

import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support import writers
from tests.support.outside import assert_state_equals_files, assert_stays_at_rest, is_at_rest, own_commits
from tests.support.stack import Stack
from tests.support.waiting import until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
    pytest.mark.long("crashes"),
]

SECONDS = 30
"""Of writing; `make soak` goes on for twenty minutes."""
REWRITE_S = 60
WRITERS = ("appender-0", "appender-1", "changer")


def start_writers(stack: Stack, table: Path, seed: int) -> tuple[list[Path], Path]:
    """Start two appenders and one process that deletes and merges; return their files of notes."""
    stop, url = stack.folder / "stop", f"{stack.url}/v1/events"
    appended = [stack.folder / "appended-1", stack.folder / "appended-2"]
    changed = stack.folder / "changed"
    common = ["--location", str(table), "--stop", str(stop), "--events-url", url]
    for number, notes in enumerate(appended):
        own = ["--notes", str(notes), "--seed", str(seed + number), "--first-id", str(number * 10**9)]
        stack.start(f"appender-{number}", ["-m", "tests.support.writers", "append", *common, *own])
    own = ["--notes", str(changed), "--seed", str(seed + 2), "--appended", *map(str, appended)]
    stack.start("changer", ["-m", "tests.support.writers", "change", *common, *own])
    return appended, changed


def test_rows_survive_writers_and_crashes_while_the_table_is_compacted(stack: Stack) -> None:
    """Two appenders and one process of DELETE and MERGE; kill -9 of the decider and of Redis in the middle."""
    seed = 20_260
    print(f"seed {seed}")
    table = stack.tables / "events"
    writers.create(table)
    decider = stack.decider(LAKEWRIGHT_SWEEP_S="2")
    stack.post("/v1/tables", {"location": table.as_uri(), "name": "db.events"}).raise_for_status()
    actor = stack.actor()
    until("the actor takes jobs", lambda: (stack.folder / "data" / "actor.ready").exists(), seconds=120)
    started = time.monotonic()
    appended, changed = start_writers(stack, table, seed)

    until("a first rewrite", lambda: own_commits(table), seconds=REWRITE_S)
    decider.kill()
    stack.decider(LAKEWRIGHT_SWEEP_S="2")
    after_decider = len(own_commits(table))
    until("a rewrite after the decider was killed", lambda: len(own_commits(table)) > after_decider, seconds=REWRITE_S)
    stack.redis.kill()
    stack.redis.restart()
    after_redis = len(own_commits(table))
    until("a rewrite after Redis was killed", lambda: len(own_commits(table)) > after_redis, seconds=REWRITE_S)
    until("half a minute of writing", lambda: time.monotonic() - started > SECONDS, seconds=REWRITE_S)
    (stack.folder / "stop").touch()
    until("the writers ended", lambda: not any(p.alive for p in stack.processes if p.name in WRITERS), seconds=60)
    until("all work done", lambda: is_at_rest(stack, "db.events", table), seconds=120)

    rows, by_id = writers.found(table)
    expected = writers.replay(appended, changed)
    assert rows == len(by_id), "a row is there twice"
    assert by_id == expected
    assert changed.read_text().count("deleted") > 0
    assert changed.read_text().count("merged") > 0
    ours = own_commits(table)
    assert len({(commit["job"], commit["token"], commit["round"]) for commit in ours}) == len(ours)
    table_id = stack.get("/v1/tables/db.events")["id"]
    assert_state_equals_files(stack, table_id, table)
    assert_stays_at_rest(stack, "db.events", table)

    assert actor.terminate() == 0
    stack.close()
    stack.redis.kill()
    stack.redis.restart()
    stack.decider(LAKEWRIGHT_SWEEP_S="2")  # Without an actor: a job would stay in the queue, and be seen.
    assert_stays_at_rest(stack, "db.events", table)
    assert_state_equals_files(stack, table_id, table)
    print(f"{rows} rows, {len(ours)} rewrites, {DeltaTable(str(table)).version()} commits")
