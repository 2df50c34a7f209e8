"""The condition by which a snapshot is listed lets every file of a partition through, however its value is spelled."""

import pytest

from actor.formats.delta.snapshot import partition_condition
from shared.partitions import partition_key
from shared.table import PartitionColumn

AS_TIME = "try_cast(partitionValues['p'] AS timestamp)"


@pytest.mark.parametrize(
    ("kind", "value", "condition"),
    [
        ("string", "it's", r"partitionValues['p'] = 'it\'s'"),
        ("string", None, "(partitionValues['p'] IS NULL OR partitionValues['p'] = '')"),
        (
            "timestamp",
            "2026-01-01 00:00:00",
            f"coalesce({AS_TIME} = try_cast('2026-01-01T00:00:00.000000' AS timestamp), true)",
        ),
    ],
)
def test_a_value_is_compared_as_its_type_is_spelled(kind: str, value: str | None, condition: str) -> None:
    columns = (PartitionColumn("p", "p", kind),)
    assert partition_condition(columns, partition_key(columns, {"p": value})) == condition
