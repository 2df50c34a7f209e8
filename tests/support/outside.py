"""What end-to-end tests read from outside: the table's own log, the REST API, and the partitions in Redis."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import redis
from deltalake import DeltaTable

from decider.store.tables.table_state import TableState
from shared.layout.partition_stats import PartitionStats, stats_of_sizes
from shared.policy.levels import SizeLevels
from shared.policy.policy import KIB, Policy
from shared.queue import keys
from tests.support.stack import Stack, commits_of
from tests.support.waiting import until

POLICY = Policy(target_bytes=256 * KIB, min_input_files=4)
"""The policy that `Stack` gives to its decider."""


def own_commits(table: Path) -> list[dict[str, Any]]:
    """Return the commitInfo of our commits, after checking that they change no data."""
    ours = []
    for actions in commits_of(table):
        info = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        if "lakewright" not in str(info.get("userMetadata", "")):
            continue
        files = [action[kind] for action in actions for kind in ("add", "remove") if kind in action]
        assert files
        assert all(file["dataChange"] is False for file in files)
        assert not any(kind in action for action in actions for kind in ("metaData", "protocol", "txn"))
        partitions = {json.dumps(file["partitionValues"], sort_keys=True) for file in files}
        jobs = 1 + len(json.loads(info["userMetadata"])["lakewright"].get("others", ()))
        assert len(partitions) <= jobs, "each job of a commit of ours touches one partition"
        ours.append(json.loads(info["userMetadata"])["lakewright"])
    return ours


def is_at_rest(stack: Stack, name: str, table: Path) -> bool:
    """Whether the decider has read the whole log and nothing waits or runs."""
    status, known = stack.get("/v1/status"), stack.get(f"/v1/tables/{name}")
    depth = status["queue"]["depth"]
    newest = DeltaTable(str(table)).version()
    return (
        known["state"]["version"] == newest
        and not status["backlog"]["tables_waiting"]
        and not any(depth[state] for state in ("queued", "delayed", "leased"))
    )


def assert_state_equals_files(stack: Stack, table_id: str, table: Path) -> None:
    """Compare the stored partitions with a rebuild of the live files by another reader, integer for integer."""
    client = stack.redis.client()
    raw, levels = client.hgetall(keys.partitions("default", table_id)), levels_of(client, table_id)
    stored = {json.loads(partition)["day"]: PartitionStats.decode(text.decode()) for partition, text in raw.items()}
    live: dict[str, list[int]] = {}
    actions = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True)).to_pydict()
    for day, size in zip(actions["partition.day"], actions["size_bytes"], strict=True):
        live.setdefault(day, []).append(size)
    assert stored == {day: stats_of_sizes(levels, sizes) for day, sizes in live.items()}


def levels_of(client: redis.Redis, table_id: str) -> SizeLevels:
    """Return the levels that a table's files are counted by: those that are fitted to them, if any are."""
    fit = TableState.decode(client.hgetall(keys.table_state("default", table_id))).level_fit
    return POLICY.fitted_to(fit.typical_file_bytes).size_levels


def assert_stays_at_rest(stack: Stack, name: str, table: Path) -> None:
    """Three sweeps pass without a job and without a commit."""
    before = (DeltaTable(str(table)).version(), runs(stack))
    sweeps = swept(stack)
    until("three sweeps passed", lambda: swept(stack) >= sweeps + 3)
    until("at rest again", lambda: is_at_rest(stack, name, table))
    assert (DeltaTable(str(table)).version(), runs(stack)) == before


def runs(stack: Stack) -> int:
    return stack.get("/v1/status")["funnel"].get("jobs_run", 0)


def swept(stack: Stack) -> int:
    """Count finished sweeps by the reads they cost: with one table, each sweep requests one version that is absent."""
    return sum(stack.get("/v1/status")["object_store_requests"].values())
