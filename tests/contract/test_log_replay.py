"""A small log that the driver replays is what Delta's own Spark job finds, and so is the checkpoint that comes of it.

Real logs that Delta's tests bring, random logs, and real tables with restored versions, deletion vectors, clustering,
row tracking and noted transactions.
"""

import json
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake

from actor.formats.delta.log import TableLog
from actor.formats.delta.snapshot_cache import SnapshotCache
from actor.jvm.errors import first_line
from actor.jvm.scala import jvm_session
from tests.support.aged_table import forget_logs
from tests.support.checkpoints import checkpoint_rows, lines
from tests.support.delta_lab import DeltaLab
from tests.support.duckdb_extensions import scan

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parents[3] / "shared" / "golden"
TABLES = sorted(path.name for path in GOLDEN.iterdir()) if GOLDEN.is_dir() else []
QUIET = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)

NOW_MS = int(time.time() * 1000)


def jobs(lab: DeltaLab) -> int:
    return int(lab.spark._jsc.sc().dagScheduler().nextJobId())


def deltas_log(lab: DeltaLab, table: Path) -> Any:
    return lab.engine._scala.delta_log.forTable(jvm_session(lab.spark), str(table))


def our_log(lab: DeltaLab, table: Path) -> TableLog:
    return TableLog(lab.engine._scala, lab.spark, table.as_uri(), SnapshotCache())


def by_job(lab: DeltaLab, table: Path) -> tuple[Any, ...]:
    """Metadata, protocol, number and bytes of live files, and the files, as Delta's jobs find them."""
    scala, log = lab.engine._scala, deltas_log(lab, table)
    snapshot = log.update(False, scala.none, scala.none)
    checksum = snapshot.computeChecksum()
    files = json.loads(scala.to_json(snapshot.allFiles().collectAsList()))
    return (*scala.shape(snapshot), checksum.numFiles(), checksum.tableSizeBytes(), lines(files))


def by_replay(lab: DeltaLab, table: Path) -> tuple[Any, ...] | None:
    """The same by the replay, without a job; None if the log is left to Delta's."""
    scala, before = lab.engine._scala, jobs(lab)
    log = our_log(lab, table)
    snapshot = log.snapshot()
    files = log.delta_log.liveFiles(snapshot)
    if files is None:
        return None
    checksum = snapshot.checksumOpt().get()
    found = lines(json.loads(scala.to_json(files)))
    assert jobs(lab) == before
    return (*scala.shape(snapshot), checksum.numFiles(), checksum.tableSizeBytes(), found)


def checkpoints_agree(lab: DeltaLab, table: Path) -> None:
    """Write the checkpoint of a version by Delta's job and by the replay, and compare them."""
    theirs, ours = table.with_name(f"{table.name}-theirs"), table.with_name(f"{table.name}-ours")
    for copy in (theirs, ours):
        shutil.copytree(table, copy)
    log = deltas_log(lab, theirs)
    log.checkpoint(log.update(False, lab.engine._scala.none, lab.engine._scala.none), lab.engine._scala.none)
    mine, before = our_log(lab, ours), jobs(lab)
    snapshot = mine.snapshot()
    assert lab.engine._scala.checkpoint_file.write(mine.delta_log, snapshot, snapshot.logSegment())
    assert jobs(lab) == before
    assert checkpoint_rows(ours) == checkpoint_rows(theirs)
    last = [json.loads((copy / "_delta_log" / "_last_checkpoint").read_text()) for copy in (ours, theirs)]
    for name in ("version", "size", "numOfAddFiles"):
        assert last[0][name] == last[1][name]


def opened(read: Callable[[], Any]) -> Any:
    """What is read, or the word that Delta refuses the log."""
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - whatever Java raises is the answer
        return f"refused: {first_line(error)}"


def _longest(names: list[str]) -> list[str]:
    """Leave out the tables whose log another one continues."""
    logs = {
        name: {file.name: file.read_bytes() for file in (GOLDEN / name / "_delta_log").glob("*.*")} for name in names
    }
    return [name for name, log in logs.items() if not any(log.items() < other.items() for other in logs.values())]


