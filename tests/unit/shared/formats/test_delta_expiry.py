"""By which columns of a table rows may be deleted by their age, and why others are refused."""

from typing import Any

import pytest

from shared.errors import Unsupported
from shared.formats.delta import PHYSICAL_NAME
from shared.formats.delta_expiry import delta_expiry_column
from shared.policy.row_expiry import RowExpiry
from shared.table import PartitionColumn, TableMetadata

FIELDS: list[dict[str, Any]] = [
    {"name": "Ts", "type": "timestamp", "metadata": {PHYSICAL_NAME: "col-7"}},
    {"name": "local", "type": "timestamp_ntz"},
    {"name": "day", "type": "date", "metadata": {}},
    {"name": "text", "type": "string"},
    {"name": "number", "type": "long"},
    {"name": "part", "type": "integer"},
    {"name": "inside", "type": {"type": "struct", "fields": []}},
]
PART = PartitionColumn("part", "col-9", "integer")


def column(name: str, **configuration: str) -> PartitionColumn:
    metadata = TableMetadata("u", (PART,), {key.replace("_", "."): value for key, value in configuration.items()})
    return delta_expiry_column(RowExpiry(name, 86_400), metadata, FIELDS)


def test_a_column_is_found_by_its_name_in_any_case_with_the_name_that_statistics_have() -> None:
    assert column("ts") == PartitionColumn("Ts", "Ts", "timestamp")
    assert column("TS", delta_columnMapping_mode="name") == PartitionColumn("Ts", "col-7", "timestamp")
    assert column("local") == PartitionColumn("local", "local", "timestamp_ntz")
    assert column("day").type == "date"


def test_days_as_texts_or_numbers_are_those_of_partitions_alone() -> None:
    assert column("part") == PART
    for name in ("text", "number", "inside"):
        with pytest.raises(Unsupported, match="no date or timestamp") as refused:
            column(name)
        assert refused.value.field == "delete-rows-after"


def test_an_unknown_column_and_an_append_only_table_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="which the table does not have"):
        column("other")
    with pytest.raises(Unsupported, match="forbids to remove rows") as refused:
        column("ts", delta_appendOnly="True")
    assert refused.value.field == "delta.appendOnly"
