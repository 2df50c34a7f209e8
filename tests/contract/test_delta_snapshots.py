"""Snapshots that follow from a cached one equal Delta's; commits of the log store exclude each other."""

import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from py4j.protocol import Py4JJavaError

from actor.formats.delta.log import TableLog
from actor.formats.delta.read import read_partition
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.snapshot_cache import SnapshotCache
from actor.jvm.scala import Scala
from actor.jvm.spark import EXCLUSIVE as EXCLUSIVE_STORE
from actor.ports import GroupStatus, RewriteRequest
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.support.delta_lab import DeltaLab, mark
from tests.support.steering import Steering

pytestmark = pytest.mark.spark


def jobs(lab: DeltaLab) -> int:
    return int(lab.spark._jsc.sc().dagScheduler().nextJobId())


def append(path: Path, first: int, commits: int = 1) -> None:
    for number in range(first, first + commits):
        write_deltalake(path, pa.table({"id": [number], "name": [f"n{number}"]}), mode="append")


def checksums(path: Path) -> list[str]:
    return sorted(found.name for found in (path / "_delta_log").glob("[0-9]*.crc"))


@pytest.fixture
def path(lab: DeltaLab) -> Iterator[Path]:
    """A table that deltalake wrote: no commit has a checksum file."""
    path = lab.directory / "snapshots"
    append(path, 0, 3)
    yield path
    assert checksums(path) == []


def same_as_deltas(lab: DeltaLab, log: TableLog) -> Any:
    """Return the newest snapshot, after comparing it with what Delta reads from the log, state included."""
    found = log.snapshot()
    lab.engine._scala.delta_log.clearCache()
    fresh = TableLog(lab.engine._scala, lab.spark, log.location).snapshot()
    checksum = found.checksumOpt().get()
    assert (found.version(), log.shape(found)) == (fresh.version(), log.shape(fresh))
    assert (checksum.numFiles(), checksum.tableSizeBytes()) == (fresh.numOfFiles(), fresh.sizeInBytes())
    return found


def test_a_snapshot_follows_from_the_commits_of_another_engine(lab: DeltaLab, path: Path) -> None:
    log = TableLog(lab.engine._scala, lab.spark, path.as_uri(), SnapshotCache())
    read_partition(log, WHOLE_TABLE, ReadCache())
    append(path, 3, 4)
    DeltaTable(path).delete("id = 1")
    DeltaTable(path).optimize.compact()
    before = jobs(lab)
    found = log.snapshot()
    assert (found.version(), jobs(lab)) == (8, before)
    same_as_deltas(lab, log)


def test_columns_that_another_engine_adds_are_in_the_next_snapshot(lab: DeltaLab, path: Path) -> None:
    log = TableLog(lab.engine._scala, lab.spark, path.as_uri(), SnapshotCache())
    read_partition(log, WHOLE_TABLE, ReadCache())
    write_deltalake(path, pa.table({"id": [9], "more": [1.5]}), mode="append", schema_mode="merge")
    assert "more" in log.shape(same_as_deltas(lab, log)).metadata_json
    write_deltalake(path, pa.table({"id": [10], "more": [2.5]}), mode="append", schema_mode="merge")
    assert "more" in log.shape(same_as_deltas(lab, log)).metadata_json


def test_a_commit_is_read_as_its_writer_wrote_it(lab: DeltaLab, path: Path) -> None:
    rows, who = pa.table({"id": [9], "name": ["n9"]}), CommitProperties({"who": "Zoë"})
    write_deltalake(path, rows, mode="append", commit_properties=who)
    actions = TableLog(lab.engine._scala, lab.spark, path.as_uri()).actions(3)
    assert [action["commitInfo"]["who"] for action in actions if "commitInfo" in action] == ["Zoë"]


def test_commits_that_were_undone_and_replaced_are_not_built_on(lab: DeltaLab, path: Path) -> None:
    log = TableLog(lab.engine._scala, lab.spark, path.as_uri(), SnapshotCache())
    read_partition(log, WHOLE_TABLE, ReadCache())
    newest = path / "_delta_log" / f"{2:020d}.json"
    newest.unlink()
    append(path, 10**9)  # Its file has another size than the one that is gone.
    append(path, 8)
    assert same_as_deltas(lab, log).version() == 3
    before = jobs(lab)
    append(path, 9)
    assert (log.snapshot().version(), jobs(lab)) == (4, before)
    for number in range(10, 62):
        append(path, number)
    assert same_as_deltas(lab, log).version() == 56, "more commits than are read one by one"


