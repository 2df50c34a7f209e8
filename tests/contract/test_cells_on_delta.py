"""Tables in cells on real Delta: rows stay as they are, runs are bounded, and others leave our files alone."""

import json

import pytest
from deltalake import DeltaTable

from actor.cells.columns import CellColumn, Stored
from actor.formats.delta import cell_writer
from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.cell_scatter import CellScatter
from actor.formats.delta.cell_writer import CellWriter
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.row_tasks import LeftToSpark
from shared.errors import Corrupt, RefusedFiles
from shared.formats.delta import FORMAT
from shared.layout.cells.routes import Route
from shared.paths.sql_text import cluster_by, set_properties
from shared.refusals import RefusalReason
from tests.support.cells_table import POLICY, CellsTable
from tests.support.clustered_rows import NUMBERS, RANDOM, VALUES, keys_of
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import added, commit_info, newest
from tests.support.duckdb_extensions import scan
from tests.support.local_vacuum import Control
from tests.support.long_suites import beyond, pairs_first

pytestmark = pytest.mark.spark

SKEWED = ("IF(id % 2 = 0, null, id)", "IF(id = 12345, 8, 7)")
"""Keys in turns, and with an outlier."""
MAPPED = "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"


@pytest.mark.long("care")
def test_runs_are_exact_and_bounded_come_to_rest_and_others_leave_our_files_alone(lab: DeltaLab) -> None:
    table = CellsTable(lab, NUMBERS, ("a", "b"), MAPPED)
    table.insert(10_000, RANDOM.format(seed=1), files=10)
    lab.sql(f"DELETE FROM {table.name} WHERE a % 50 = 3")
    before = table.digest()
    once = table.run()
    assert (len(once.commits), table.digest()) == (1, before)
    assert once.figures["bytes_replaced"] <= 2 * POLICY.target_bytes
    assert once.figures["groups_proofread_by_rows"] == 1
    report = table.report()
    assert (report["mode"], report["settled_files"]) == ("cluster", len(table.live()) - len(table.ours()))
    assert report["left_bytes"] > 0
    done = table.run(force=True)
    assert len(done.commits) > 1
    assert done.figures["bytes_replaced"] <= len(done.commits) * 2 * POLICY.target_bytes
    assert (table.report()["left_bytes"], table.report()["settled_files"]) == (0, 0)
    assert table.digest() == before
    assert table.require_lawful() > 5
    at_rest = table.run()
    assert (at_rest.commits, at_rest.reason) == ((), "nothing is due in the cells of the table")

    source = f"(SELECT CAST(a + 1 AS BIGINT) a, b, t FROM {table.name} WHERE b % 40 = 5)"
    for statement in (
        "OPTIMIZE {t}",
        f"MERGE INTO {{t}} USING {source} s ON {{t}}.t = s.t WHEN MATCHED THEN UPDATE SET a = s.a",
        "ALTER TABLE {t} RENAME COLUMN a TO renamed",
        "DELETE FROM {t} WHERE b % 40 = 7",
    ):
        lab.sql(statement.format(t=table.name))
        before, ours = table.digest(), table.ours()
        lab.sql(f"OPTIMIZE {table.name}")
        assert table.ours() == ours, f"OPTIMIZE after {statement} rewrote files of ours"
        assert table.digest() == before
    assert table.require_lawful() > 5, "names in files stay"
    restored, cells = table.digest(), table.cells()
    table.run(force=True)
    lab.sql(f"RESTORE TABLE {table.name} TO VERSION AS OF {newest(table.path) - 1}")
    assert table.digest() == restored
    lab.sql(f"ALTER TABLE {table.name} CLUSTER BY (b)")
    assert {cell for cell, _ in table.cells()} == {None}, "cells of other columns are none"
    assert cells
    assert table.run(force=True).commits
    assert (table.digest(), table.report()["left_bytes"]) == (restored, 0)
    assert table.require_lawful() > 5


