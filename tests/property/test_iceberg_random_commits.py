"""After thousands of random commits the rolling state of an Iceberg table equals a count of its live files.

Commits append, overwrite, delete, compact, add and remove delete files, evolve the spec, and change properties; between
them snapshots expire and the table is rolled back. The reader is replaced now and then, as by a decider that restarts.
"""

import asyncio
import random
from pathlib import Path

import pytest
from pyiceberg.manifest import DataFileContent

from decider.formats.iceberg.table import IcebergFormat, IcebergSettings, IcebergTable
from decider.state.file_columns import LiveFiles, count_live
from decider.state.fold import fold
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.policy.policy import Policy
from shared.table import PartitionKey, Position, Snapshot, TableMetadata
from tests.contract.formats.worlds import access
from tests.support.iceberg_folder import IcebergFolder, Written

POLICY = Policy()
MOST_FILES = 40
MOST_SNAPSHOTS = 30
POLICY_SHARE = 0.1  # Of the changes of properties: each leads to a rebuild by a decider.
DELETES = (DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES)


class RollingState:
    """The states of partitions as a decider keeps them: folded along the snapshots, counted again by a rebuild."""

    def __init__(self) -> None:
        self.states: dict[PartitionKey, PartitionStats] = {}
        self.position = Position(-1)
        self.metadata = TableMetadata("none")
        self.folded = self.rebuilds = 0

    async def follow(self, reader: IcebergTable) -> None:
        if not self.position.digest or not await reader.contains(self.position):
            self._rebuild(await reader.snapshot())
            return
        async for commit in reader.changes(self.position, self.metadata):
            change = fold(commit, self.metadata, POLICY)
            if change.rebuild_reason:
                self._rebuild(await reader.snapshot())
                return
            self.folded += 1
            self.position, self.metadata = commit.position, commit.metadata or self.metadata
            for partition, stats in change.changes.items():
                self.states[partition] = (self.states.get(partition, EMPTY_STATS) + stats).clamped()

    def _rebuild(self, snapshot: Snapshot) -> None:
        self.rebuilds += 1
        self.position, self.metadata, self.states = snapshot.position, snapshot.metadata, count(snapshot)


def count(snapshot: Snapshot, policy: Policy = POLICY) -> dict[PartitionKey, PartitionStats]:
    """Count all live files of a snapshot, delete files among them."""
    return {partition: one.state for partition, one in count_live(LiveFiles.of(snapshot), policy).items()}


def step(table: IcebergFolder, choice: random.Random) -> None:
    """Do one thing to the table."""
    live = list(table.live.values())
    data = [one.path for one in live if one.content is DataFileContent.DATA]
    deletes = [one.path for one in live if one.content is not DataFileContent.DATA]
    kind = choice.choice(["append"] * 3 + ["delete", "overwrite", "compact", "mark", "purge", "roll", "odd"])
    if len(data) > MOST_FILES:
        kind = "delete"
    if kind in ("roll", "odd"):
        _change_metadata(table, choice, kind)
    elif kind == "delete" and data:
        table.commit(removed=choice.sample(data, min(len(data), choice.randint(1, 15))), operation="delete")
    elif kind == "overwrite" and data:
        table.commit(_files(table, choice, 2), choice.sample(data, 1), operation="overwrite")
    elif kind == "compact" and len(data) > 1:
        _compact(table, choice, data)
    elif kind == "mark" and table.format_version > 1:
        table.commit([table.file(9, content=choice.choice(DELETES), rows=choice.randint(1, 5))], operation="overwrite")
    elif kind == "purge" and deletes:
        table.commit(removed=choice.sample(deletes, choice.randint(1, len(deletes))), operation="replace")
    else:
        table.commit(_files(table, choice, choice.randint(1, 4)))
    if len(table.snapshots) > MOST_SNAPSHOTS:
        table.expire(table.expirable(choice.randint(1, MOST_SNAPSHOTS)))


def _change_metadata(table: IcebergFolder, choice: random.Random, kind: str) -> None:
    """Roll back, evolve the spec (which is rare, for each leads to a rebuild), or change a property."""
    if kind == "roll" and len(table.snapshots) > 1 and choice.random() < 0.2:
        table.rollback(choice.choice(table.snapshots))
    elif choice.random() < 0.05:
        table.evolve(choice.choice(["identity", "bucket", "day", "none"]))
    else:
        name = "lakewright.fan-in" if choice.random() < POLICY_SHARE else "comment"
        table.configure({name: str(choice.randint(2, 9))})


def _compact(table: IcebergFolder, choice: random.Random, data: list[str]) -> None:
    first = table.live[choice.choice(data)]
    same = [path for path in data if (table.live[path].spec, table.live[path].values) == (first.spec, first.values)]
    size = sum(table.live[path].size for path in same)
    made = table.file(size, first.values, of=first.spec)
    table.commit([made], same, operation="replace")


def _files(table: IcebergFolder, choice: random.Random, count: int) -> list[Written]:
    return [table.file(choice.choice([10, 1000, 10**6, 2 * 10**8]), rows=choice.randint(1, 9)) for _ in range(count)]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("commits", [33, pytest.param(1666, marks=pytest.mark.long("iceberg"))])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_state_equals_a_count_after_random_commits_expiry_and_rollbacks(
    version: int, commits: int, tmp_path: Path
) -> None:
    seed = 7 + version
    choice, rolling = random.Random(seed), RollingState()
    table = IcebergFolder(tmp_path / "t", format_version=version, spec="identity")
    table.create("00000000-0000-4000-8000-00000000000a")
    formats = IcebergFormat(access(), IcebergSettings(reads_folders=True))
    reader = formats.open(table.location)
    for number in range(commits):
        step(table, choice)
        if choice.random() < 0.02:
            reader = formats.open(table.location)
        if choice.random() < 0.6:
            continue
        asyncio.run(rolling.follow(reader))
        expected = count(asyncio.run(reader.snapshot()))
        assert {key: state for key, state in rolling.states.items() if state != EMPTY_STATS} == expected, (seed, number)
    print(f"seed {seed}: {commits} commits, {rolling.folded} folded, {rolling.rebuilds} rebuilds")
    assert rolling.folded > 2 * rolling.rebuilds