@pytest.mark.long("contracts")
def test_rewrites_among_the_commits_of_another_engine_need_no_job(lab: DeltaLab, path: Path) -> None:
    """Twelve rewrites pass a checkpoint of Delta's, which compares the carried checksum with the state."""
    location, expected, counts = path.as_uri(), set(range(3)), []
    for number in range(3, 39, 3):
        files = lab.engine.read_partition(location, WHOLE_TABLE).files
        group = FileGroup(WHOLE_TABLE, files, RewriteMode.MINOR)
        append(path, number, 3)
        expected |= set(range(number, number + 3))
        before = jobs(lab)
        (end,) = lab.engine.rewrite(RewriteRequest(location, (group,), mark("j", number)), Steering()).groups
        counts.append(jobs(lab) - before)
        assert end.status is GroupStatus.COMMITTED
        after = lab.engine._caches.snapshots.get(location).log.delta_log.unsafeVolatileSnapshot().checksumOpt().get()
        sizes = DeltaTable(path).get_add_actions()["size_bytes"].to_pylist()
        assert (after.numFiles(), after.tableSizeBytes()) == (len(sizes), sum(sizes))
    assert sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist()) == sorted(expected)
    assert sorted(row.id for row in lab.spark.read.format("delta").load(location).collect()) == sorted(expected)
    assert list((path / "_delta_log").glob("*.checkpoint*.parquet"))
    typical = sorted(counts)[len(counts) // 2]
    assert typical == 0, "rows are copied or merged by column; the jobs of a checkpoint come on top of it"
    log = TableLog(lab.engine._scala, lab.spark, location, lab.engine._caches.snapshots)
    same_as_deltas(lab, log)


EXCLUSIVE = EXCLUSIVE_STORE["spark.delta.logStore.file.impl"]
VERSIONS = 300

RIVAL = """
import os, random, sys, time
folder, versions, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
for version in range(versions):
    with open(f"{folder}/rival-{version}", "w") as mine:
        mine.write("theirs")
print("ready", flush=True)
won, pause_s = [], 0.002
for version in range(versions):
    while version and not os.path.exists(f"{folder}/{version - 1:020d}.json"):
        pass
    until = time.perf_counter() + rng.random() * 2 * pause_s
    while time.perf_counter() < until:
        pass
    try:
        os.link(f"{folder}/rival-{version}", f"{folder}/{version:020d}.json")
        won.append(version)
        pause_s *= 1.25  # Whoever is first too often waits longer, so that both stay close together.
    except FileExistsError:
        pause_s *= 0.8
print(*won)
"""


def store_of(spark: Any, store_class: str) -> Any:
    """A log store in the JVM, as Delta makes it."""
    scala = Scala(spark)
    loader = scala.resolve("org.apache.spark.util.Utils").getContextOrSparkClassLoader()
    constructor = scala.resolve("java.lang.Class").forName(store_class, True, loader).getConstructors()[0]
    arguments = spark.sparkContext._gateway.new_array(scala.resolve("java.lang.Object"), 1)
    arguments[0] = spark._jsc.hadoopConfiguration()
    return constructor.newInstance(arguments)


def race(spark: Any, store_class: str, folder: Path, seed: int) -> tuple[set[int], set[int]]:
    """Commit the same versions from the JVM and from another process; return the versions that each believes it won."""
    scala = Scala(spark)
    conf = spark._jsc.hadoopConfiguration()
    store, path = store_of(spark, store_class), scala.path

    def write(version: int) -> bool:
        lines = scala.java_list(["ours"])
        try:
            store.write(path(f"file:{folder}/{version:020d}.json"), lines.iterator(), False, conf)
        except Py4JJavaError as error:
            if "FileAlreadyExists" not in str(error.java_exception):
                raise
            return False
        return True

    command = [sys.executable, "-c", RIVAL, str(folder), str(VERSIONS), str(seed)]
    ours = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as rival:
        assert rival.stdout is not None
        rival.stdout.readline()
        for version in range(VERSIONS):
            while version and not (folder / f"{version - 1:020d}.json").exists():
                pass
            if write(version):
                ours.add(version)
        theirs = {int(version) for version in rival.stdout.read().split()}
    return ours, theirs


def test_each_version_is_won_by_exactly_one_process(spark: Any, tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    ours, theirs = race(spark, EXCLUSIVE, tmp_path, seed)
    assert ours, "the JVM never won: there was no race"
    assert theirs, "the other process never won: there was no race"
    assert not ours & theirs
    assert ours | theirs == set(range(VERSIONS))
    for version in range(VERSIONS):
        content = (tmp_path / f"{version:020d}.json").read_text()
        assert content == ("ours\n" if version in ours else "theirs")
    assert not list(tmp_path.glob(".*")), "temporary files are left"


def test_the_actor_uses_it_for_local_tables(spark: Any, tmp_path: Path) -> None:
    """Delta's own store leaves a checksum file of Hadoop's beside each commit; ours does not."""
    spark.range(3).write.format("delta").save(str(tmp_path / "t"))
    log = tmp_path / "t" / "_delta_log"
    assert (log / f"{0:020d}.json").exists()
    assert not (log / f".{0:020d}.json.crc").exists()


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_it_writes_is_not_judged_by_the_checksum_of_another_writers_file(
    spark: Any, tmp_path: Path, overwrite: bool
) -> None:
    """Hadoop leaves a checksum beside what it writes, and reads nothing that the checksum does not fit."""
    scala, conf = Scala(spark), spark._jsc.hadoopConfiguration()
    store, path = store_of(spark, EXCLUSIVE), scala.path(f"file:{tmp_path}/written")
    stream = path.getFileSystem(conf).create(path)
    stream.writeBytes("theirs, and longer")
    stream.close()
    assert (tmp_path / ".written.crc").exists()
    if not overwrite:
        (tmp_path / "written").unlink()  # As whoever undoes a commit does: the checksum is hidden, and stays.
    store.write(path, scala.java_list(["ours"]).iterator(), overwrite, conf)
    lines = store.read(path, conf)
    assert lines.next() == "ours"
    lines.close()


@pytest.mark.long("contracts")
def test_a_checkpoint_is_never_seen_half_written(spark: Any, tmp_path: Path) -> None:
    """Readers take a checkpoint as soon as its name is there: a table with half a one cannot be opened by anyone."""
    table, commits, seen = tmp_path / "t", 5, 0
    properties = {"delta.checkpointInterval": "1"}

    def write() -> None:
        for _ in range(commits):
            spark.range(3).write.format("delta").options(**properties).mode("append").save(str(table))

    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(write)
        while not writing.done():
            for checkpoint in table.glob("_delta_log/*.checkpoint*.parquet"):
                assert checkpoint.read_bytes()[-4:] == b"PAR1", f"{checkpoint.name} is there and not complete"
                seen += 1
        writing.result()
    assert seen > commits
