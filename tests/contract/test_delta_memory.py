"""A partition read from memory and the commits since equals the partition of the snapshot, file by file."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.engine import DeltaEngine
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.read import read_partition
from actor.formats.delta.read_cache import CachedRead, ReadCache
from actor.ports import GroupStatus
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, FileKey, PartitionKey
from tests.support import delta_tables as tables
from tests.support.delta_lab import PARTITION_1, PARTITION_2, DeltaLab
from tests.support.steering import Steering

pytestmark = pytest.mark.spark


class Listings:
    """Counts how often snapshots are listed, which is what costs a Spark job."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("files", "few_files"):
            monkeypatch.setattr(TableLog, name, self._counted(getattr(TableLog, name)))

    def _counted(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object, **named: object) -> object:
            self.count += 1
            return call(*arguments, **named)

        return counted


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> Listings:
    return Listings(monkeypatch)


def words(files: tuple[LoggedFile, ...]) -> list[tuple[FileKey, dict[str, object]]]:
    """What is said of each file, nulls and order left out: Delta writes a null for what a commit leaves out."""
    stated = [(logged.key, json.loads(logged.json)) for logged in files]
    return sorted(
        ((key, {name: value for name, value in add.items() if value not in (None, {})}) for key, add in stated), key=str
    )


def log_of(lab: DeltaLab, table: tables.HandTable) -> TableLog:
    return TableLog(lab.engine._scala, lab.spark, table.location)


def without_vector(table: tables.HandTable) -> list[str]:
    """The live files that can be removed by hand; one more where a DELETE has touched them all."""
    if all(vector for _, vector in tables.live(table.path)):
        table.append(1, values={"dt": tables.DAY_1})
    return sorted(path for path, vector in tables.live(table.path) if not vector)


