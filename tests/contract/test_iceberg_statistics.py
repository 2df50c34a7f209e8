"""Statistics of an Iceberg table's columns: equal to Spark's procedure's, used by its planner, and kept by rewrites."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.table import StaticTable

from actor.ports import GroupStatus, TableJob, TableJobOutcome
from shared.layout.upkeep import COMPUTE_STATISTICS, REWRITE_MANIFESTS
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.iceberg_stress.readers import _DuckDb
from tests.support.local_vacuum import Control

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg"), pytest.mark.filterwarnings("ignore::ResourceWarning")]

COLUMNS = {"id": 80, "v": 80, "x": 80, "dt": 2, "ts": 2}


def run(ice: "IcebergLab", table: str, kind: str) -> TableJobOutcome:
    job = TableJob(kind, ice.location(table), Policy(), CommitOrigin("job-1", 7))
    return ice.engine.run_table_job(job, Control())


def computed(ice: "IcebergLab", table: str) -> TableJobOutcome:
    return run(ice, table, COMPUTE_STATISTICS.kind)


def planned(ice: "IcebergLab", table: str) -> dict[str, int]:
    """The distinct values by column that Spark's planner knows of, with its optimizer by cost."""
    for name in ("spark.sql.cbo.enabled", "spark.sql.iceberg.report-column-stats"):
        ice.session.conf.set(name, "true")
    plan = ice.sql(f"SELECT * FROM {table}")._jdf.queryExecution().optimizedPlan()
    known = plan.stats().attributeStats()
    columns = {name: plan.output().apply(place) for place, name in enumerate(COLUMNS)}
    return {
        name: int(str(known.apply(column).distinctCount().get()))
        for name, column in columns.items()
        if known.contains(column)
    }


def sketches(ice: "IcebergLab", table: str) -> list[Any]:
    """The sketch of each column in the newest snapshot's statistics."""
    java = ice.java(table)
    (file,) = (one for one in java.statisticsFiles() if one.snapshotId() == java.currentSnapshot().snapshotId())
    puffin = ice.engine._scala.resolve("org.apache.iceberg.puffin.Puffin")
    reader = puffin.read(java.io().newInputFile(file.path())).build()
    blobs = ice.engine._scala.resolve("org.apache.iceberg.relocated.com.google.common.collect.Lists").newArrayList(
        reader.readAll(reader.fileMetadata().blobs())
    )
    return [bytes(one.second().array()) for one in blobs]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_rewrite_leaves_statistics_valid_that_equal_those_of_sparks_procedure(
    ice: "IcebergLab", version: int
) -> None:
    table = ice.create("t", version=version)
    for number in range(4):
        ice.append(table, number)
    rows = ice.rows(table)
    assert planned(ice, table) == {}
    done = computed(ice, table)
    assert (done.figures["columns"], done.commits) == (len(COLUMNS), ())
    assert planned(ice, table) == COLUMNS
    ours, reader = sketches(ice, table), ice.reader(table)
    ice.sql(f"CALL ice.system.compute_table_stats(table => '{table.removeprefix('ice.')}')")
    assert ours == sketches(ice, table)
    assert "no row has changed" in computed(ice, table).reason, "once"
    at = asyncio.run(reader.snapshot())
    assert ice.rewrite_all(table).status is GroupStatus.COMMITTED
    assert (planned(ice, table), sketches(ice, table)) == (COLUMNS, ours)
    assert "no row has changed" in computed(ice, table).reason

    async def follow() -> list[bool]:
        return [one.data_change async for one in reader.changes(at.position, at.metadata)]

    assert asyncio.run(follow()) == [False], "statistics are no commit"
    newest = str(ice.java(table).operations().current().metadataFileLocation())
    assert sorted(StaticTable.from_metadata(newest).scan().to_arrow()["id"].to_pylist()) == [row[0] for row in rows]
    scan = f"SELECT count(*), sum(id) FROM iceberg_scan('{newest}')"
    assert _DuckDb()._connection.sql(scan).fetchall() == [(80, sum(row[0] for row in rows))]
    assert ice.rows(table) == rows


def test_statistics_of_changed_data_are_not_kept_and_their_age_is_counted(ice: "IcebergLab") -> None:
    table = ice.create("t")
    ice.append(table, 0)
    computed(ice, table)
    ice.append(table, 9, 5)
    assert planned(ice, table) == {}
    found = asyncio.run(ice.reader(table).upkeep([COMPUTE_STATISTICS.kind]))[COMPUTE_STATISTICS.kind]
    assert (found.excess, found.count) == (5, 25)
    assert computed(ice, table).figures["columns"] == len(COLUMNS)
    assert run(ice, table, REWRITE_MANIFESTS.kind).commits
    assert planned(ice, table)["id"] == 25, "no row has changed"
    ice.append(table, 10, 5)
    assert ice.rewrite_all(table).status is GroupStatus.COMMITTED
    assert planned(ice, table) == {}
