"""A decider that is killed while it follows thousands of random commits: its state equals a count of the metadata."""

import asyncio
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyiceberg.manifest import DataFileContent

from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from decider.state.effective_policy import PolicyDefaults
from decider.store.tables.table_state import TableState
from services.decider.settings import parse_policy
from shared.formats.iceberg.positions import position_digest
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.paths.locations import table_id
from shared.queue import keys
from shared.table import PartitionKey, TableRef
from tests.contract.formats.worlds import access
from tests.property.test_iceberg_random_commits import count, step
from tests.support.iceberg_folder import IcebergFolder
from tests.support.redis_server import RedisServer
from tests.support.stack import POLICY, Process, Stack
from tests.support.waiting import until

pytestmark = [pytest.mark.redis, pytest.mark.e2e, pytest.mark.timeout(3600), pytest.mark.long("iceberg")]

QUEUE = "default"
COMMITS = 5_000
BATCH = 10
"""Commits between two events, which a kill of the decider loses."""
CHECK_EVERY = 100
KILLS = 8
LEAST_APPLIED = 0.5
"""Share of the snapshots that deciders apply one by one; the others are in a rebuild, after a rollback or a kill."""


@dataclass
class Followed:
    """A table that is changed at random, and what the decider's Redis holds of it."""

    table: IcebergFolder
    redis: RedisServer

    @property
    def name(self) -> str:
        return self.table.path.name

    @property
    def event(self) -> dict[str, object]:
        """A bucket's notification of the newest metadata file."""
        newest = max((self.table.path / "metadata").glob("v*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
        about = {"bucket": {"name": "demo"}, "object": {"key": f"{self.name}/metadata/{newest.name}"}}
        return {"Records": [{"eventName": "ObjectCreated:Put", "s3": about}]}

    def stored(self) -> tuple[TableState, dict[PartitionKey, PartitionStats]] | None:
        """Return state and partitions as of one moment; None before the first."""
        identity = table_id(self.table.location)
        with self.redis.client() as client, client.pipeline(transaction=True) as pipe:
            pipe.hgetall(keys.table_state(QUEUE, identity))
            pipe.hgetall(keys.partitions(QUEUE, identity))
            raw, partitions = pipe.execute()
        if not raw:
            return None
        state = TableState.decode(raw)
        found = {PartitionKey(key.decode()): PartitionStats.decode(text.decode()) for key, text in partitions.items()}
        return state, {key: one for key, one in found.items() if one != EMPTY_STATS}

    def has_read(self) -> bool:
        """Whether the state is that of the newest snapshot."""
        found, newest = self.stored(), self.table.snapshot
        return found is not None and found[0].digest == position_digest(self.table.uuid, newest)

    def check(self) -> None:
        """Wait until the decider has read the table, and compare its state with a count of the live files."""
        formats = IcebergFormat(access(), IcebergSettings(reads_folders=True))
        newest = asyncio.run(formats.open(self.table.location).snapshot())

        def has_read() -> bool:
            found = self.stored()
            return found is not None and (found[0].digest, found[0].metadata) == (newest.digest, newest.metadata)

        until(f"{self.name} is read up to {newest.digest}", has_read, seconds=60)
        found = self.stored()
        assert found is not None
        state, partitions = found
        reference = TableRef(table_id(self.table.location), self.name, self.table.location)
        policy = PolicyDefaults(parse_policy(POLICY)).resolve(
            reference, state.metadata.configuration, state.last_good, state.log_status
        )
        assert partitions == count(newest, policy.policy)
        data = [one for one in self.table.live.values() if one.content is DataFileContent.DATA]
        assert sum(one.files for one in partitions.values()) == len(data)


class Run:
    """Commits, events, and a decider that is killed now and then."""

    def __init__(self, stack: Stack, tables: list[Followed], seed: int) -> None:
        self._stack = stack
        self._tables = tables
        self._random = random.Random(seed)
        self._decider: Process = stack.decider("tests.support.wary_decider")
        for one in tables:
            stack.post("/v1/tables", {"location": one.table.location, "name": one.name}).raise_for_status()

    def go_on(self, commits: int, kills: int) -> None:
        batches = commits // BATCH
        killed_after = set(self._random.sample(range(1, batches - 1, 3), kills))
        for batch in range(batches):
            for _ in range(BATCH):
                step(self._random.choice(self._tables).table, self._random)
            if batch in killed_after:
                self._decider.kill()
                continue  # What comes next is written while none runs.
            if not self._decider.alive:
                self._decider = self._stack.decider("tests.support.wary_decider")
            self._report()
            if batch + 1 not in killed_after:  # Otherwise it dies while it reads these commits, or those that follow.
                self._catch_up(is_compared=(batch + 1) % (CHECK_EVERY // BATCH) == 0)
        self._catch_up(is_compared=True)

    def _catch_up(self, *, is_compared: bool) -> None:
        until("the decider has read all", lambda: all(one.has_read() for one in self._tables), seconds=60)
        if is_compared:
            for one in self._tables:
                one.check()

    def _report(self) -> None:
        for one in self._tables:
            answer: httpx.Response = self._stack.post("/v1/events", one.event)
            assert answer.status_code == httpx.codes.ACCEPTED, answer.text


def test_the_state_equals_a_count_of_the_metadata_while_deciders_are_killed(
    tmp_path: Path, own_redis_server: RedisServer
) -> None:
    settings = {"LAKEWRIGHT_ICEBERG_FOLDERS": "true", "LAKEWRIGHT_SWEEP_S": "1", "LAKEWRIGHT_DISCOVERY_S": "0"}
    with Stack(tmp_path, own_redis_server, settings) as stack:
        tables = []
        for version in (1, 2, 3):
            made = IcebergFolder(stack.tables / f"v{version}", format_version=version, spec="identity")
            made.create(f"00000000-0000-4000-8000-00000000000{version}")
            tables.append(Followed(made, own_redis_server))
        seed = 15
        Run(stack, tables, seed).go_on(COMMITS, KILLS)
        made, applied = sum(one.table.commits for one in tables), events(stack, "commits_applied")
        snapshots, rebuilds = sum(one["commits"] for one in applied), len(events(stack, "state_rebuilt"))
        print(
            f"seed {seed}: {COMMITS} changes, {made} snapshots, {snapshots} applied, {rebuilds} rebuilds, {KILLS} kills"
        )
        assert snapshots > LEAST_APPLIED * made


def events(stack: Stack, name: str) -> list[dict[str, Any]]:
    """Return what all deciders logged under a name."""
    logs = (one.log.read_text().splitlines() for one in stack.processes if one.name == "decider")
    lines = (line for log in logs for line in log if f'"{name}"' in line)
    return [json.loads(line) for line in lines if line.endswith("}")]  # A kill may cut a line.
