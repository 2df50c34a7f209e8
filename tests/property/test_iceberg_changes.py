"""Whatever pyiceberg does to a table, following it leads to what pyiceberg's own scan finds.

Each history appends, deletes, overwrites, rolls back, evolves the spec, changes properties and expires snapshots of a
table in a SQL catalog; the reader follows after some of these commits, as a decider does.
"""

import asyncio
import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform

from decider.formats.iceberg.table import IcebergFormat, IcebergSettings, IcebergTable
from decider.state.fold import fold
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.policy.policy import Policy
from shared.table import DataFile, PartitionKey, Position, TableMetadata
from tests.contract.formats.worlds import access
from tests.support.memory_log import count_live_files

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("n", pa.int32())])
STEPS = 14
POLICY = Policy()


class Followed:
    """What a decider would hold of a table: its files, its rolling state and its position."""

    def __init__(self, reader: IcebergTable) -> None:
        self.reader = reader
        self.files: dict[str, DataFile] = {}
        self.states: dict[PartitionKey, PartitionStats] = {}
        self.position = Position(-1)
        self.metadata = TableMetadata("none")
        self.rebuilds = 0

    async def follow(self) -> None:
        if not self.position.digest or not await self.reader.contains(self.position):
            await self.rebuild()
            return
        async for commit in self.reader.changes(self.position, self.metadata):
            assert self.position < commit.position
            folded = fold(commit, self.metadata, POLICY)
            self.position = commit.position
            if folded.rebuild_reason:
                await self.rebuild()
                return
            self.metadata = commit.metadata or self.metadata
            for gone in commit.removed:
                assert self.files.pop(gone.path).size_bytes == gone.size_bytes
            self.files |= {file.path: file for file in commit.added}
            for partition, change in folded.changes.items():
                self.states[partition] = (self.states.get(partition, EMPTY_STATS) + change).clamped()
        assert (await self.reader.end_of_history(self.position)).is_end

    async def rebuild(self) -> None:
        self.rebuilds += 1
        snapshot = await self.reader.snapshot()
        self.position, self.metadata = snapshot.position, snapshot.metadata
        self.files = {file.path: file for file in snapshot.files}
        self.states = dict(count_live_files(snapshot.files, POLICY))


def rows(choice: random.Random, start: int) -> pa.Table:
    number = choice.randint(1, 6)
    kinds = [choice.choice(["a", "b", "", None]) for _ in range(number)]
    return pa.table(
        {"id": list(range(start, start + number)), "kind": kinds, "n": [choice.randint(0, 3) for _ in range(number)]},
        schema=SCHEMA,
    )


def step(table: Any, choice: random.Random, number: int) -> str:
    """Do one thing to a table, and return what it was."""
    kind = choice.choice(
        ["append"] * 4 + ["delete", "delete", "overwrite", "rollback", "evolve", "configure", "expire"]
    )
    history = [entry.snapshot_id for entry in table.metadata.snapshot_log]
    known = {one.snapshot_id for one in table.metadata.snapshots}
    ancestors = [one for one in dict.fromkeys(history) if one in known]
    if kind == "delete":
        table.delete(f"n = {choice.randint(0, 3)}")
    elif kind == "overwrite":
        table.overwrite(rows(choice, number * 100), overwrite_filter=f"n >= {choice.randint(1, 3)}")
    elif kind == "rollback" and len(ancestors) > 2:
        table.manage_snapshots().set_current_snapshot(choice.choice(ancestors)).commit()
    elif kind == "evolve":
        names = {field.name for field in table.spec().fields}
        with table.update_spec() as update:
            if first := names & {"kind", "cut"}:  # pyiceberg writes no two fields of one column.
                update.remove_field(*first)
            elif "n_b" not in names:
                update.add_field("n", BucketTransform(2), "n_b")
            else:
                update.add_field("kind", IdentityTransform(), "kind")
    elif kind == "configure":
        with table.transaction() as change:
            change.set_properties({"lakewright.fan-in": str(choice.randint(2, 9))})
    elif kind == "expire" and table.metadata.current_snapshot_id is not None and len(known) > 3:
        old = [one for one in known if one != table.metadata.current_snapshot_id]
        table.maintenance.expire_snapshots().by_ids(choice.sample(old, 1)).commit()
    else:
        kind = "append"
        table.append(rows(choice, number * 100))
    return kind


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")
def test_following_any_history_leads_to_what_a_scan_finds(seed: int, version: int) -> None:
    choice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        options = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": Path(folder).as_uri()}
        catalog = SqlCatalog("test", **options)
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA, properties={"format-version": str(version)})
        with table.update_spec() as update:
            update.add_field("kind", *((TruncateTransform(1), "cut") if seed % 2 else (IdentityTransform(), "kind")))
        reader = IcebergFormat(access(), IcebergSettings({"test": options})).open("catalog://test/db/t")
        followed, done = Followed(reader), []
        for number in range(STEPS):
            done.append(step(table, choice, number))
            table.refresh()
            if choice.random() < 0.3:
                continue
            asyncio.run(followed.follow())
            scanned = {task.file.file_path: task.file.file_size_in_bytes for task in table.scan().plan_files()}
            assert {path: file.size_bytes for path, file in followed.files.items()} == scanned, (seed, done)
            expected = count_live_files(followed.files.values(), POLICY)
            assert {key: state for key, state in followed.states.items() if state != EMPTY_STATS} == expected
            again = asyncio.run(reader.snapshot())
            assert {file.path: file.partition for file in again.files} == {
                path: file.partition for path, file in followed.files.items()
            }
        print(f"seed {seed}, version {version}: {done}, {followed.rebuilds} rebuilds")
        catalog.engine.dispose()