@pytest.mark.long("contracts")
@pytest.mark.skipif(not TABLES, reason=f"the golden tables are not at {GOLDEN}")
def test_real_logs_are_replayed_as_deltas_job_reads_them(lab: DeltaLab, tmp_path: Path) -> None:
    replayed = []
    for name in _longest(TABLES):
        table = tmp_path / name
        shutil.copytree(GOLDEN / name, table)
        theirs = opened(lambda: by_job(lab, table))  # noqa: B023 - called at once
        ours = opened(lambda: by_replay(lab, table))  # noqa: B023
        assert ours in (None, theirs), name
        if isinstance(ours, tuple):
            replayed.append(name)
            if "schemaString" in ours[0]:
                checkpoints_agree(lab, table)
    print(f"\n{len(replayed)} of {len(TABLES)} replayed")
    assert {"delete-re-add-same-file-different-transactions", "basic-with-inserts-overwrite-restore"} <= set(replayed)


class RandomCommits:
    """Commits as no writer would make them all: files again and again, vectors, notes, other metadata in between."""

    def __init__(self, seed: int, log: Path) -> None:
        self.dice = random.Random(seed)
        self.log = log
        self.version = 0
        self.known: list[dict[str, Any]] = []
        log.mkdir(parents=True)
        features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors", "domainMetadata"]}
        self.commit({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}, self._metadata("first"))

    def commit(self, *actions: dict[str, Any]) -> None:
        text = "".join(json.dumps(action) + "\n" for action in ({"commitInfo": {"timestamp": 1}}, *actions))
        self.log.joinpath(f"{self.version:020d}.json").write_text(text)
        self.version += 1

    def commits(self, count: int) -> None:
        for _ in range(count):
            made = [self._file() for _ in range(self.dice.randint(0, 5))]
            once = {(body["path"], json.dumps(body["deletionVector"])): {kind: body} for kind, body in made}
            notes = [make() for make in (self._note, self._domain) if self.dice.random() < 0.4]
            named = [self._metadata(f"n{self.version}")] if self.dice.random() < 0.1 else []
            self.commit(*named, *notes, *once.values())

    def _file(self) -> tuple[str, dict[str, Any]]:
        dice = self.dice
        if not self.known or dice.random() < 0.5:
            value = dice.choice(("a", "b", "", None, "ä", "a/b", "a b"))
            stored = {
                "storageType": "i",
                "pathOrInlineDv": f"ab{dice.randrange(9)}vc2",
                "offset": dice.choice((None, 1)),
            }
            folder = dice.choice(("f", "p=a/f", "p=a%2Fb/f", "p=a%252Fb/f", "ä"))
            self.known.append(
                {
                    "path": f"{folder}{dice.randrange(40)}",
                    "partitionValues": {"p": value},
                    "size": dice.randrange(10**9),
                    "modificationTime": NOW_MS - dice.randrange(10**9),
                    "tags": dice.choice((None, {}, {"a": "1", "b": ""})),
                    "stats": dice.choice((None, '{"numRecords":10,"minValues":{"id":1}}')),
                    "deletionVector": {**stored, "sizeInBytes": 3, "cardinality": 2} if dice.random() < 0.3 else None,
                }
            )
        body = dice.choice(self.known)
        if dice.random() < 0.6:
            return "add", {**body, "dataChange": True, "baseRowId": dice.choice((None, 7))}
        kept = {name: body[name] for name in ("path", "deletionVector")}
        more = {name: body[name] for name in ("partitionValues", "size", "tags")} if dice.random() < 0.7 else {}
        old = dice.random() < 0.3
        return "remove", {
            **kept,
            **more,
            "dataChange": True,
            "extendedFileMetadata": bool(more),
            "deletionTimestamp": dice.choice((None, 5)) if old else NOW_MS - dice.randrange(10**6),
        }

    def _note(self) -> dict[str, Any]:
        noted = {"appId": f"app{self.dice.randrange(3)}", "version": self.version}
        return {"txn": noted | self.dice.choice(({}, {"lastUpdated": NOW_MS}))}

    def _domain(self) -> dict[str, Any]:
        name, removed = f"d{self.dice.randrange(3)}", self.dice.random() < 0.3
        return {"domainMetadata": {"domain": name, "configuration": '{"a":1}', "removed": removed}}

    def _metadata(self, name: str) -> dict[str, Any]:
        fields = [{"name": one, "type": "string", "nullable": True, "metadata": {}} for one in ("p", "id")]
        made = {"id": "t", "name": name, "format": {"provider": "parquet", "options": {}}, "partitionColumns": ["p"]}
        schema = json.dumps({"type": "struct", "fields": fields})
        return {"metaData": {**made, "schemaString": schema, "configuration": {}, "createdTime": 3}}


