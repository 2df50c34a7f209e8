"""Bounds of columns in Iceberg's manifests, as numbers in the order of the values."""

import asyncio
import struct
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from decider.formats.iceberg.bounds import key_type, range_of
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from shared.errors import InvalidInput
from shared.layout.key_values import key_range
from tests.contract.formats.worlds import access
from tests.support.iceberg_folder import IcebergFolder

DAY = date(1970, 1, 1).toordinal()


@pytest.mark.parametrize(
    ("kind", "low", "high", "as_json"),
    [
        pytest.param(IntegerType(), -7, 2**31 - 1, (-7, 2**31 - 1), id="int"),
        pytest.param(LongType(), -(2**63), 5, (-(2**63), 5), id="long"),
        pytest.param(FloatType(), -1.5, 2.5, (-1.5, 2.5), id="float"),
        pytest.param(DoubleType(), -1e300, 0.1, (-1e300, 0.1), id="double"),
        pytest.param(StringType(), "a", "ü", ("a", "ü"), id="string"),
        pytest.param(DateType(), date(1969, 12, 31).toordinal() - DAY, 20_000, ("1969-12-31", "2024-10-04"), id="date"),
        pytest.param(
            TimestampType(),
            -1,
            1_700_000_000_000_000,
            ("1969-12-31T23:59:59.999999", datetime(2023, 11, 14, 22, 13, 20).isoformat()),  # noqa: DTZ001 - without one
            id="timestamp",
        ),
        pytest.param(TimestamptzType(), 0, 1, ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z"), id="instant"),
        pytest.param(DecimalType(9, 2), Decimal("-1.25"), Decimal("7.50"), (-1.25, 7.5), id="decimal"),
    ],
)
def test_a_bound_has_the_number_of_the_value_that_a_filter_names(
    kind: Any, low: Any, high: Any, as_json: tuple[Any, Any]
) -> None:
    known = key_type(str(kind))
    assert known is not None
    found = range_of(to_bytes(kind, low), to_bytes(kind, high), str(kind))
    assert found is not None
    assert found == key_range(*as_json, known)


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        pytest.param(None, b"\x01\0\0\0", "int", id="one is missing"),
        pytest.param(b"\x02\0\0\0", b"\x01\0\0\0", "int", id="the wrong way round"),
        pytest.param(b"\x02", b"\x01", "double", id="too short"),
        pytest.param(struct.pack("<d", float("nan")), struct.pack("<d", 1.0), "double", id="no number"),
    ],
)
def test_bounds_that_say_nothing_are_no_range(low: bytes | None, high: bytes, kind: str) -> None:
    assert range_of(low, high, kind) is None


def test_a_column_that_was_widened_has_shorter_bounds() -> None:
    assert range_of(to_bytes(IntegerType(), -3), to_bytes(LongType(), 2**40), "long") == (-3, 2**40)


def test_files_have_the_bounds_of_the_newest_snapshot(tmp_path: Path) -> None:
    folder = IcebergFolder(tmp_path / "t")
    folder.create("0" * 26 + "00000d")
    bounded = [folder.file(10, bounds={1: (to_bytes(LongType(), n), to_bytes(LongType(), n + 5))}) for n in range(3)]
    folder.commit(bounded)
    folder.commit([folder.file(10)], [bounded[0].path])
    opened = access()
    table = IcebergFormat(opened, IcebergSettings(reads_folders=True)).open(folder.location)
    found = asyncio.run(table.snapshot_with_ranges("id"))
    requests = opened.meter.counts.copy()
    assert found.metadata.sort_key is not None
    assert (found.metadata.sort_key.name, found.metadata.sort_key.type) == ("id", "long")
    assert sorted((file.key_range for file in found.files), key=str) == [(1, 6), (2, 7), None]
    assert found.metadata.bounds_change == {}
    without = tuple(replace(file, key_range=None) for file in found.files)
    opened.meter.counts.clear()
    assert without == asyncio.run(table.snapshot()).files
    assert requests == opened.meter.counts, "each manifest is read once"
    folder.configure({"write.metadata.metrics.default": "counts"})
    left_out = asyncio.run(table.snapshot_with_ranges("id")).metadata.bounds_change
    assert left_out == {"write.metadata.metrics.column.id": "truncate(16)"}
    with pytest.raises(InvalidInput, match="absent"):
        asyncio.run(table.snapshot_with_ranges("absent"))


def test_no_bounds_are_proposed_of_a_column_whose_partitions_spare_its_reads(tmp_path: Path) -> None:
    folder = IcebergFolder(tmp_path / "t", spec="day")
    folder.create("0" * 26 + "00000f", {"write.metadata.metrics.default": "none"})
    table = IcebergFormat(access(), IcebergSettings(reads_folders=True)).open(folder.location)
    changes = [asyncio.run(table.snapshot_with_ranges(name)).metadata.bounds_change for name in ("ts", "id")]
    assert changes == [{}, {"write.metadata.metrics.column.id": "truncate(16)"}]


def test_a_table_without_a_snapshot_has_no_files(tmp_path: Path) -> None:
    folder = IcebergFolder(tmp_path / "t")
    folder.create("0" * 26 + "00000e")
    table = IcebergFormat(access(), IcebergSettings(reads_folders=True)).open(folder.location)
    assert asyncio.run(table.snapshot_with_ranges("id")).files == ()
