"""All actions on one table at random, with two writers: rows equal the replay, the state a count, history can be read.

The retention is seconds long, so that a vacuum deletes while everything else runs; a service under real load has the
same races, only rarer. A third writer appends older rows of keys that are there, each of which is removed once.
"""

import asyncio
import os
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from decider.storage.object_reads import ReadMeter
from decider.store.tables.table_state import TableState
from shared.layout.commit_metadata import decode
from shared.layout.partition_stats import PartitionStats
from shared.policy.policy import KIB, Policy
from shared.queue.keys import partitions, table_state
from tests.support import writers
from tests.support.aged_table import commit_file, versions
from tests.support.delta_tables import open_log
from tests.support.memory_log import count_live_files
from tests.support.outside import is_at_rest
from tests.support.stack import Stack, commits_of
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.redis]

NAME = "db.all"
SECONDS = float(os.environ.get("LAKEWRIGHT_CARE_SECONDS", "120"))
RETAIN_S = 30
"""Long enough for a reader that takes a version to read it, and short against the test."""

PROPERTIES = {
    "lakewright.target-file-size": "64kb",
    "lakewright.full-file-threshold": "0.25",
    "lakewright.min-input-files": "2",
    "lakewright.sort-by": "value",
    "lakewright.max-depth": "2",
    "lakewright.vacuum": "on",
    "lakewright.vacuum-every": "5s",
    "lakewright.min-retain": f"{RETAIN_S} seconds",
    "lakewright.checkpoint-every": "20",
    "lakewright.primary-key": "id, day",
    "lakewright.sequence-by": "value",
    "lakewright.deduplicate-every": "10s",
    "delta.deletedFileRetentionDuration": f"interval {RETAIN_S} seconds",
}
OLDER = ""
"""The value of an older row: less than that of each other one."""

# Values are random, so the full files of each merge overlap with those of the others, and are sorted again.
POLICY = Policy(target_bytes=64 * KIB, full_file_threshold=Fraction(1, 4), min_input_files=2, sort_by="value")


def requests(stack: Stack) -> list[Callable[[], int]]:
    """What a person may request, each as a call that returns the status of its answer."""
    url = f"/v1/tables/{NAME}"
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("optimize", {"force": True}),
        ("optimize", {"actions": ["sort"], "force": True}),
        ("vacuum", {}),
        ("vacuum", {"orphans": True}),
        ("vacuum", {"dry_run": True, "orphans": True}),
        ("checkpoint", {}),
        ("reclaim", {"confirm": NAME, "retain_hours": None}),
        ("deduplicate", {}),
        ("deduplicate", {"dry_run": True}),
    ]
    return [lambda what=what, body=body: stack.post(f"{url}/actions/{what}", body).status_code for what, body in bodies]


def read_a_version_inside_the_retention(table: Path, dice: random.Random) -> None:
    """Read a version that was replaced a moment ago; the whole of it must be there."""
    newest = versions(table)[-1]
    chosen = max(0, newest - dice.randrange(10))
    replaced = commit_file(table, chosen + 1)
    if chosen < newest and time.time() - replaced.stat().st_mtime > RETAIN_S / 2:
        chosen = newest
    rows = DeltaTable(table, version=chosen).to_pyarrow_table()
    ids = [key for key, value in zip(rows["id"].to_pylist(), rows["value"].to_pylist(), strict=True) if value != OLDER]
    assert len(ids) == len(set(ids)), f"version {chosen} has a row twice"


def append_older(table: Path, appended: Path, dice: random.Random) -> int:
    """Append older rows of some keys that no other writer changes; returns how many, 0 where the table refused them."""
    there = writers.replay([appended])
    keys = [(key, day) for key, (day, _) in there.items() if day != writers.CHANGED_DAY]
    chosen = dice.sample(keys, min(10, len(keys)))
    rows = {"id": [key for key, _ in chosen], "day": [day for _, day in chosen], "value": [OLDER] * len(chosen)}
    try:
        if chosen:
            write_deltalake(table, pa.table(rows, schema=writers.SCHEMA), mode="append")
    except CommitFailedError as refused:
        print(f"refused: {refused}")
        return 0
    return len(chosen)


