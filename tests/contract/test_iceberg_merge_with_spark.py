"""Delete files that Spark's statements left are merged by the engine: its statements beside and after lose nothing."""

from typing import TYPE_CHECKING

import pytest

from actor.formats.iceberg.inputs import LiveInput
from actor.formats.iceberg.java_deletes import JavaDeletes
from actor.ports import TableJob, TableJobOutcome
from shared.layout.upkeep import MERGE_DELETES
from shared.policy.policy import Policy, Proofread
from shared.table import CommitOrigin, DeleteKind
from tests.contract.test_iceberg_copy import read_by_others
from tests.contract.test_iceberg_rewrite import MERGE_ON_READ
from tests.support.local_vacuum import Control

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]


def merge(ice: "IcebergLab", table: str, control: Control | None = None) -> TableJobOutcome:
    policy = Policy(proofread=Proofread.STRICT)
    job = TableJob(MERGE_DELETES.kind, ice.location(table), policy, CommitOrigin("job-1", 7))
    return ice.engine.run_table_job(job, control or Control())


def deleted_files(ice: "IcebergLab", table: str) -> tuple[LiveInput, ...]:
    """Return the live files that deletes apply to."""
    loaded = ice.engine._tables.load(ice.location(table))
    found = JavaDeletes(ice.engine._scala, loaded).look(loaded.refresh())
    assert found is not None
    return found.inputs


@pytest.mark.parametrize(("by", "version"), [("", 2), ("dt", 2), ("dt", 3)])
def test_rows_and_their_ids_stay_and_statements_go_on(ice: "IcebergLab", by: str, version: int) -> None:
    properties = MERGE_ON_READ | {"write.delete.granularity": "partition"}
    table = ice.create("t", by=by, properties=properties)
    for number in range(3):
        ice.append(table, number)
    for one in range(4):
        ice.sql(f"DELETE FROM {table} WHERE id % 20 = {one}")
    ice.sql(f"UPDATE {table} SET v = 'u' WHERE id IN (10, 30)")
    if version > 2:
        ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='3')")
        ice.append(table, 3)
    rows = ice.rows(table)
    lineage = ice.lineage(table) if version > 2 else []
    before = ice.sql(f"SELECT count(*) FROM {table}.delete_files").collect()[0][0]
    control, beside = Control(), list[int]()

    def others(_count: int) -> None:
        if not beside:
            beside.append(1)
            ice.sql(f"DELETE FROM {table} WHERE id = 15")
            ice.append(table, 4)

    control.before_change = others
    done = merge(ice, table, control)
    left = [row for row in rows if row[0] != 15] + [row for row in ice.rows(table) if row[0] >= 80]
    assert ice.rows(table) == sorted(left)
    assert read_by_others(ice, table)["pyiceberg"] == read_by_others(ice, table)["spark"]
    assert done.figures["replaced"] >= before - 2
    if version > 2:
        kept = {row[0]: row for row in ice.lineage(table)}
        assert all(kept[row[0]] == row for row in lineage if row[0] != 15)
    kinds = {delete.kind for one in deleted_files(ice, table) for delete in one.deletes}
    assert kinds == {DeleteKind.VECTOR if version > 2 else DeleteKind.POSITION}

    ice.sql(f"DELETE FROM {table} WHERE id % 20 = 7")
    source = "SELECT explode(array(8, 9, 900)) AS id"
    ice.sql(
        f"MERGE INTO {table} t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id, v, x, dt, ts) VALUES (900, 'n', 0, date'2026-01-01', null)"
    )
    expected = {row[0]: row for row in left if row[0] % 20 != 7}
    expected |= {one: (one, "m", *expected[one][2:]) for one in (8, 9)}
    expected[900] = (900, "n", 0, expected[8][3], None)
    assert ice.rows(table) == sorted(expected.values())
    merge(ice, table)
    assert ice.rows(table) == sorted(expected.values())
    assert merge(ice, table).commits == ()
