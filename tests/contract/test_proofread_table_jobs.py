"""Removals by key and clustering are compared with their inputs before the commit, on real Delta tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actor.formats.delta.log import TableLog
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.row_removal import RemovalWriter
from actor.formats.delta.superseded_rows import REMOVED, SupersededRows
from shared.errors import Conflict, Difference
from shared.layout.partition_stats import CUBE_TAG
from shared.policy.policy import Policy
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import commit_info, newest
from tests.support.keyed_table import MARKED, KeyedTable
from tests.support.local_vacuum import Control

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
from tests.support.clustered_table import ClusteredTable  # noqa: E402 - needs pyarrow

pytestmark = pytest.mark.spark

FEED = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"


def keyed(lab: DeltaLab, more: str = "") -> KeyedTable:
    table = KeyedTable(lab, "t", FEED.replace(")", f"{more})"))
    table.append((1, 1, "a", None), (1, 2, "b", None), (2, 1, "c", None), (3, 1, "d", None))
    table.append((2, 2, "e", True), (None, 1, "f", None), (None, 1, "g", None))
    lab.sql(f"DELETE FROM {table.name} WHERE id = 3")
    return table


@pytest.mark.parametrize("more", ["", ", 'delta.enableRowTracking' = 'true'"])
def test_a_removal_and_its_change_feed_are_compared_by_the_readers_own_search(lab: DeltaLab, more: str) -> None:
    table = keyed(lab, more)
    done = table.run()
    assert table.rows() == [(1, 2, "b"), (None, 1, "f"), (None, 1, "g")]
    assert compared_by(table.path, done.commits[0]) == "rows"
    assert (done.figures["groups_proofread_by_rows"], done.figures["rows_removed"]) == (1, 3)


def other_value(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """This value becomes another one in whatever is written."""
    without = RemovalWriter._without

    def planted(writer: RemovalWriter, marked: Any) -> Any:
        changed = writer._scala.resolve("org.apache.spark.sql.functions").expr(f"if(v = '{value}', 'x', v)")
        return without(writer, marked).withColumn("v", changed)

    monkeypatch.setattr(RemovalWriter, "_without", planted)


def other_row(monkeypatch: pytest.MonkeyPatch, _value: str) -> None:
    """Of key 1 the newer row goes and the older one stays: as many rows as is right."""
    mark = SupersededRows.mark

    def planted(rows: SupersededRows, frame: Any) -> Any:
        changed = rows._functions.expr(f"if(id = 1, NOT {REMOVED}, {REMOVED})")
        return mark(rows, frame).withColumn(REMOVED, changed)

    monkeypatch.setattr(SupersededRows, "mark", planted)


@pytest.mark.parametrize(
    ("plant", "value"),
    [(other_value, "b"), (other_value, "a"), (other_row, "")],
    ids=["a row that stays", "a row of the change data feed", "which row stays"],
)
def test_a_removal_that_changes_a_row_or_takes_another_is_never_committed(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch, str], None], value: str
) -> None:
    table = keyed(lab)
    rows, version, files = table.rows(), newest(table.path), set(table.path.rglob("*.parquet"))
    plant(monkeypatch, value)
    with pytest.raises(Difference, match="nothing was committed"):
        table.run()
    assert (table.rows(), newest(table.path), set(table.path.rglob("*.parquet"))) == (rows, version, files)


def test_a_removal_that_is_not_compared_says_so(lab: DeltaLab) -> None:
    table = KeyedTable(lab, "t")
    table.append((1, 1, "a", None), (1, 2, "b", None))
    done = table.run(Policy(primary_key="id", sequence_by="ts", proofread=MARKED.proofread.NEVER))
    assert (done.figures["groups_unverified"], table.rows()) == (1, [(1, 2, "b")])
    assert compared_by(table.path, done.commits[0]) == "unverified"


def compared_by(path: Path, version: int) -> str:
    return str(json.loads(commit_info(path, version)["userMetadata"])["lakewright"]["proofread"])


def clustered(lab: DeltaLab) -> ClusteredTable:
    """A table whose schema forbids nulls that its files hold, as writers without checks leave them."""
    table, file = ClusteredTable(lab, "t", "k BIGINT, n BIGINT NOT NULL"), lab.directory / "rows.parquet"
    for at in range(8):
        columns = {"k": [at, 9 - at, at], "n": [at, None, 7]}
        pq.write_table(pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()}), file)
        table.append(file)
    file.unlink()
    return table


def rows_of(table: ClusteredTable) -> list[tuple[Any, ...]]:
    stored = [row for add in table.live() for row in pq.read_table(table.path / add["path"]).to_pylist()]
    return sorted((tuple(row.values()) for row in stored), key=repr)


def files_of(table: ClusteredTable) -> set[Path]:
    return set(table.path.rglob("*.parquet"))


def test_clustering_reads_files_as_they_are_and_is_compared_before_its_commit(lab: DeltaLab) -> None:
    table = clustered(lab)
    before = rows_of(table)
    control = Control()
    control.before_change = lambda change: table.append(copied(table)) if change == 2 else None
    done = table.run(force=True, control=control)
    assert rows_of(table) == sorted([*before, *rows_in(copied(table))], key=repr)
    info = commit_info(table.path, done.commits[0])
    assert compared_by(table.path, done.commits[0]) == "rows"
    assert (info["operation"], "k" in info["operationParameters"]["clusterBy"]) == ("OPTIMIZE", True)
    assert [CUBE_TAG in (add.get("tags") or {}) for add in table.live()].count(False) == 1
    assert all(add["clusteringProvider"] == "liquid" for add in table.live() if add.get("tags"))
    assert (done.figures["groups_proofread_by_rows"], done.figures["files_replaced"]) == (1, 8)


def copied(table: ClusteredTable) -> Path:
    file = table.lab.directory / "late.parquet"
    pq.write_table(pa.table({"k": pa.array([5], pa.int64()), "n": pa.array([None], pa.int64())}), file)
    return file


def rows_in(file: Path) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in pq.read_table(file).to_pylist()]


def test_clustering_that_changes_a_value_is_never_committed(lab: DeltaLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark does under the schema as it is declared: a null becomes the value of the row before."""
    table = clustered(lab)
    rows, version, files = rows_of(table), newest(table.path), files_of(table)
    monkeypatch.setattr(TableLog, "stored", lambda _log, snapshot: snapshot)
    with pytest.raises(Difference, match="n: 8 nulls in, 0 out"):
        table.run(force=True)
    monkeypatch.setattr(Proofs, "_compare_footers", lambda *_, **__: None)
    with pytest.raises(Difference, match="columns n"):
        table.run(force=True)
    assert (rows_of(table), newest(table.path), files_of(table)) == (rows, version, files)


def test_clustering_whose_files_others_take_meanwhile_is_not_committed_and_leaves_nothing(lab: DeltaLab) -> None:
    table = clustered(lab)
    control = Control()
    control.before_change = lambda change: lab.sql(f"DELETE FROM {table.name} WHERE k = 0") if change == 2 else None
    with pytest.raises(Conflict, match="while they were clustered"):
        table.run(force=True, control=control)
    assert not any(CUBE_TAG in (add.get("tags") or {}) for add in table.live())
    assert len(files_of(table)) <= 8 + 2
