"""Tables in cells on real Iceberg: rows stay as they are, runs are bounded, and cells outlive snapshots."""

import asyncio
import time
from typing import Any

import pyarrow as pa
import pytest

from actor.cells.columns import CellColumn, Stored
from actor.formats.iceberg import cell_table
from actor.formats.iceberg.row_group_copy import IcebergCopier
from actor.ports import TableJob
from shared.errors import Corrupt, RefusedFiles, Unsupported
from shared.formats.iceberg.cell_names import name_prefix
from shared.jobs.options import ExpiryOptions
from shared.jobs.payload import EXPIRE
from shared.layout.cells.counts import CellFiles
from shared.layout.cells.tags import CELL_TAG
from shared.layout.clustered_files import ClusteredFiles
from shared.policy.policy import ClusterMode, Policy, RowGroupCopy
from shared.refusals import RefusalReason
from shared.table import CommitOrigin
from tests.support.clustered_rows import NUMBERS, RANDOM, VALUES, keys_of
from tests.support.iceberg_cells_table import POLICY, IcebergCellsTable
from tests.support.iceberg_foreign import ForeignWriter, field
from tests.support.iceberg_lab import IcebergLab
from tests.support.local_vacuum import Control

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
]

SMALL = {"a": "BIGINT", "b": "BIGINT"}
PAIRS = "CAST(rand({seed}) * 1000000 AS BIGINT) a; CAST(rand({seed} + 1) * 1000000 AS BIGINT) b"


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long("iceberg"))])
def test_runs_are_exact_and_bounded_and_come_to_rest(ice: IcebergLab, version: int) -> None:
    table = IcebergCellsTable(ice, NUMBERS, ("a", "b"), version=version)
    table.insert(10_000, RANDOM.format(seed=1), files=10)
    ice.sql(f"DELETE FROM {table.name} WHERE a % 50 = 3")
    before, ids = table.digest(), table.row_ids()
    once = table.run()
    assert (len(once.commits), table.digest()) == (1, before)
    assert once.figures["bytes_replaced"] <= 2 * POLICY.target_bytes
    assert once.figures["groups_proofread_by_rows"] == once.figures["operations"]
    report = table.report()
    assert (report["mode"], report["settled_files"]) == ("cluster", len(table.paths()) - len(table.ours()))
    assert report["left_bytes"] > 0
    done = table.run(force=True)
    assert len(done.commits) > 1
    assert done.figures["bytes_replaced"] <= len(done.commits) * 2 * POLICY.target_bytes
    assert (table.report()["left_bytes"], table.report()["settled_files"]) == (0, 0)
    assert (table.digest(), table.row_ids()) == (before, ids)
    assert table.require_lawful() > 3
    at_rest = table.run()
    assert (at_rest.commits, at_rest.reason) == ((), "nothing is due in the cells of the table")


@pytest.mark.long("iceberg")
@pytest.mark.parametrize("kind", VALUES)
def test_every_value_has_its_place_and_is_read_by_others_as_before(ice: IcebergLab, kind: str) -> None:
    kinds, values = VALUES[kind]
    kinds = {name: one.replace("SMALLINT", "INT") for name, one in kinds.items()}
    table = IcebergCellsTable(ice, kinds, keys_of(kinds))
    table.insert(5000, values, files=12)
    before, by_others = table.digest(), table.by_others()
    assert table.run(force=True).commits
    assert (table.digest(), table.by_others()) == (before, by_others)
    assert table.require_lawful() > 1 or kind == "equal keys"
    assert table.report()["left_bytes"] == 0
    assert table.run().commits == ()


