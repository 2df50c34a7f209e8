"""The property that is advised where a table leaves out a column has the format's own writers note its bounds."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from decider.formats.delta.format import DeltaFormat
from decider.formats.table_format import StorageAccess, TableReader
from decider.storage.object_reads import ReadMeter
from shared.paths.sql_text import set_properties

if TYPE_CHECKING:
    from tests.support.delta_lab import DeltaLab
    from tests.support.iceberg_lab import IcebergLab

pytestmark = [pytest.mark.spark, pytest.mark.long("contracts")]

COUNTED = {"delta.dataSkippingNumIndexedCols": "3"}
NAMED = {"delta.dataSkippingStatsColumns": "a,s"}
LEFT_OUT = {
    "none": {"write.metadata.metrics.default": "none"},
    "by its name": {"write.metadata.metrics.column.c": "counts"},
    "beyond a count": {"write.metadata.metrics.max-inferred-column-defaults": "4"},
}


def bounded(reader: TableReader, column: str) -> tuple[int, dict[str, str]]:
    """Return how many files have bounds of a column, and the advised properties."""
    found = asyncio.run(reader.snapshot_with_ranges(column))
    return sum(file.key_range is not None for file in found.files), dict(found.metadata.bounds_change)


@pytest.mark.parametrize(
    ("properties", "change"),
    [(COUNTED, {"delta.dataSkippingNumIndexedCols": "5"}), (NAMED, {"delta.dataSkippingStatsColumns": "a,s,`c`"})],
    ids=["counted", "named"],
)
def test_delta_notes_bounds_of_a_column_once_the_advised_property_is_set(
    lab: "DeltaLab", properties: dict[str, str], change: dict[str, str]
) -> None:
    """Partition columns do not count, and structs count by their fields."""
    path = lab.directory / "t"
    lab.sql(
        f"CREATE TABLE delta.`{path}` (p INT, a BIGINT, s STRUCT<x: INT, y: INT>, l ARRAY<INT>, c BIGINT, d BIGINT) "
        "USING DELTA PARTITIONED BY (p)"
    )
    reader = DeltaFormat(StorageAccess(ReadMeter())).open(path.as_uri())
    insert = f"INSERT INTO delta.`{path}` VALUES (1, 2, struct(3, 4), array(5), 6, 7)"
    lab.sql(set_properties(str(path), properties, "delta"))
    lab.sql(insert)
    assert bounded(reader, "a") == (1, {})
    assert bounded(reader, "c") == (0, change)
    lab.sql(set_properties(str(path), change, "delta"))
    lab.sql(insert)
    assert bounded(reader, "c") == (1, {})
    assert bounded(reader, "d")[0] == 0
    assert bounded(reader, "d")[1]


@pytest.mark.parametrize("properties", LEFT_OUT.values(), ids=LEFT_OUT)
def test_iceberg_notes_bounds_of_a_column_once_the_advised_property_is_set(
    ice: "IcebergLab", properties: dict[str, str]
) -> None:
    table = "ice.db.t"
    ice.sql(f"CREATE TABLE {table} (a BIGINT, b BIGINT, e BIGINT, f BIGINT, c STRING) USING iceberg")

    def configure(values: dict[str, str]) -> None:
        pairs = ", ".join(f"'{name}'='{value}'" for name, value in values.items())
        ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({pairs})")

    configure(properties)
    ice.sql(f"INSERT INTO {table} VALUES (1, 2, 3, 4, 'c')")
    change = {"write.metadata.metrics.column.c": "truncate(16)"}
    assert bounded(ice.reader(table), "c") == (0, change)
    configure(change)
    ice.sql(f"INSERT INTO {table} VALUES (1, 2, 3, 4, 'c')")
    assert bounded(ice.reader(table), "c") == (1, {})
