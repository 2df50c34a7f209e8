"""The checkpoint after a rewrite at the table's interval: what Delta writes by itself, and enough for every reader."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake

from actor.formats.delta.delta_scala import DeltaScala
from actor.jvm.scala import jvm_session
from tests.support.aged_table import forget_logs
from tests.support.checkpoints import checkpoint_rows
from tests.support.delta_lab import DeltaLab

pytestmark = pytest.mark.spark

QUIET = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
COMMITS = 10
"""Those of the writer: the rewrite is the version of Delta's default interval."""


def write(table: Path) -> None:
    for number in range(COMMITS):
        rows = pa.table({"p": ["a", "b"], "id": [2 * number, 2 * number + 1], "text": [f"t{number}", None]})
        write_deltalake(table, rows, mode="append", partition_by=["p"], post_commithook_properties=QUIET)


def rewrite(lab: DeltaLab, table: Path) -> None:
    location = table.as_uri()
    outcome = lab.rewrite(location, [lab.group(location, lab.partition(p="a"), count=6)])
    assert outcome.version == COMMITS


def checkpoint(table: Path) -> Path:
    return table / "_delta_log" / f"{COMMITS:020d}.checkpoint.parquet"


@pytest.mark.long("contracts")
def test_the_checkpoint_is_the_one_that_delta_writes(lab: DeltaLab, tmp_path: Path) -> None:
    ours, deltas = tmp_path / "ours", tmp_path / "deltas"
    write(ours)
    rewrite(lab, ours)
    shutil.copytree(ours, deltas)
    checkpoint(deltas).unlink()
    (deltas / "_delta_log" / "_last_checkpoint").unlink()
    forget_logs(lab.spark)
    scala = DeltaScala(lab.spark)
    log = scala.delta_log.forTable(jvm_session(lab.spark), str(deltas))
    log.checkpoint(log.update(False, scala.none, scala.none), scala.none)
    assert checkpoint_rows(ours) == checkpoint_rows(deltas)
    named = [json.loads((table / "_delta_log" / "_last_checkpoint").read_text()) for table in (ours, deltas)]
    for last in named:
        assert (last["version"], last["size"], last["numOfAddFiles"]) == (COMMITS, 2 + 15 + 6, 15)


@pytest.mark.long("contracts")
@pytest.mark.parametrize(("theirs", "is_written"), [(0, True), (1, False), (COMMITS - 1, False)])
def test_a_checkpoint_of_another_engine_within_the_interval_is_enough(
    lab: DeltaLab, tmp_path: Path, theirs: int, is_written: bool
) -> None:
    """delta-rs writes its own after the versions before: 9, 19, 29."""
    table = tmp_path / "t"
    write(table)
    at = DeltaTable(table, version=theirs)
    at.create_checkpoint()
    assert json.loads((table / "_delta_log" / "_last_checkpoint").read_text())["version"] == theirs
    rewrite(lab, table)
    assert checkpoint(table).exists() is is_written


@pytest.mark.long("contracts")
def test_a_checkpoint_is_written_where_the_record_of_the_last_one_cannot_be_read(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(table)
    (table / "_delta_log" / "_last_checkpoint").write_text('{"version":')
    rewrite(lab, table)
    assert checkpoint(table).exists()
