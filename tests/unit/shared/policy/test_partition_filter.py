"""Filters: what they let through, null included, and what they refuse to guess."""

import pytest

from shared.partitions import partition_key
from shared.policy.partition_filter import parse_filter, permits
from shared.table import PartitionColumn

DAY, COUNTRY, NUMBER = (
    PartitionColumn("dt", "col-1", "date"),
    PartitionColumn("country", "col-2", "string"),
    PartitionColumn("n", "col-3", "integer"),
)
COLUMNS = (DAY, COUNTRY, NUMBER)
PARTITION = partition_key(COLUMNS, {"col-1": "2026-01-09", "col-2": None, "col-3": "10"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dt >= '2026-01-01'", True),
        ("dt < '2026-01-09'", False),
        ("DT <= '2026-01-09' AND n > 9", True),
        ("n < 9", False),
        ("n in (1, 10)", True),
        ("n == 10.0", True),
        ("n <> 10", False),
        ("country = 'de'", False),
        ("country != 'de'", False),
        ("country is null", True),
        ("`country` is not null and n = 10", False),
        ("region = 'x'", False),
        ("n < 'nan'", True),
        ("n > 'Infinity'", False),
    ],
)
def test_a_filter_lets_a_partition_through_or_not(text: str, expected: bool) -> None:
    assert permits(text, PARTITION, COLUMNS) is expected


def test_without_a_filter_everything_may_be_touched() -> None:
    assert permits(None, PARTITION, COLUMNS)


def test_a_quote_in_a_text_is_doubled() -> None:
    assert parse_filter("country = 'o''hare and x'")[0].values == ("o'hare and x",)


@pytest.mark.parametrize(
    "text", ["", "dt", "dt = 2026-01-01", "dt = '1' or n = 2", "dt = '1' and", "dt = '1' n = 2", "x" * 3_000]
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_filter(text)