def test_cells_outlive_the_snapshots_that_wrote_them_and_the_decider_counts_them(ice: IcebergLab) -> None:
    table = IcebergCellsTable(ice, SMALL, ("a", "b"))
    table.insert(30_000, PAIRS.format(seed=1), files=8)
    reader = ice.reader(table.name)
    at = asyncio.run(reader.snapshot())
    before = table.digest()
    table.run(force=True)
    cells, files = table.require_lawful(), table.cells()

    async def follow() -> CellFiles:
        counts = CellFiles(ClusteredFiles.of((file.size_bytes, CELL_TAG in file.tags) for file in at.files))
        assert counts.new_files == 8
        async for commit in reader.changes(at.position, at.metadata):
            assert (commit.data_change, commit.cells is None) == (False, False)
            counts = counts.after(commit)
        return counts

    counts = asyncio.run(follow())
    live = sum(file.size_bytes for file in asyncio.run(reader.snapshot()).files)
    assert (counts.new_files, counts.left_bytes, counts.files.clustered_bytes) == (0, 0, live)
    java = ice.java(table.name)
    java.expireSnapshots().expireOlderThan(2**62).retainLast(1).commit()
    table.insert(10, PAIRS.format(seed=4))
    java.refresh()
    java.expireSnapshots().expireOlderThan(2**62).retainLast(1).commit()
    assert cells > 2
    assert table.cells() == files
    tagged = [file for file in asyncio.run(reader.snapshot()).files if CELL_TAG in file.tags]
    assert len(tagged) == len(files)
    assert table.run().commits == (), "what is settled stays"
    table.insert(2000, PAIRS.format(seed=5), files=9)
    expected = table.digest()
    assert table.run(force=True).commits
    assert table.digest() == expected != before