@pytest.mark.long("contracts")
def test_after_any_commits_memory_and_a_new_listing_agree(lab: DeltaLab, listings: Listings) -> None:
    """Appends, removals, deletion vectors, rewrites of ours and files added again, in a random order."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    table = tables.table(lab.directory / "t", days=True, deletion_vectors=True)
    memory, partitions = ReadCache(), (PARTITION_1, PARTITION_2)
    log = log_of(lab, table)
    read_partition(log, PARTITION_1, memory)
    deeds: list[Callable[[], object]] = [
        lambda: table.append(2, values={"dt": tables.DAY_1}),
        lambda: table.append(1, values={"dt": tables.DAY_2}),
        lambda: table.remove(dice.choice(without_vector(table))),
        lambda: lab.sql(f"DELETE FROM delta.`{table.path}` WHERE id % 17 = {dice.randrange(17)}"),
        lambda: lab.rewrite(table.location, [lab.group(table.location, dice.choice(partitions), count=2)]),
        lambda: table.append(1, values={"dt": tables.DAY_2}, tags={"a": "b"}),
    ]
    for _ in range(4):
        for deed in dice.sample(deeds, 2):
            deed()
        before = listings.count
        remembered = {partition: read_partition(log, partition, memory) for partition in partitions}
        assert listings.count == before, "nothing was listed"
        for partition, seen in remembered.items():
            fresh = read_partition(log, partition, ReadCache())
            assert seen.version == fresh.version
            assert words(seen.files) == words(fresh.files)


def test_a_rewrite_of_what_memory_knows_keeps_every_row(lab: DeltaLab, listings: Listings) -> None:
    table = tables.table(lab.directory / "t", days=True)
    lab.files(table.location, PARTITION_2)
    table.append(3, values={"dt": tables.DAY_1})
    before, digest = listings.count, lab.digest(table.location)
    outcome = lab.rewrite(table.location, [lab.group(table.location, PARTITION_1, count=9)])
    assert listings.count == before
    assert outcome.version == table.version + 1
    assert lab.digest(table.location) == digest


@pytest.mark.parametrize("what", ["properties", "another spelling", "an unknown removal", "a commit that is gone"])
def test_what_commits_do_not_contain_for_certain_is_listed_again(lab: DeltaLab, listings: Listings, what: str) -> None:
    table = tables.table(lab.directory / "t")
    memory, log = ReadCache(), log_of(lab, table)
    read_partition(log, WHOLE_TABLE, memory)
    match what:
        case "properties":
            lab.sql(f"ALTER TABLE delta.`{table.path}` SET TBLPROPERTIES ('mine' = '1')")
        case "another spelling":
            add = table.new_file(5, {})
            table.commit([{"add": add | {"path": f"{table.location}/{add['path']}"}}])
        case "an unknown removal":
            table.commit([{"remove": {"path": "never-there.parquet", "dataChange": True, "deletionTimestamp": 1}}])
        case _:
            table.append()
            newest = log.snapshot()
            log.files(newest)  # Delta keeps the state, and requests no commit.
            (table.path / "_delta_log" / f"{table.version:020d}.json").rename(lab.directory / "gone.json")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(TableLog, "snapshot", lambda _self: newest)
                before = listings.count
                read_partition(log, WHOLE_TABLE, memory)
                assert listings.count > before
            return
    before = listings.count
    seen = read_partition(log, WHOLE_TABLE, memory)
    assert listings.count > before
    assert words(seen.files) == words(read_partition(log, WHOLE_TABLE, ReadCache()).files)


def test_a_large_table_is_remembered_partition_by_partition(
    lab: DeltaLab, listings: Listings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actor.formats.delta.read.WHOLE_TABLE_FILES", 11)
    table = tables.table(lab.directory / "t", days=True)
    memory, log = ReadCache(), log_of(lab, table)
    assert len(read_partition(log, PARTITION_1, memory).files) == 6
    table.append(1, values={"dt": tables.DAY_1})
    table.append(1, values={"dt": tables.DAY_2})
    before = listings.count
    assert len(read_partition(log, PARTITION_1, memory).files) == 7
    assert listings.count == before
    assert len(read_partition(log, PARTITION_2, memory).files) == 7
    assert listings.count > before


def test_a_table_made_again_at_its_place_is_listed_again(lab: DeltaLab, engine: DeltaEngine) -> None:
    table = tables.table(lab.directory / "t", files=3)
    assert len(engine.read_partition(table.location, WHOLE_TABLE).files) == 3
    shutil.rmtree(table.path)
    again = tables.HandTable(Path(table.path))
    again.commit([{"metaData": again.metadata(id="00000000-0000-4000-8000-000000000001")}])
    again.append(5)
    assert len(engine.read_partition(table.location, WHOLE_TABLE).files) == 5


def undo(table: tables.HandTable, *, then: int) -> None:
    """Undo the newest commit as an operator does who restores `_delta_log`, and let a writer make `then` others."""
    log = table.path / "_delta_log"
    (log / f"{table.version:020d}.json").rename(table.path / "undone.json")
    for _ in range(then):
        table.append(1)


@pytest.mark.parametrize("then", [0, 1, 2])
def test_what_an_undone_commit_added_is_forgotten(lab: DeltaLab, then: int) -> None:
    table = tables.table(lab.directory / "t", files=3)
    table.append(2)
    memory, log = ReadCache(), log_of(lab, table)
    assert len(read_partition(log, WHOLE_TABLE, memory).files) == 5
    undo(table, then=then)
    seen = read_partition(log, WHOLE_TABLE, memory)
    assert words(seen.files) == words(read_partition(log, WHOLE_TABLE, ReadCache()).files)
    assert {logged.key.path for logged in seen.files} == {path for path, _ in tables.live(table.path)}


@pytest.mark.parametrize("then", [0, 1, 2])
@pytest.mark.parametrize("moment", ["planned", "written"])
def test_files_of_an_undone_commit_are_never_rewritten(lab: DeltaLab, moment: str, then: int) -> None:
    """They still lie there, so that writing them succeeds; a commit of them would double what others wrote again."""
    table = tables.table(lab.directory / "t", files=3)
    table.append(2)
    group = lab.group(table.location, count=5)
    control = Steering(at={"files_written": lambda: undo(table, then=then)} if moment == "written" else {})
    if moment == "planned":
        undo(table, then=then)
    outcome = lab.rewrite(table.location, [group], control)
    assert [end.status for end in outcome.groups] == [GroupStatus.CONFLICTED]
    assert len(tables.rows(table.path)) == 60 + 20 * then
    assert lab.digest(table.location)[0] == 60 + 20 * then


def test_a_commit_writes_a_checksum_only_where_the_one_before_has_one(lab: DeltaLab) -> None:
    foreign = tables.table(lab.directory / "foreign", files=4)
    outcome = lab.rewrite(foreign.location, [lab.group(foreign.location, count=4)])
    assert not _has_checksum(foreign.path, outcome.version)
    kept_up = lab.directory / "kept-up"
    for _ in range(3):
        lab.spark.range(20).coalesce(1).write.format("delta").mode("append").save(str(kept_up))
    outcome = lab.rewrite(kept_up.as_uri(), [lab.group(kept_up.as_uri(), count=3)])
    assert _has_checksum(kept_up, outcome.version)
    checksum = json.loads((kept_up / "_delta_log" / f"{outcome.version:020d}.crc").read_text())
    assert checksum["numFiles"] == 1


def _has_checksum(table: Path, version: int | None) -> bool:
    return (table / "_delta_log" / f"{version:020d}.crc").exists()


def test_partitions_without_files_are_forgotten_too() -> None:
    """A table may have as many partitions as it likes, each read when its last file has gone."""
    memory, partitions = ReadCache(max_files=3), some_partitions(5)
    for partition in partitions:
        memory.put("t", remembered(partition, files=0))
    assert [memory.get("t", partition) is not None for partition in partitions] == [False, False, True, True, True]


def test_partitions_of_one_table_share_its_shape() -> None:
    """The schema of a wide table is larger than what is known of a partition."""
    memory, partitions = ReadCache(), some_partitions(2)
    for partition in partitions:
        memory.put("t", remembered(partition, files=1))
    one, other = (memory.get("t", partition) for partition in partitions)
    assert one is not None
    assert other is not None
    assert one.shape is other.shape
    memory.put("t", remembered(partitions[1], files=1, metadata="other"))
    changed = memory.get("t", partitions[1])
    assert changed is not None
    assert changed.shape == TableShape("other", "protocol")
    assert one.shape == TableShape("metadata", "protocol")


def some_partitions(count: int) -> list[PartitionKey]:
    return [PartitionKey(f'{{"n":"{number}"}}') for number in range(count)]


def remembered(partition: PartitionKey, *, files: int, metadata: str = "metadata") -> CachedRead:
    keys = [FileKey(f"{partition}{number}") for number in range(files)]
    logged = {key: LoggedFile(DataFile(path=key.path, size_bytes=1, partition=partition), "{}") for key in keys}
    return CachedRead(partition, 1, None, TableShape(metadata, "protocol"), logged)