@pytest.mark.long("care")
def test_what_other_statements_of_deltas_do_with_our_files_leaves_rows_as_they_are(lab: DeltaLab) -> None:
    table = CellsTable(lab, NUMBERS, ("a", "b"), "'delta.enableDeletionVectors' = 'true'")
    table.insert(4000, RANDOM.format(seed=1), files=4)
    table.run(force=True)
    lab.sql(f"DELETE FROM {table.name} WHERE b % 40 = 7")
    before, ours = table.digest(), table.ours()
    lab.sql(f"REORG TABLE {table.name} APPLY (PURGE)")
    assert (table.ours(), table.digest()) == (ours, before), "a purge is left to a run of ours"
    lab.sql("SET spark.databricks.delta.autoCompact.enabled = true")
    lab.sql("SET spark.databricks.delta.autoCompact.minNumFiles = 2")
    try:
        table.insert(200, RANDOM.format(seed=2), files=6)
    finally:
        lab.sql("RESET spark.databricks.delta.autoCompact.enabled")
        lab.sql("RESET spark.databricks.delta.autoCompact.minNumFiles")
    assert commit_info(table.path, newest(table.path))["operation"] == "OPTIMIZE", "auto compaction ran"
    assert ours <= table.ours()
    before = table.digest()
    lab.sql(f"OPTIMIZE {table.name} FULL")
    assert (table.ours(), table.digest()) == (set(), before), "it takes all, as a person asked"
    assert table.run(force=True).commits
    assert (table.digest(), table.report()["left_bytes"]) == (before, 0)
    assert table.require_lawful() > 2


def test_a_table_without_an_order_is_taken_over_by_the_statements_of_an_advice(lab: DeltaLab) -> None:
    table = CellsTable(lab, NUMBERS, ())
    table.insert(10_000, RANDOM.format(seed=1), files=10)
    before, location = table.digest(), table.path.as_uri()
    lab.sql(cluster_by(location, "a, `b`", FORMAT))
    lab.sql(set_properties(location, {"lakewright.cluster": "cells"}, FORMAT))
    assert table.run(force=True).commits
    assert table.digest() == before
    assert table.require_lawful() > 5


@pytest.mark.parametrize("kind", VALUES)
def test_every_value_has_its_place(lab: DeltaLab, kind: str) -> None:
    kinds, values = VALUES[kind]
    table = CellsTable(lab, kinds, keys_of(kinds))
    table.insert(5000, values, files=12)
    before = table.digest()
    assert table.run(force=True).commits
    assert table.digest() == before
    assert table.require_lawful() > 2 or kind == "equal keys"
    assert table.report()["left_bytes"] == 0
    assert table.run().commits == ()


