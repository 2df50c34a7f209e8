"""Which rows of a table may be removed by a key, and by which column its files are ordered."""

from typing import Any

import pytest

from shared.errors import Unsupported
from shared.formats.delta import PHYSICAL_NAME, sort_key
from shared.formats.delta_keys import APPEND_ONLY, delta_expiry_column, find_problem
from shared.policy.key_rule import KeyRule
from shared.policy.policy import KeyScope
from shared.policy.properties import first_sort_column
from shared.policy.row_expiry import RowExpiry
from shared.table import PartitionColumn, TableMetadata

FIELDS: list[dict[str, Any]] = [
    {"name": "Id", "type": "long", "metadata": {}},
    {"name": "ts", "type": "timestamp"},
    {"name": "price", "type": "decimal(10,2)"},
    {"name": "score", "type": "double"},
    {"name": "tags", "type": {"type": "array"}},
    {"name": "name", "type": "string", "metadata": {"__COLLATIONS": {"name": "spark.UTF8_LCASE"}}},
    {"name": "gone", "type": "boolean"},
]
RULE = KeyRule(("id",), ("ts",))
DAILY = (PartitionColumn("day", "col-1", "date"),)


def problem(rule: KeyRule, columns: tuple[PartitionColumn, ...] = (), **configuration: str) -> str:
    found = find_problem(rule, TableMetadata("u", columns, configuration), FIELDS)
    return "" if found is None else found.property


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RULE, ""),
        (KeyRule(("ID", "price"), ("TS", "id"), "Gone"), ""),
        (KeyRule(("missing",), ("ts",)), "primary-key"),
        (KeyRule(("id",), ("missing",)), "sequence-by"),
        (KeyRule(("score",), ("ts",)), "primary-key"),
        (KeyRule(("id",), ("score",)), "sequence-by"),
        (KeyRule(("tags",), ("ts",)), "primary-key"),
        (KeyRule(("name",), ("ts",)), "primary-key"),
        (KeyRule(("id",), ("ts",), "missing"), "delete-marker"),
        (KeyRule(("id",), ("ts",), "id"), "delete-marker"),
    ],
)
def test_columns_must_be_there_and_compared_alike_by_every_engine(rule: KeyRule, expected: str) -> None:
    assert problem(rule) == expected


def test_rows_of_one_key_in_several_partitions_need_the_owners_word() -> None:
    assert problem(RULE, DAILY) == "key-scope"
    assert problem(KeyRule(("id",), ("ts",), scope=KeyScope.PARTITION), DAILY) == ""
    found = find_problem(KeyRule(("id", "Day"), ("ts",)), TableMetadata("u", DAILY))
    assert found is None
    assert "'day'" in str(find_problem(RULE, TableMetadata("u", DAILY)))


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        (KeyRule(("id",), ("ts",), "Gone", KeyScope.PARTITION), (PartitionColumn("gone", "col-1", "boolean"),)),
        (KeyRule(("id", "gone"), ("ts",), "GONE"), ()),
    ],
)
def test_a_marked_row_must_be_compared_with_the_rows_that_it_deletes(
    rule: KeyRule, columns: tuple[PartitionColumn, ...]
) -> None:
    assert problem(rule, columns) == "delete-marker"
    assert find_problem(rule, TableMetadata("u", columns)) is not None, "known without the schema"


def test_an_append_only_table_loses_no_row() -> None:
    assert problem(RULE, **{APPEND_ONLY: "True"}) == APPEND_ONLY
    assert problem(RULE, **{APPEND_ONLY: "false"}) == ""


@pytest.mark.parametrize(("declared", "expected"), [("char(3)", "key-scope"), ("varchar(3)", ""), ("", "")])
def test_equal_values_of_a_padded_partition_column_are_not_compared_so_they_need_the_owners_word(
    declared: str, expected: str
) -> None:
    metadata = {"__CHAR_VARCHAR_TYPE_STRING": declared} if declared else {}
    fields = [*FIELDS, {"name": "Land", "type": "string", "metadata": metadata}]
    table = TableMetadata("u", (PartitionColumn("land", "col-1", "string"),))
    found = find_problem(KeyRule(("id", "land"), ("ts",)), table, fields)
    assert ("" if found is None else found.property) == expected
    assert find_problem(KeyRule(("id", "land"), ("ts",), scope=KeyScope.PARTITION), table, fields) is None


MAPPED_FIELDS = [
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
    assert sort_key(configuration, MAPPED_FIELDS) == expected


def test_an_order_that_cannot_be_read_names_no_column() -> None:
    assert first_sort_column({"lakewright.sort-by": ","}) is None


AGED_FIELDS: list[dict[str, Any]] = [
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
    return delta_expiry_column(RowExpiry(name, 86_400), metadata, AGED_FIELDS)


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