@pytest.mark.long("contracts")
def test_random_logs_are_replayed_as_deltas_job_reads_them(lab: DeltaLab, tmp_path: Path) -> None:
    none = lab.engine._scala.none
    for seed in range(6):
        table = tmp_path / f"t{seed}"
        log = RandomCommits(seed, table / "_delta_log")
        log.commits(log.dice.randint(1, 20))
        if seed % 2:
            theirs = deltas_log(lab, table)
            theirs.checkpoint(theirs.update(False, none, none), none)
            log.commits(log.dice.randint(0, 10))
            forget_logs(lab.spark)
        print(f"seed {seed}: {log.version} commits", flush=True)
        assert by_replay(lab, table) == by_job(lab, table)
        checkpoints_agree(lab, table)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return restored(tmp_path / "t")


def restored(table: Path) -> Path:
    """A table of deltalake's with a removal, a restored version, and columns that need statistics: 11 live files."""
    for number in range(6):
        rows = pa.table({"p": ["a", "b"], "id": [2 * number, 2 * number + 1], "text": [f"t{number}", None]})
        write_deltalake(table, rows, mode="append", partition_by=["p"], post_commithook_properties=QUIET)
    DeltaTable(table).delete("id < 4")
    DeltaTable(table).restore(5)
    DeltaTable(table).delete("id = 11")
    return table


def test_a_file_that_was_removed_and_restored_is_live_and_no_removal(lab: DeltaLab, table: Path) -> None:
    assert by_replay(lab, table) == by_job(lab, table)
    checkpoints_agree(lab, table)
    rows = [json.loads(line) for line in checkpoint_rows(table.with_name("t-ours"))]
    live = {row["add"]["path"] for row in rows if "add" in row}
    removed = {row["remove"]["path"] for row in rows if "remove" in row}
    assert len(live) == 11
    assert len(removed) == 1
    assert not live & removed


