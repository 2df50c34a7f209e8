"""A finished job refreshes its table at once: no one waits for the sweep to see what a rewrite did."""

import json
from pathlib import Path

import pytest

from actor.queue_executor import SyncQueueExecutor, connect
from shared.queue import commands
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.queue_bench import end_of
from tests.support.waiting import until

pytestmark = pytest.mark.redis


def run_one_job(queue: SyncQueueExecutor, table: WrittenTable, *, commits: int) -> None:
    """Claim the job that waits, commit as its rewrite would, and report it."""
    claims = queue.run(commands.claim("default", worker="w", nonce="n", slots=1, lease_ms=60_000))
    assert len(claims) == 1
    before = table.version
    table.append(commits)
    report = {"versions": list(range(before + 1, table.version + 1)), "recovered_version": None}
    queue.run(end_of(claims[0], seen_version=table.version, result=json.dumps(report)))


def test_after_a_job_the_table_shows_the_new_version_without_event_or_sweep(
    decider: LiveDecider, redis_url: str, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    table.append(11)
    name = decider.register(table.path, "orders")
    decider.run(decider.task("finished_runs").run_once())  # From here on it reads, as it does within a second.
    run_one_job(SyncQueueExecutor(connect(redis_url), "default"), table, commits=1)

    def shown() -> int:
        return int(decider.get(f"/v1/tables/{name}")["state"]["version"])

    until("the rewrite is shown", lambda: shown() == table.version)


def test_a_job_that_committed_nothing_costs_no_read(decider: LiveDecider, redis_url: str, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    table.append(11)
    decider.register(table.path, "orders")
    decider.run(decider.task("finished_runs").run_once())
    reads = decider.reads()
    run_one_job(SyncQueueExecutor(connect(redis_url), "default"), table, commits=0)
    decider.run(decider.task("finished_runs").run_once())
    decider.drain()
    assert decider.reads() == reads
