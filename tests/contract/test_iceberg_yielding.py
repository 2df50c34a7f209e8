"""A catalog that undoes our rewrite for a writer that read the table before: no row is lost, and the next one lands."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from actor.ports import GroupStatus
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from shared.formats.iceberg.names import YIELD, YIELD_KEY
from shared.table import Position
from tests.contract.formats.worlds import access
from tests.contract.test_iceberg_rest import PLACE, engine, rewrite
from tests.support.iceberg_rest_lake import OURS, SCHEMA, RestLake, rest_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
    pytest.mark.long("iceberg"),
]

MORE = pa.table({"id": range(100, 110)}, schema=SCHEMA)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[RestLake]:
    with rest_lake(tmp_path, OURS) as running:
        yield running


def test_a_rewrite_is_undone_for_a_writer_and_made_again(spark: "SparkSession", lake: RestLake) -> None:
    lake.make(3, {"lakewright.yield-to-writers": "on"})
    actor, writer, rows = engine(spark, lake.options), lake.catalog.load_table("db.t"), lake.ids()
    reader = IcebergFormat(access(), IcebergSettings({"lake": lake.options})).open(PLACE)
    before = lake.data_paths()
    outcome = rewrite(actor)
    assert outcome.groups[0].status is GroupStatus.COMMITTED
    ours = lake.catalog.load_table("db.t").current_snapshot()
    assert ours is not None
    assert ours.summary is not None
    assert ours.summary.additional_properties[YIELD_KEY] == YIELD
    seen = asyncio.run(reader.snapshot()).position
    assert asyncio.run(reader.contains(seen))

    writer.append(MORE)
    assert (lake.ids(), lake.files(), lake.rewrites()) == (sorted([*rows, *MORE["id"].to_pylist()]), 4, 0)
    assert not asyncio.run(reader.contains(seen)), "the decider counts the table again"
    orphans = lake.data_paths() - before
    assert len(orphans) == 2, "of the writer, and of the rewrite that was undone"
    assert outcome.version is not None
    assert actor.find_commit(PLACE, job="job-1", token=7, since_version=outcome.version - 10_000) is None
    again = rewrite(actor)
    assert again.groups[0].status is GroupStatus.COMMITTED
    assert (lake.ids(), lake.files(), lake.rewrites()) == (sorted([*rows, *range(100, 110)]), 1, 1)
    live = {Path(one.file.file_path).name for one in lake.catalog.load_table("db.t").scan().plan_files()}
    assert not live & {one.name for one in orphans}, "files of a rewrite that was undone are never used again"
    assert isinstance(seen, Position)


def test_without_the_owners_word_the_writer_is_refused(spark: "SparkSession", lake: RestLake) -> None:
    lake.make(3, {"commit.retry.num-retries": "0"})
    writer = lake.catalog.load_table("db.t")
    assert rewrite(engine(spark, lake.options)).groups[0].status is GroupStatus.COMMITTED
    snapshot = lake.catalog.load_table("db.t").current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert YIELD_KEY not in snapshot.summary.additional_properties
    with pytest.raises(CommitFailedException):
        writer.append(MORE)
    assert lake.rewrites() == 1
