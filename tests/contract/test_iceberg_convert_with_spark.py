"""Equality deletes that Iceberg's own writers wrote become positions by the engine: Spark sees and does the same."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from actor.ports import TableJob, TableJobOutcome
from shared.layout.upkeep import CONVERT_DELETES
from shared.policy.policy import Policy, Proofread
from shared.table import CommitOrigin
from tests.contract.test_iceberg_copy import read_by_others
from tests.contract.test_iceberg_rewrite import MERGE_ON_READ
from tests.support.local_vacuum import Control

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

KEYS = (2, 3)
"""Ids of the columns v and x."""


def convert(ice: "IcebergLab", table: str, control: Control | None = None) -> TableJobOutcome:
    policy = Policy(proofread=Proofread.STRICT)
    job = TableJob(CONVERT_DELETES.kind, ice.location(table), policy, CommitOrigin("job-1", 7))
    return ice.engine.run_table_job(job, control or Control())


def delete_keys(ice: "IcebergLab", table: str, keys: Sequence[tuple[str, int]]) -> None:
    """Delete rows of each partition by v and x, with files of Iceberg's generic writer."""
    raw, resolve = ice.java(table), ice.engine._scala.resolve
    numbers = ice.engine._scala._gateway.new_array(resolve("int"), len(KEYS))
    ids = resolve("java.util.HashSet")()
    for place, one in enumerate(KEYS):
        numbers[place] = one
        ids.add(one)
    schema = resolve("org.apache.iceberg.types.TypeUtil").select(raw.schema(), ids)
    parquet = resolve("org.apache.iceberg.FileFormat").PARQUET
    made: Any = resolve("org.apache.iceberg.data.GenericFileWriterFactory$Builder")(raw)
    factory = made.deleteFileFormat(parquet).equalityFieldIds(numbers).equalityDeleteRowSchema(schema).build()
    files = resolve("org.apache.iceberg.io.OutputFileFactory").builderFor(raw, 1, 1).format(parquet).build()
    change, seen = raw.newRowDelta(), set[str]()
    tasks = ice.engine._scala.iceberg_scan.planned(raw, raw.currentSnapshot().snapshotId(), None, False)
    for task in tasks:
        partition = task.file().partition()
        if str(partition) in seen:
            continue
        seen.add(str(partition))
        is_whole = raw.spec().isUnpartitioned()
        file = files.newOutputFile() if is_whole else files.newOutputFile(raw.spec(), partition)
        writer = factory.newEqualityDeleteWriter(file, raw.spec(), None if is_whole else partition)
        record = resolve("org.apache.iceberg.data.GenericRecord").create(schema)
        for v, x in keys:
            record.setField("v", v)
            record.setField("x", x)
            writer.write(record)
        writer.close()
        change.addDeletes(writer.toDeleteFile())
    change.commit()


def key(number: int) -> tuple[str, int]:
    """Return v and x of the row with this id."""
    return f"v{number}", number * 7919 % 1000


@pytest.mark.parametrize(("by", "version"), [("", 2), ("dt", 2), ("", 3), ("dt", 3)])
def test_rows_and_their_ids_stay_and_statements_go_on(ice: "IcebergLab", by: str, version: int) -> None:
    table = ice.create("t", by=by, version=version, properties=MERGE_ON_READ)
    for number in range(3):
        ice.append(table, number)
    delete_keys(ice, table, [key(3), key(24), key(41), ("v5", -1)])
    ice.sql(f"DELETE FROM {table} WHERE id IN (8, 9)")
    delete_keys(ice, table, [key(10), key(3)])
    ice.append(table, 0)  # Rows with deleted keys again, which stay.
    rows = ice.rows(table)
    gone = (3, 8, 9, 10, 24, 41)
    assert [row[0] for row in rows] == sorted([*(one for one in range(60) if one not in gone), *range(20)])
    lineage = ice.lineage(table) if version > 2 else []
    done = convert(ice, table)
    assert done.figures["written"] > 0
    assert ice.rows(table) == rows
    assert version < 3 or ice.lineage(table) == lineage
    content = ice.sql(f"SELECT DISTINCT content FROM {table}.delete_files").collect()
    assert [row[0] for row in content] == [1], "positions alone"
    others = read_by_others(ice, table)
    assert others["pyiceberg"] == others["spark"]
    assert sorted(others["duckdb"]) == sorted(others["spark"])
    again = convert(ice, table)
    assert ice.rows(table) == rows, again

    ice.sql(f"DELETE FROM {table} WHERE id = 30")
    ice.sql(f"UPDATE {table} SET v = 'u' WHERE id = 31")
    delete_keys(ice, table, [key(32), ("u", 31 * 7919 % 1000)])
    expected = [row for row in rows if row[0] not in (30, 31, 32)]
    assert ice.rows(table) == expected
    convert(ice, table)
    assert ice.rows(table) == expected
    ice.sql(f"CALL ice.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")
    assert ice.rows(table) == expected
    convert(ice, table)
    assert ice.rows(table) == expected
