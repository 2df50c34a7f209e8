"""The sort key that the decider keeps bounds of: the first column of a valid order, where files have bounds of it."""

import pytest

from shared.formats.delta import sort_key
from shared.policy.properties import first_sort_column
from shared.table import PartitionColumn

FIELDS = [
    {"name": "a", "type": "long", "metadata": {"delta.columnMapping.physicalName": "col-1"}},
    {"name": "b", "type": "string"},
    {"name": "nested", "type": {"type": "struct"}},
]


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, None),
        ({"lakewright.sort-by": "A, b"}, PartitionColumn("a", "col-1", "long")),
        ({"lakewright.zorder-by": "b, a"}, PartitionColumn("b", "b", "string")),
        ({"lakewright.sort-by": "b", "delta.checkpoint.writeStatsAsJson": "false"}, None),
        ({"lakewright.sort-by": "nested"}, None),
        ({"lakewright.sort-by": "gone"}, None),
    ],
)
def test_the_sort_key_is_the_first_column_of_the_order(
    configuration: dict[str, str], expected: PartitionColumn | None
) -> None:
    assert sort_key(configuration, FIELDS) == expected


def test_an_order_that_cannot_be_read_names_no_column() -> None:
    assert first_sort_column({"lakewright.sort-by": ","}) is None