@pytest.mark.long("iceberg")
@pytest.mark.parametrize("version", [2, 3])
def test_rows_never_leave_their_partition_and_its_spec(ice: IcebergLab, version: int) -> None:
    kinds, values = {**SMALL, "p": "STRING"}, f"{PAIRS.format(seed=1)}; IF(id % 3 = 0, null, concat('p', id % 3)) p"
    table = IcebergCellsTable(ice, kinds, ("a", "b"), version=version, parted="p")
    table.insert(30_000, values, files=3)
    ice.java(table.name).updateSpec().removeField("p").commit()
    table.insert(20_000, values.replace("rand(1)", "rand(7)"), files=4)
    ice.java(table.name).updateSpec().addField("p").commit()
    before, by_others = table.digest(), table.by_others()
    rows = table.rows_by_partition()
    assert len(rows) == 4
    assert table.run(force=True).commits
    assert (table.digest(), table.by_others(), table.rows_by_partition()) == (before, by_others, rows)
    assert (table.report()["left_bytes"], table.run().commits) == (0, ())
    assert table.require_lawful() > 4
    assert {partition for _, _, partition in table.cells()} == rows.keys()


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What tasks gave of each operation; None: Spark wrote it."""
    found: list[Any] = []
    divide = IcebergCopier.divide

    def noted(copier: IcebergCopier, *given: Any) -> Any:
        found.append(divide(copier, *given))
        return found[-1]

    monkeypatch.setattr(IcebergCopier, "divide", noted)
    return found


def test_values_that_are_not_a_number_hide_no_row_of_an_output(ice: IcebergLab, divided: list[Any]) -> None:
    """The count of all inputs could say that an output has nothing else, and readers would pass over it."""
    table, key = IcebergCellsTable(ice, {"a": "BIGINT", "d": "DOUBLE", "t": "STRING"}, ("a",)), "pmod(id * 7919, 5000)"
    table.insert(5000, f"{key} a; IF({key} < 2500, double('NaN'), 1.0) d; uuid() t")
    seen = [f"SELECT count(*) FROM {table.name} WHERE {one}" for one in ("d < 2", "isnan(d)", "d IS NULL")]
    assert table.run(force=True).commits
    assert (len(divided), None in divided, table.require_lawful()) == (1, False, 2)
    assert [ice.sql(one).collect()[0][0] for one in seen] == [2500, 2500, 0]
    d = "readable_metrics.d"
    told = ice.sql(f"SELECT {d}.nan_value_count, {d}.lower_bound, {d}.upper_bound FROM {table.name}.files").collect()
    assert [tuple(row) for row in told] == [(None, None, None)] * 2
    ice.sql(f"DELETE FROM {table.name} WHERE d < 2")
    assert [ice.sql(one).collect()[0][0] for one in seen] == [0, 2500, 0], "files are dropped by bounds"


def test_bounds_of_floats_are_those_of_the_rows_of_an_output(ice: IcebergLab, divided: list[Any]) -> None:
    """Iceberg answers the least and the greatest value by them where no deletes apply."""
    kinds, key = {"a": "BIGINT", "d": "DOUBLE", "z": "FLOAT", "t": "STRING"}, "pmod(id * 7919, 5000)"
    table = IcebergCellsTable(ice, kinds, ("a",))
    table.insert(5000, f"{key} a; double({key}) d; float(pmod({key}, 2)) z; uuid() t")
    ice.sql(f"DELETE FROM {table.name} WHERE a < 5 OR a >= 4990")
    assert table.run(force=True).commits
    assert (len(divided), None in divided, table.require_lawful()) == (1, False, 2)
    assert str([*ice.sql(f"SELECT min(d), max(d), min(z) FROM {table.name}").collect()[0]]) == "[5.0, 4989.0, 0.0]"
    d = "readable_metrics.d"
    told = ice.sql(f"SELECT {d}.nan_value_count, {d}.lower_bound, {d}.upper_bound FROM {table.name}.files").collect()
    (_, least, below), (_, above, greatest) = sorted(tuple(row) for row in told)
    assert (least, above - below, greatest) == (5.0, 1.0, 4989.0)


def test_spark_moves_the_rows_of_a_table_whose_row_groups_are_never_copied(ice: IcebergLab, divided: list[Any]) -> None:
    table = IcebergCellsTable(ice, SMALL, ("a", "b"))
    table.insert(600, PAIRS.format(seed=1), files=3)
    before = table.digest()
    assert table.run(force=True, row_group_copy=RowGroupCopy.NEVER).commits
    assert ({*divided}, table.digest()) == ({None}, before)


@pytest.mark.long("iceberg")
def test_rows_that_are_deleted_by_value_stay_deleted_before_and_during_a_run(
    ice: IcebergLab, divided: list[Any]
) -> None:
    table = IcebergCellsTable(ice, SMALL, ("a", "b"))
    table.insert(20_000, "id a; pmod(id * 7919, 20000) b", files=4)
    key = pa.schema([field("a", pa.int64(), {"a": 1})])
    writer, control = ForeignWriter(ice, table.name), Control()
    writer.delete_values(pa.table({"a": [*range(0, 20_000, 10)]}, schema=key), [1])
    assert table.digest()[0] == 18_000

    def others(change: int) -> None:
        if change == 2:  # The files are written.
            writer.delete_values(pa.table({"a": [3, 4, 5]}, schema=key), [1])

    control.before_change = others
    assert table.run(control=control).commits
    assert table.digest()[0] == 17_997
    table.run(force=True)
    assert table.digest()[0] == 17_997
    left = ice.sql(f"SELECT a FROM {table.name} WHERE a < 12").collect()
    assert sorted(row[0] for row in left) == [1, 2, 6, 7, 8, 9, 11]
    assert None not in divided, "tasks leave them out"


@pytest.mark.long("iceberg")
@pytest.mark.parametrize("kept", [0, 3000])
def test_rows_that_are_deleted_by_value_make_no_cells(ice: IcebergLab, kept: int) -> None:
    """No log counts them: a split finds out, and is a purge."""
    table = IcebergCellsTable(ice, SMALL, ("a", "b"))
    table.insert(60_000, "id a; pmod(id * 7919, 60000) b", files=4)
    key = pa.schema([field("a", pa.int64(), {"a": 1})])
    ForeignWriter(ice, table.name).delete_values(pa.table({"a": [*range(kept, 60_000)]}, schema=key), [1])
    before = table.digest()
    assert before[0] == kept
    assert table.run(force=True).commits
    assert (table.digest(), table.run().commits) == (before, ())
    assert table.require_lawful() <= 1


@pytest.mark.parametrize("key", ["IF(id % 2 = 0, null, id)", "IF(id = 12345, 8, 7)"], ids=["in turns", "an outlier"])
def test_keys_that_a_sample_leaves_out_have_no_run_again_and_again(ice: IcebergLab, key: str) -> None:
    table, control = IcebergCellsTable(ice, {"a": "BIGINT", "t": "STRING"}, ("a",)), Control()
    table.insert(20_000, f"CAST({key} AS BIGINT) a; uuid() t")
    before, control.stop_after = table.digest(), 20
    done = table.run(force=True, control=control)
    assert (len(done.commits) < 20, table.digest(), table.report()["left_bytes"]) == (True, before, 0)
    assert table.require_lawful() > 1
    assert table.run().commits == ()


@pytest.mark.long("iceberg")
def test_rows_that_stay_when_others_are_over_stay_in_their_cells(ice: IcebergLab) -> None:
    rule = "90 days of ts, rows"
    properties = {"lakewright.delete-rows-after": rule}
    table = IcebergCellsTable(ice, {"a": "BIGINT", "ts": "TIMESTAMP"}, ("a",), properties=properties)
    table.insert(30_000, "CAST(rand(1) * 1000000 AS BIGINT) a; current_timestamp() - make_dt_interval(id % 100) ts", 2)
    table.run(force=True)
    cells = table.require_lawful()
    policy, options = Policy(delete_rows_after=rule), ExpiryOptions(int(time.time() * 1000)).encode()
    job = TableJob(EXPIRE, ice.location(table.name), policy, CommitOrigin("job", 8), options=options)
    assert ice.engine.run_table_job(job, Control()).figures["rows_removed"] > 2000
    assert table.ours() == table.paths()
    assert table.require_lawful() == cells > 1
    assert table.run().commits == ()


@pytest.mark.long("iceberg")
def test_a_file_that_is_live_twice_is_not_rewritten(ice: IcebergLab) -> None:
    """A removal by path removes both, and the rows would be written once."""
    table = IcebergCellsTable(ice, SMALL, ("a", "b"))
    table.insert(30_000, PAIRS.format(seed=1), files=2)
    java = ice.java(table.name)
    java.newAppend().appendFile(java.newScan().planFiles().iterator().next().file()).commit()
    before, snapshot = table.digest(), java.currentSnapshot().snapshotId()
    assert before[0] == 45_000
    with pytest.raises(Corrupt, match="live twice"):
        table.run(force=True)
    java.refresh()
    assert (table.digest(), java.currentSnapshot().snapshotId()) == (before, snapshot)


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long("iceberg"))])
def test_what_others_delete_or_roll_back_during_a_run_has_it_planned_again(ice: IcebergLab, version: int) -> None:
    table = IcebergCellsTable(ice, SMALL, ("a", "b"), version=version)
    table.insert(20_000, PAIRS.format(seed=1))
    table.insert(100, PAIRS.format(seed=9))
    first = ice.java(table.name).currentSnapshot().parentId()
    control, expected = Control(), list[object]()

    def others(change: int) -> None:
        if change == 2:  # The files are written.
            ice.sql(f"DELETE FROM {table.name} WHERE a % 10 = 3")
            table.insert(50, PAIRS.format(seed=5))
            expected.append(table.digest())

    control.before_change = others
    done = table.run(control=control)
    assert len(done.commits) == 1
    assert expected == [table.digest()]
    assert done.figures["files_written"] == len(table.ours())
    assert table.unknown_files() == set(), "what was written for nothing is deleted"

    def rolled_back(change: int) -> None:
        if change == 2:
            ice.java(table.name).manageSnapshots().rollbackTo(first).commit()
            expected.append(table.digest())

    again = Control()
    again.before_change = rolled_back
    table.insert(20_000, PAIRS.format(seed=6), files=2)
    assert table.run(control=again).commits
    assert expected[1] == table.digest()


def test_a_run_of_which_others_change_one_group_is_planned_again_as_a_whole(ice: IcebergLab) -> None:
    """What it reports as left follows from all of its groups."""
    table, control = IcebergCellsTable(ice, {**SMALL, "p": "INT"}, ("a", "b"), parted="p"), Control()
    table.insert(600, f"{PAIRS.format(seed=1)}; CAST(id % 2 AS INT) p", files=3)
    expected = list[object]()

    def others(change: int) -> None:
        if change == 2:  # The files are written.
            ice.sql(f"DELETE FROM {table.name} WHERE p = 0 AND a % 2 = 0")
            expected.append(table.digest())

    control.before_change = others
    done = table.run(control=control)
    assert (len(done.commits), expected) == (1, [table.digest()])
    assert done.figures["files_written"] == len(table.ours()) == 2


def test_an_output_without_bounds_is_refused_and_never_committed(ice: IcebergLab) -> None:
    table = IcebergCellsTable(ice, {"t": "STRING"}, ("t",))
    table.insert(300, "repeat(decode(X'F48FBFBF', 'UTF-8'), 20) t", files=4)
    before = table.paths()
    with pytest.raises(RefusedFiles, match="no bounds of 't'") as refused:
        table.run()
    assert refused.value.reason is RefusalReason.BOUNDS
    assert (table.paths(), table.unknown_files()) == (before, set())


def test_an_output_outside_of_its_cell_is_never_committed(ice: IcebergLab, monkeypatch: pytest.MonkeyPatch) -> None:
    table = IcebergCellsTable(ice, SMALL, ("a", "b"))
    table.insert(30_000, PAIRS.format(seed=1), files=3)
    before, files = table.paths(), ice.files_on_disk(table.name)
    below, bound = CellColumn.below, Stored.bound
    for by_spark in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(CellColumn, "below", lambda column, at: below(column, at + 50_000))
            patch.setattr(Stored, "bound", lambda stored, at: bound(stored, at + 50_000))
            if by_spark:
                patch.setattr(IcebergCopier, "divide", lambda *_: None)
            with pytest.raises(Corrupt, match="outside of its cell"):
                table.run()
    assert (table.paths(), ice.files_on_disk(table.name)) == (before, files)
    with monkeypatch.context() as patch:
        other = name_prefix('[[["1","n"],null,1],[["2","n"],null,null]]')
        patch.setattr(cell_table, "name_prefix", lambda tag: name_prefix(tag) if tag == "[]" else other)
        with pytest.raises(Corrupt, match="is not of the cell"):
            table.run()
        patch.setattr(cell_table, "name_prefix", lambda tag: name_prefix(tag) if tag == "[]" else "")
        with pytest.raises(RefusedFiles, match="does not keep the names"):
            table.run()
    assert (table.paths(), ice.files_on_disk(table.name)) == (before, files)


class FlatNames:
    """Our class of cells on a table whose location provider chooses names of its own."""

    def __init__(self, cells: Any) -> None:
        self._cells = cells

    def location(self, table: Any, name: str) -> str:
        return str(self._cells.location(table, name)).replace("cell.", "")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cells, name)


def test_columns_without_bounds_and_tables_that_ask_for_no_cells_are_refused_before_anything_is_written(
    ice: IcebergLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = IcebergCellsTable(ice, NUMBERS, ("a", "t"))
    assert table.run(force=True).commits == (), "it is empty"
    table.insert(300, RANDOM.format(seed=1), files=4)
    files = ice.files_on_disk(table.name)
    for mode in ("none", "counts", "truncate(1)"):
        ice.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('write.metadata.metrics.column.t' = '{mode}')")
        with pytest.raises(RefusedFiles, match="'t'") as refused:
            table.run(force=True)
        assert refused.value.reason is RefusalReason.BOUNDS
    for changed in ({"cluster_by": None}, {"cluster": ClusterMode.ON}, {"cluster_by": "a, gone"}):
        with pytest.raises(Unsupported, match="cluster-by"):
            table.run(**changed)
    ice.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('write.metadata.metrics.column.t' = 'full')")
    monkeypatch.setattr(ice.engine._scala, "iceberg_cells", FlatNames(ice.engine._scala.iceberg_cells))
    with pytest.raises(RefusedFiles, match="does not keep the names") as refused:
        table.run(force=True)
    assert refused.value.reason is RefusalReason.UNSUPPORTED
    ice.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('write.format.default' = 'avro')")
    with pytest.raises(RefusedFiles, match=r"set write\.format\.default to parquet") as refused:
        table.run(force=True)
    assert refused.value.reason is RefusalReason.BOUNDS
    assert ice.files_on_disk(table.name) == files


ODD = {
    "in hashed folders": ({"write.object-storage.enabled": "true"}, PAIRS),
    "in hashed folders of partitions": (
        {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"},
        PAIRS,
    ),
    "of ORC": ({"write.format.default": "orc"}, PAIRS),
    "of version 1": ({"format-version": "1", "write.delete.mode": "copy-on-write"}, PAIRS),
    "of long texts": ({}, "CAST(rand({seed}) * 1000 AS BIGINT) a; repeat(uuid(), 150) b"),
}


@pytest.mark.long("iceberg")
@pytest.mark.parametrize("kind", ODD)
def test_files_of_any_table_have_names_of_cells(ice: IcebergLab, kind: str) -> None:
    properties, values = ODD[kind]
    kinds = {"a": "BIGINT", "b": "STRING" if "texts" in kind else "BIGINT"}
    parted = "bucket(2, a)" if "partitions" in kind else ""
    table = IcebergCellsTable(ice, kinds, ("a", "b"), parted=parted, properties=properties)
    table.insert(2000 if "texts" in kind else 20_000, values.format(seed=1), files=4)
    ice.sql(f"DELETE FROM {table.name} WHERE a % 50 = 3")
    before = table.digest()
    assert table.run(force=True).commits
    assert (table.digest(), table.report()["left_bytes"], table.run().commits) == (before, 0, ())
    assert table.require_lawful() > 1 or "texts" in kind
    assert table.ours() == table.paths()
    assert table.unknown_files() == set()


@pytest.mark.long("iceberg")
def test_cells_belong_to_fields_whatever_their_names_and_types_become(ice: IcebergLab) -> None:
    table = IcebergCellsTable(ice, {"a": "INT", "b": "FLOAT", "c": "STRING"}, ("a", "b"))
    table.insert(30_000, "CAST(rand(1) * 1000000 AS INT) a; CAST(rand(2) AS FLOAT) b; concat('c', id % 7) c", files=4)
    table.run(force=True)
    cells = table.require_lawful()
    assert cells > 2
    ice.sql(f"ALTER TABLE {table.name} RENAME COLUMN a TO renamed")
    with pytest.raises(RefusedFiles, match="'a'"):
        table.run()
    table.cluster_by("renamed", "b")
    assert (table.require_lawful(), table.run().commits) == (cells, ())
    ice.sql(f"ALTER TABLE {table.name} ALTER COLUMN renamed TYPE BIGINT")
    ice.sql(f"ALTER TABLE {table.name} ALTER COLUMN b TYPE DOUBLE")
    before = table.digest()
    table.insert(5000, "CAST(rand(3) * 10000000000 AS BIGINT) renamed; rand(4) b; 'new' c", files=3)
    table.run(force=True)
    assert table.report()["left_bytes"] == 0
    table.cluster_by("c", "b")
    assert {cell for cell, _, _ in table.cells()} == {None}, "cells of other columns are none"
    expected = table.digest()
    assert table.run(force=True).commits
    assert (table.digest(), table.report()["left_bytes"]) == (expected, 0) != (before, 0)
    ice.sql(f"ALTER TABLE {table.name} DROP COLUMN renamed")
    assert table.run(force=True).commits == ()


@pytest.mark.long("iceberg")
def test_what_a_rewrite_of_others_mixes_goes_down_again(ice: IcebergLab) -> None:
    table = IcebergCellsTable(ice, SMALL, ("a", "b"))
    table.insert(30_000, PAIRS.format(seed=1), files=5)
    table.run(force=True)
    cells, before = table.require_lawful(), table.digest()
    ice.sql("CALL ice.system.rewrite_data_files(table => 'db.cells', options => map('rewrite-all', 'true'))")
    assert (table.ours(), table.digest()) == (set(), before)
    assert table.run(force=True).commits
    assert (table.digest(), table.report()["left_bytes"]) == (before, 0)
    assert table.require_lawful() >= cells


MAX_ROUND_TRIPS = 105
"""Calls of a run from Python into the JVM, of which nine delete files that hide nothing any more take two each."""


def test_a_run_takes_few_round_trips_to_the_jvm(ice: IcebergLab, monkeypatch: pytest.MonkeyPatch) -> None:
    table = IcebergCellsTable(ice, SMALL, ("a", "b"))
    table.insert(30_000, PAIRS.format(seed=1), files=3)
    table.run(force=True)
    table.insert(3_000, PAIRS.format(seed=2), files=9)
    ice.sql(f"DELETE FROM {table.name} WHERE a % 50 = 3")
    made = ice.round_trips(monkeypatch)
    assert table.run().figures["operations"] == 1
    assert len(made) <= MAX_ROUND_TRIPS, "\n".join(made)


@pytest.mark.long("iceberg")
def test_a_run_costs_what_is_new_and_not_what_the_table_holds(ice: IcebergLab) -> None:
    table = IcebergCellsTable(ice, SMALL, ("a", "b"))
    costs = []
    for number in range(2):
        table.insert(60_000 * 3**number, PAIRS.format(seed=2 * number), files=4 * 3**number)
        table.run(force=True)
        table.insert(4_000, PAIRS.format(seed=100 + number), files=4)
        done = table.run(force=True)
        costs.append(done.figures.get("bytes_replaced", 0))
    size = sum(one.size_bytes for one in table.boxes())
    assert size > 20 * POLICY.target_bytes
    assert max(costs) <= 4 * POLICY.target_bytes
