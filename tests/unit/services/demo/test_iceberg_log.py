"""What the demonstration reads from an Iceberg table: commits of the writer, rewrites, and the files that are live."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from services.demo.iceberg_log import IcebergLogSums, add_new_snapshots
from services.demo.report import figures
from services.demo.row_checksum import Fingerprint
from shared.policy.policy import MIB, Policy

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")
ROWS = pa.table({"id": pa.array(range(10), pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    return catalog.create_table("db.t", ROWS.schema)


def test_commits_and_rewrites_are_counted_once_each(table: Table) -> None:
    sums = IcebergLogSums()
    add_new_snapshots(sums, table)
    assert (sums.commits, sums.live) == (0, {})
    for _ in range(6):
        table.append(ROWS)
    add_new_snapshots(sums, table)
    add_new_snapshots(sums, table)
    assert (sums.commits, sums.files_added, len(sums.live), sums.rewrites) == (6, 6, 6, 0)
    assert sums.bytes_added == sum(sums.live.values())
    table.overwrite(pa.concat_tables([ROWS] * 6))
    add_new_snapshots(sums, table)
    # pyiceberg overwrites in two snapshots: one removes files, one adds them.
    assert (sums.commits, sums.rewrites, sums.files_replaced, len(sums.live)) == (7, 1, 6, 1)
    assert sums.bytes_replaced == sums.bytes_added - sum(sums.live.values())
    assert sums.newest_version == table.metadata.last_updated_ms


def test_the_rule_of_iceberg_is_computed_from_the_files_that_were_added(table: Table) -> None:
    sums = IcebergLogSums()
    for _ in range(5):
        table.append(ROWS)
    add_new_snapshots(sums, table)
    assert sums.others_rewrite_bytes(Policy(target_bytes=MIB)) == sums.bytes_added
    result = figures(sums, Policy(target_bytes=MIB), {}, Fingerprint(), Fingerprint())
    assert (result["compared_with"], result["compared_wa"]) == ("Iceberg's rewrite_data_files after every commit", 1.0)