def test_runs_on_usual_tables_need_no_spark_job_and_outputs_are_bounded_in_all_columns(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = CellsTable(lab, {**NUMBERS, "x": "DOUBLE"}, ("a", "b"), "'delta.enableDeletionVectors' = 'true'")
    table.insert(3000, f"{RANDOM.format(seed=1)}; IF(id % 9 = 0, null, rand(5)) x", files=4)
    lab.sql(f"DELETE FROM {table.name} WHERE a % 10 = 3")
    before, values = table.digest(), lab.sql(f"SELECT min(x), max(x), count(*) - count(x), count(*) FROM {table.name}")
    monkeypatch.setattr(CellWriter, "_frame", lambda *_: pytest.fail("Spark reads the rows"))
    done = table.run(force=True)
    assert done.commits
    assert table.digest() == before
    assert table.require_lawful() > 1
    stats = [json.loads(add["stats"]) for add in table.live()]
    low, high, nulls = ([one[of]["x"] for one in stats] for of in ("minValues", "maxValues", "nullCount"))
    assert (min(low), max(high), sum(nulls), sum(one["numRecords"] for one in stats)) == tuple(values[0])
    assert all(one["minValues"]["t"] < one["maxValues"]["t"] for one in stats)


@pytest.mark.long("care")
def test_what_a_task_cannot_write_exactly_spark_writes_with_the_whole_run(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = CellsTable(lab, NUMBERS, ("a", "b"), "'delta.enableDeletionVectors' = 'true'")
    table.insert(10_000, RANDOM.format(seed=1), files=10)
    table.run(force=True)
    lab.sql(f"DELETE FROM {table.name} WHERE b % 3 = 0")
    before, old = table.digest(), set(table.path.rglob("*.parquet"))
    write, given_up = CellScatter.write, list[int]()

    def each_second(scatter: CellScatter, live: LiveGroup, route: Route, first: int) -> list[LoggedFile]:
        if first:
            given_up.append(first)
            raise LeftToSpark
        return write(scatter, live, route, first)

    monkeypatch.setattr(CellScatter, "write", each_second)
    done = table.run(force=True)
    assert (bool(given_up), table.digest(), table.report()["left_bytes"]) == (True, before, 0)
    assert table.require_lawful() > 5
    committed = {table.path / add["path"] for version in done.commits for add in added(table.path, version)}
    assert set(table.path.rglob("*.parquet")) - old == committed


@pytest.mark.parametrize("kind", ["of deleted rows alone", "of two writers"])
def test_odd_files_keep_their_rows(lab: DeltaLab, kind: str) -> None:
    table = CellsTable(lab, NUMBERS, ("a", "b"), "'delta.enableDeletionVectors' = 'true'")
    table.insert(3000, RANDOM.format(seed=1), files=3)
    if kind == "of deleted rows alone":
        table.insert(500, "CAST(7 AS BIGINT) a; id b; 'gone' t", files=1)
        lab.sql(f"DELETE FROM {table.name} WHERE a = 7 AND b < 499")
    else:
        lab.sql(f"ALTER TABLE {table.name} ADD COLUMN late INT")
        table.insert(500, f"{RANDOM.format(seed=3)}; CAST(id AS INT) late", files=2)
    before = table.digest()
    assert table.run(force=True).commits
    assert (table.digest(), table.report()["left_bytes"]) == (before, 0)
    assert table.require_lawful() > 1


@pytest.mark.parametrize(("by_spark", "key"), beyond(2, pairs_first((False, True), SKEWED), "care"))
def test_keys_that_a_sample_leaves_out_have_no_run_again_and_again(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch, key: str, *, by_spark: bool
) -> None:
    if by_spark:
        monkeypatch.setattr(cell_writer, "find_scatter", lambda *_: None)
    table, control = CellsTable(lab, {"a": "BIGINT", "t": "STRING"}, ("a",)), Control()
    table.insert(20_000, f"CAST({key} AS BIGINT) a; uuid() t")
    before, control.stop_after = table.digest(), 20
    done = table.run(force=True, control=control)
    assert (len(done.commits) < 20, table.digest(), table.report()["left_bytes"]) == (True, before, 0)
    assert table.require_lawful() > 1
    assert table.run().commits == ()


def test_a_table_whose_writers_note_no_bounds_is_refused_before_anything_is_written(lab: DeltaLab) -> None:
    table = CellsTable(lab, NUMBERS, ("a", "b"))
    table.insert(3000, RANDOM.format(seed=1), files=4)
    lab.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 't')")
    version, files = newest(table.path), set(table.path.rglob("*.parquet"))
    with pytest.raises(RefusedFiles, match="'a'") as refused:
        table.run(force=True)
    assert refused.value.reason is RefusalReason.BOUNDS
    assert (newest(table.path), set(table.path.rglob("*.parquet"))) == (version, files)


@pytest.mark.parametrize("by_spark", [False, True])
def test_an_output_outside_of_its_cell_is_never_committed(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch, *, by_spark: bool
) -> None:
    table = CellsTable(lab, NUMBERS, ("a", "b"))
    table.insert(3000, RANDOM.format(seed=1), files=4)
    version, files = newest(table.path), set(table.path.rglob("*.parquet"))
    below, bound = CellColumn.below, Stored.bound
    monkeypatch.setattr(CellColumn, "below", lambda column, at: below(column, at + 50_000))
    monkeypatch.setattr(Stored, "bound", lambda stored, at: bound(stored, at + 50_000))
    if by_spark:
        monkeypatch.setattr(cell_writer, "find_scatter", lambda *_: None)
    with pytest.raises(Corrupt, match="outside of its cell"):
        table.run()
    assert (newest(table.path), set(table.path.rglob("*.parquet"))) == (version, files)


def test_what_others_delete_during_a_run_has_it_planned_again(lab: DeltaLab) -> None:
    table = CellsTable(lab, NUMBERS, ("a", "b"), "'delta.enableDeletionVectors' = 'true'")
    table.insert(3000, RANDOM.format(seed=1), files=1)
    table.insert(10, RANDOM.format(seed=9))
    control, expected = Control(), list[object]()

    def others(change: int) -> None:
        if change == 2:  # The files are written.
            lab.sql(f"DELETE FROM {table.name} WHERE a % 10 = 3")
            table.insert(5, RANDOM.format(seed=5))
            expected.append(table.digest())

    control.before_change = others
    version = newest(table.path)
    done = table.run(control=control)
    assert done.commits == (version + 3,)
    assert expected == [table.digest()]
    assert done.figures["files_written"] == len(table.ours())


def test_other_engines_read_the_values_that_a_run_wrote(lab: DeltaLab) -> None:
    """DuckDB and deltalake; neither writes to tables with CLUSTER BY."""
    table = CellsTable(lab, NUMBERS, ("a", "b"))
    table.insert(3000, RANDOM.format(seed=1), files=6)
    rows = sorted(map(tuple, lab.sql(f"SELECT a, b, t FROM {table.name}")))
    assert table.run(force=True).commits
    by_deltalake = DeltaTable(str(table.path)).to_pyarrow_table()
    for found in (by_deltalake, scan(table.path)):
        assert sorted(zip(*found.select(["a", "b", "t"]).to_pydict().values(), strict=True)) == rows