def test_all_actions_at_random_with_two_writers_lose_and_double_no_row(stack: Stack) -> None:
    seed = int(os.environ.get("LAKEWRIGHT_CARE_SEED", secrets.randbelow(10**6)))
    print(f"\nseed {seed}, {SECONDS:g} s")
    dice = random.Random(seed)
    table = stack.tables / "all"
    writers.create(table, **PROPERTIES)
    stack.decider(LAKEWRIGHT_SWEEP_S="1")
    stack.post("/v1/tables", {"location": table.as_uri(), "name": NAME}).raise_for_status()
    stack.actor()
    stop = stack.folder / "stop"
    assert stack.get(f"/v1/tables/{NAME}")["policy"]["issues"] == []
    until("the actor is there", lambda: stack.get("/v1/actors")["actors"], seconds=120)
    notes = {kind: stack.folder / f"{kind}.notes" for kind in ("append", "change")}
    writing = [
        stack.start(
            kind,
            [
                *("-m", "tests.support.writers", kind, "--location", str(table), "--notes", str(notes[kind])),
                *("--stop", str(stop), "--events-url", f"{stack.url}/v1/events", "--seed", str(seed)),
                *(("--appended", str(notes["append"])) if kind == "change" else ()),
            ],
        )
        for kind in notes
    ]
    calls, answers, reads, older = requests(stack), Counter[int](), 0, 0
    begun_s = time.monotonic()
    while time.monotonic() - begun_s < SECONDS:
        answers[dice.choice(calls)()] += 1
        read_a_version_inside_the_retention(table, dice)
        reads += 1
        older += append_older(table, notes["append"], dice) if dice.random() < 0.5 else 0
        threading.Event().wait(dice.uniform(0.1, 1.0))
    stop.touch()
    for process in writing:
        assert process.popen.wait(scaled(60)) == 0
    until("all work is done", lambda: is_at_rest(stack, NAME, table), seconds=240)
    # What was appended after the last removal is removed on request.
    assert stack.post(f"/v1/tables/{NAME}/actions/deduplicate", {}).status_code == 202
    until("older rows are gone", lambda: not count_older(table) and is_at_rest(stack, NAME, table), seconds=240)
    number, rows = writers.found(table)
    assert (number, rows) == (len(rows), writers.replay([notes["append"]], notes["change"]))
    assert set(answers) <= {200, 202, 409}, answers
    funnel = stack.get("/v1/status")["funnel"]
    assert not funnel.get("jobs_failed"), funnel
    operations = Counter(one["operation"] for one in DeltaTable(table).history())
    jobs = Counter(job["kind"] for job in stack.get("/v1/jobs", state="finished", limit=100)["jobs"])
    marks = (
        decode(action["commitInfo"].get("userMetadata"))
        for commit in commits_of(table)
        for action in commit
        if "commitInfo" in action
    )
    modes = Counter(mark.mode for mark in marks if mark is not None)
    print(f"rows {number}; commits {dict(operations)}, of ours {dict(modes)}")
    print(f"jobs {dict(jobs)}; requests {sum(answers.values())}; reads {reads}")
    print(
        {name: count for name, count in sorted(funnel.items()) if name.startswith(("vacuum", "check", "jobs", "dedup"))}
    )
    assert {"compact", "sort", "vacuum", "checkpoint", "deduplicate"} <= jobs.keys()
    assert modes["sort"], "files were sorted again, and not only while they were merged"
    assert funnel["vacuum_files_deleted"] > 0
    funnel = stack.get("/v1/status")["funnel"]
    assert (older > 0, funnel["deduplicate_rows_removed"]) == (True, older)
    _assert_state_is_a_count_of_live_files(stack, table)


def count_older(table: Path) -> int:
    return DeltaTable(table).to_pyarrow_table()["value"].to_pylist().count(OLDER)


def _assert_state_is_a_count_of_live_files(stack: Stack, table: Path) -> None:
    """Compare each stored partition with a count of the live files of the newest version, integer for integer.

    The files are counted at the size levels that the decider has fitted to what the writers append.
    """
    identifier, redis = stack.get(f"/v1/tables/{NAME}")["id"], stack.redis.client()
    raw = redis.hgetall(partitions("default", identifier))
    fit = TableState.decode(redis.hgetall(table_state("default", identifier))).level_fit
    print(f"levels fitted to files of {fit.typical_file_bytes:,} bytes")
    stored = {partition.decode(): PartitionStats.decode(text.decode()) for partition, text in raw.items()}
    snapshot = asyncio.run(open_log(table.as_uri(), meter=ReadMeter()).snapshot())
    counted = count_live_files(snapshot.files, POLICY.fitted_to(fit.typical_file_bytes))
    assert {partition: plain(state) for partition, state in stored.items()} == {
        partition: plain(state) for partition, state in counted.items()
    }
    for partition, state in counted.items():
        for (_, known), (_, live) in zip(stored[partition].depths, state.depths, strict=True):
            assert known.at_shift(live.shift) == live.at_shift(known.shift)


def plain(state: PartitionStats) -> tuple[PartitionStats, list[int]]:
    """A state without the resolution of its depths, which only ever becomes coarser."""
    return replace(state, depths=()), [level for level, _ in state.depths]
