"""A checkpoint that the driver writes is whole, of its own version, and leaves alone what it does not know."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from py4j.protocol import Py4JError

from tests.contract.test_log_replay import RandomCommits, by_job, by_replay, deltas_log, our_log, restored
from tests.support.aged_table import forget_logs
from tests.support.checkpoint_rows import checkpoint_rows
from tests.support.delta_lab import DeltaLab

pytestmark = pytest.mark.spark


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return restored(tmp_path / "t")


@pytest.mark.parametrize("name", ["v2", "classic"])
def test_a_checkpoint_that_names_further_files_is_left_to_deltas_job(lab: DeltaLab, tmp_path: Path, name: str) -> None:
    """Its adds are in those. The protocol allows it under either name."""
    table, form = tmp_path / "t", "spark.databricks.delta.checkpointV2.topLevelFileFormat"
    lab.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')")
    for number in range(3):
        lab.sql(f"INSERT INTO delta.`{table}` VALUES ({number})")
    theirs, none = deltas_log(lab, table), lab.engine._scala.none
    lab.spark.conf.set(form, "parquet")
    lab.engine._scala.resolve("org.apache.spark.sql.SparkSession").setActiveSession(lab.spark._jsparkSession)
    theirs.checkpoint(theirs.update(False, none, none), none)
    lab.spark.conf.unset(form)
    log = table / "_delta_log"
    (made,) = log.glob("*.checkpoint.*.parquet")
    if name == "classic":
        made.rename(log / f"{made.name.partition('.')[0]}.checkpoint.parquet")
        (log / "_last_checkpoint").unlink()
    for file in [*log.glob("*.crc"), *log.glob(".*.crc")]:
        file.unlink(missing_ok=True)
    forget_logs(lab.spark)
    assert by_job(lab, table)[2] == 3
    assert by_replay(lab, table) is None
    ours = our_log(lab, table)
    assert len(json.loads(ours.few_files(ours.snapshot(), 10) or "[]")) == 3


def test_a_checkpoint_holds_its_own_version_although_others_have_committed_since(lab: DeltaLab, table: Path) -> None:
    log = our_log(lab, table)
    snapshot, expected = log.snapshot(), {json.loads(line)["path"] for line in by_job(lab, table)[4]}
    version = int(snapshot.version())
    write_deltalake(table, pa.table({"p": ["a"], "id": [99], "text": ["z"]}), mode="append")
    log.checkpoint(snapshot)
    assert (table / "_delta_log" / f"{version:020d}.checkpoint.parquet").exists()
    rows = [json.loads(line) for line in checkpoint_rows(table)]
    assert {row["add"]["path"] for row in rows if "add" in row} == expected


def test_a_checkpoint_that_is_there_stays_if_it_is_written_again(lab: DeltaLab, table: Path) -> None:
    """Two actors may do so at once, and readers rely on the first one from then on."""
    log = our_log(lab, table)
    snapshot = log.snapshot()
    for _ in range(2):
        assert lab.engine._scala.checkpoint_file.write(log.delta_log, snapshot, snapshot.logSegment())
    rows = [json.loads(line) for line in checkpoint_rows(table)]
    assert sum("add" in row for row in rows) == 11


def test_a_checkpoint_for_which_the_disk_has_no_room_leaves_nothing_and_is_written_later(
    lab: DeltaLab, small_disk: Path
) -> None:
    table = small_disk / "t"
    log = RandomCommits(1, table / "_delta_log")
    log.commits(40)
    before = sorted(path.name for path in (table / "_delta_log").iterdir())
    ours = our_log(lab, table)
    snapshot = ours.snapshot()
    balloon = small_disk / "balloon"
    balloon.write_bytes(bytes(shutil.disk_usage(small_disk).free - 4096))  # One page is left: a file can be begun.
    with pytest.raises(Exception, match="No space left on device"):
        lab.engine._scala.checkpoint_file.write(ours.delta_log, snapshot, snapshot.logSegment())
    assert sorted(path.name for path in (table / "_delta_log").iterdir()) == before
    with suppress(Py4JError):  # Delta's job, which is asked next, finds no room either.
        ours.checkpoint(snapshot)
    assert not (table / "_delta_log" / "_last_checkpoint").exists()
    balloon.unlink()
    ours.checkpoint(snapshot)
    rows = [json.loads(line) for line in checkpoint_rows(table)]
    assert by_replay(lab, table) == by_job(lab, table)
    assert sum("add" in row for row in rows) == by_job(lab, table)[2]
