"""Kill -9 of the actor in each phase of each job on a whole Delta table: the next actor ends it, and no row differs.

The next actor then stops in the phase that follows, so that each start of an actor serves two phases.
"""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.qbeast_data import qbeast_data
from tests.support.stack import Stack
from tests.support.waiting import until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(900),
]

PHASES = ("deduplicate:comparing", "index:files_written", "expire:committed", "set_properties:altering")
"""Two that follow each other are of different kinds: the next actor ends the first job before it stops in its own."""

FURTHER = (
    "index:describing",
    "expire:deleting",
    "cluster:clustering",
    "index:optimizing",
    "expire:taking_out",
    "checkpoint:writing",
    "deduplicate:committed",
    "index:committed",
    "cluster:committed",
    "checkpoint:cleaning",
)
"""Each phase starts an actor, which takes a busy machine two minutes: these are tried nightly."""

COMMITS, ROWS = 6, 50
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("day", pa.string())])
AGED = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
NOW = datetime.now(UTC).replace(microsecond=0)
CLUSTERED = (
    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering", "domainMetadata"]}},
    {
        "domainMetadata": {
            "domain": "delta.clustering",
            "configuration": json.dumps({"clusteringColumns": [["id"]], "domainName": "delta.clustering"}),
            "removed": False,
        }
    },
)
PROPERTIES = {
    "expire": {"lakewright.delete-rows-after": "30 days of at, rows"},
    "deduplicate": {"lakewright.primary-key": "id, day", "lakewright.sequence-by": "n"},
    "cluster": {"lakewright.cluster": "on"},
    "checkpoint": {},
    "set_properties": {},
}
"""By kind, what a table says of itself; nothing but the job that a test requests may run on it."""

CHANGE = {"lakewright.weight": "2"}

INDEXED = qbeast_data() / "qbeast_tables" / "two"

Rows = list[tuple[Any, ...]]


def make(path: Path, kind: str) -> Rows:
    """Make a table whose commits each write every key again, and return its rows."""
    if kind == "index":
        return make_indexed(path)
    schema = AGED if kind == "expire" else SCHEMA
    DeltaTable.create(
        path,
        schema,
        partition_by=["day"] if kind == "deduplicate" else None,
        configuration={"lakewright.enabled": "false", **PROPERTIES[kind]},
        raise_if_key_not_exists=False,
    )
    for commit in range(COMMITS):
        # Every other file is over as a whole, the others hold as many rows that are.
        ages = [60 if commit % 2 or number % 2 else 1 for number in range(ROWS)]
        moments = [NOW - timedelta(days=age) for age in ages]
        days = [f"2026-01-{1 + number % 2:02}" for number in range(ROWS)]
        time = {"at": moments} if kind == "expire" else {"day": days}
        rows = pa.table({"id": list(range(ROWS)), "n": [commit] * ROWS, **time}, schema=schema)
        write_deltalake(path, rows, mode="append")
    if kind == "cluster":
        log_entry = path / "_delta_log" / f"{COMMITS + 1:020}.json"
        log_entry.write_text("".join(f"{json.dumps(action)}\n" for action in CLUSTERED))
    return found(path)


def make_indexed(path: Path) -> Rows:
    """Make a table with an index whose newest file is not indexed, and needs a revision that is not there yet."""
    shutil.copytree(INDEXED, path)
    own = {"lakewright.enabled": "false", "lakewright.index": "on"}
    DeltaTable(path).alter.set_table_properties(own, raise_if_not_exists=False)
    rows = pa.table(DeltaTable(path).to_pyarrow_table())
    wider = rows.set_column(1, "double", pc.multiply(rows["double"], 3.0))
    write_deltalake(path, wider, mode="append")
    return found(path)


def found(path: Path) -> Rows:
    """Return all rows as another reader finds them."""
    rows = pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def newest(rows: Rows) -> Rows:
    """Return the newest row of each key."""
    return sorted({row[0]: row for row in sorted(rows)}.values(), key=repr)


def left_by(kind: str, rows: Rows) -> Rows:
    """Return the rows that a job leaves."""
    if kind == "expire":
        return [row for row in rows if NOW - row[2] < timedelta(days=30)]
    return newest(rows) if kind == "deduplicate" else rows


@pytest.mark.parametrize(
    "phases",
    [
        pytest.param(PHASES, marks=pytest.mark.long("crashes"), id="in turn"),
        pytest.param(FURTHER, marks=pytest.mark.long("care"), id="further"),
    ],
)
def test_whatever_phase_kills_an_actor_the_next_one_ends_the_job_and_no_row_differs(
    stack: Stack, phases: tuple[str, ...]
) -> None:
    with LiveDecider(decider_settings(stack.redis.url), port=stack.port) as decider:
        kill_in_each_phase(stack, decider, phases)


def kill_in_each_phase(stack: Stack, decider: LiveDecider, phases: tuple[str, ...]) -> None:
    actor = stack.actor(pause_at=phases[0])
    for phase, following in zip(phases, (*phases[1:], None), strict=True):
        kind = phase.partition(":")[0]
        table = stack.tables / phase.replace(":", "_")
        before = make(table, kind)
        after = left_by(kind, before)
        decider.register(table, table.name)
        request(decider, table.name, kind)
        until(f"an actor is at {phase}", stack.paused, seconds=120)
        actor.kill()
        assert set(after) <= set(found(table)) <= set(before), phase

        stack.pause_file.unlink()
        actor = stack.actor(pause_at=following)
        until(f"another actor ended {phase}", lambda kind=kind, table=table: ended(stack, kind, table), seconds=120)
        assert found(table) == after, phase
        if kind == "set_properties":
            assert DeltaTable(table).metadata().configuration.items() >= CHANGE.items()
        needed = DeltaTable(table).file_uris()
        assert all(Path(file.removeprefix("file://")).exists() for file in needed), phase


def request(decider: LiveDecider, name: str, kind: str) -> None:
    """Request a job; an advice that is applied sets properties, and nothing else does."""
    if kind != "set_properties":
        decider.post(f"/v1/tables/{name}/actions/{kind}", {}).raise_for_status()
        return
    table = decider.run(decider.services.tables.registry.find(name))
    assert table is not None
    decider.run(decider.services.requests.table_requests.set_properties(table, CHANGE))


def ended(stack: Stack, kind: str, table: Path) -> bool:
    """Return whether the job of a table is done, after one run that a kill ended."""
    jobs = stack.get("/v1/jobs", table=table.name, state="finished")["jobs"]
    return sorted(job["result"] for job in jobs if job["kind"] == kind) == ["done", "expired"]