def test_every_reader_has_all_rows_from_the_checkpoint_alone(lab: DeltaLab, table: Path) -> None:
    log = our_log(lab, table)
    log.checkpoint(log.snapshot())
    for commit in sorted((table / "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()
    forget_logs(lab.spark)
    expected = list(range(11))
    assert sorted(row.id for row in lab.spark.read.format("delta").load(str(table)).collect()) == expected
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == expected
    assert sorted(scan(table)["id"].to_pylist()) == expected
    assert by_replay(lab, table) == by_job(lab, table), "the checkpoint is read as Delta's job reads it"


def test_removals_are_handed_on_from_one_checkpoint_to_the_next(lab: DeltaLab, table: Path) -> None:
    """Vacuum and time travel go by them."""
    log = our_log(lab, table)
    log.checkpoint(log.snapshot())
    write_deltalake(table, pa.table({"p": ["a"], "id": [99], "text": ["z"]}), mode="append")
    removed = [line for line in checkpoint_rows(table) if "deletionTimestamp" in line]
    again = our_log(lab, table)
    again.checkpoint(again.snapshot())
    assert [line for line in checkpoint_rows(table) if "deletionTimestamp" in line] == removed
    assert removed


@pytest.mark.long("contracts")
@pytest.mark.parametrize(
    "clause",
    [
        "",
        "CLUSTER BY (id)",
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
    ],
)
def test_tables_of_sparks_kinds_are_replayed(lab: DeltaLab, tmp_path: Path, clause: str) -> None:
    table = tmp_path / "t"
    lab.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, text STRING) USING delta {clause}")
    for number in range(2):
        options = {"txnAppId": "writer", "txnVersion": str(number)}
        frame = lab.spark.range(number * 10, number * 10 + 10).selectExpr("id", "cast(id AS STRING) AS text")
        frame.coalesce(1).write.format("delta").mode("append").options(**options).save(str(table))
    lab.sql(f"DELETE FROM delta.`{table}` WHERE id % 7 = 1")
    if "CLUSTER" in clause:
        lab.sql(f"OPTIMIZE delta.`{table}`")
    for checksum in (table / "_delta_log").glob("*.crc"):
        checksum.unlink()
    for checksum in (table / "_delta_log").glob(".*.crc"):
        checksum.unlink()
    assert by_replay(lab, table) == by_job(lab, table)
    checkpoints_agree(lab, table)
    expected = sorted(row.id for row in lab.spark.read.format("delta").load(str(table)).collect())
    ours = table.with_name("t-ours")
    forget_logs(lab.spark)
    assert sorted(row.id for row in lab.spark.read.format("delta").load(str(ours)).collect()) == expected


def test_what_streams_and_features_noted_is_handed_on(lab: DeltaLab, tmp_path: Path) -> None:
    """A stream that finds no note of its last batch writes it again."""
    table = tmp_path / "t"
    log = RandomCommits(1, table / "_delta_log")
    log.commits(12)
    assert by_replay(lab, table) == by_job(lab, table)
    checkpoints_agree(lab, table)
    rows = [json.loads(row) for row in checkpoint_rows(table.with_name("t-ours"))]
    assert {"txn", "domainMetadata", "remove", "add"} <= {name for row in rows for name in row}


def test_a_path_of_several_spellings_is_left_to_deltas_job(lab: DeltaLab, table: Path) -> None:
    log = table / "_delta_log"
    commit = max(log.glob("*.json"))
    added = {"path": "./p=a/odd.parquet", "partitionValues": {"p": "a"}, "size": 1, "modificationTime": 1}
    log.joinpath(f"{int(commit.stem) + 1:020d}.json").write_text(json.dumps({"add": {**added, "dataChange": True}}))
    assert by_replay(lab, table) is None
    ours = our_log(lab, table)
    assert len(json.loads(ours.files(ours.snapshot()))) == by_job(lab, table)[2]


def test_a_snapshot_that_counts_other_files_gets_no_checkpoint(lab: DeltaLab, table: Path) -> None:
    log = our_log(lab, table)
    snapshot = log.snapshot()
    wrong = lab.engine._scala.next_snapshot.carried(log.delta_log, snapshot, '{"commits": []}', 1, 1)
    with pytest.raises(Exception, match=r"the log has 11 files of \d+ bytes, the snapshot 12"):
        lab.engine._scala.checkpoint_file.write(log.delta_log, wrong, wrong.logSegment())
    assert not list((table / "_delta_log").glob("*checkpoint*"))


@pytest.mark.long("contracts")
def test_the_kernels_own_checkpoint_would_lose_restored_rows(lab: DeltaLab, table: Path) -> None:
    """If this fails, Delta has repaired it, and `CheckpointFile` may be replaced (docs/adr/0007)."""
    resolve = lab.engine._scala.resolve
    kernel = resolve("io.delta.kernel.defaults.engine.DefaultEngine").create(our_log(lab, table).hadoop_conf)
    resolve("io.delta.kernel.TableManager").loadSnapshot(str(table)).build(kernel).writeCheckpoint(kernel)
    rows = [json.loads(line) for line in checkpoint_rows(table)]
    live = {row["add"]["path"] for row in rows if "add" in row}
    assert live & {row["remove"]["path"] for row in rows if "remove" in row}
    assert lab.spark.read.format("delta").load(str(table)).count() < 11
