"""Partitions are named by the columns that users know; what is left out means every value, what is wrong is named."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

from decider.optimize.partition_selector import Selector, exact_partition, find_partition, label, select
from shared.errors import InvalidInput
from shared.partitions import partition_key
from shared.table import PartitionColumn, PartitionKey

COLUMNS = (PartitionColumn("dt", "col-1", "date"), PartitionColumn("country", "col-2", "string"))


def partition(day: str | None, country: str | None) -> PartitionKey:
    return partition_key(COLUMNS, {"col-1": day, "col-2": country})


PARTITIONS = [partition(day, country) for day in ("2026-01-01", "2026-01-02") for country in ("nl", None, "a/b=c")]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], PARTITIONS),
        (["dt=2026-01-01"], PARTITIONS[:3]),
        ([{"dt": "2026-01-01"}], PARTITIONS[:3]),
        (["country=null"], [PARTITIONS[1], PARTITIONS[4]]),
        ([{"country": None}], [PARTITIONS[1], PARTITIONS[4]]),
        ([{"country": ""}], [PARTITIONS[1], PARTITIONS[4]]),
        (["dt=2026-01-02/country=nl"], [PARTITIONS[3]]),
        (["country=nl/dt=2026-01-02"], [PARTITIONS[3]]),
        (["dt=2026-01-02/country=a/b=c"], [PARTITIONS[5]]),
        (["dt=2026-01-01", "country=nl"], [*PARTITIONS[:3], PARTITIONS[3]]),
        (["dt=1999-01-01"], []),
    ],
)
def test_a_selector_means_the_partitions_that_agree_with_it(
    wanted: list[Selector], expected: list[PartitionKey]
) -> None:
    assert list(select(PARTITIONS, COLUMNS, wanted)) == expected


@pytest.mark.parametrize("wrong", ["yesterday", "day=1", "=1", {"day": "1"}, "", "dt=1/"])
def test_a_selector_that_names_no_column_is_refused_with_its_place(wrong: Selector) -> None:
    with pytest.raises(InvalidInput) as raised:
        select(PARTITIONS, COLUMNS, ["dt=2026-01-01", wrong])
    assert raised.value.field == "partitions.1"
    assert raised.value.allowed


@pytest.mark.parametrize("one", PARTITIONS)
def test_a_label_finds_its_partition(one: PartitionKey) -> None:
    assert asyncio.run(find_partition(label(one, COLUMNS), listed(PARTITIONS), COLUMNS)) == one
    assert asyncio.run(find_partition(one, listed(PARTITIONS), COLUMNS)) == one
    assert select(PARTITIONS, COLUMNS, [label(one, COLUMNS)]) == (one,)


def test_a_label_as_we_write_it_needs_no_list_of_partitions() -> None:
    wanted = partition("1999-01-01", "nl")
    assert asyncio.run(find_partition(label(wanted, COLUMNS), refusing_to_list(), COLUMNS)) == wanted


async def listed(partitions: Iterable[PartitionKey]) -> AsyncIterator[PartitionKey]:
    """List partitions as the store does."""
    for one in partitions:
        yield one


async def refusing_to_list() -> AsyncIterator[PartitionKey]:
    """Fail when someone lists."""
    raise AssertionError("listed")
    yield PartitionKey("")


def test_a_partition_that_is_gone_is_still_named_and_a_part_of_one_is_not() -> None:
    assert exact_partition("dt=1999-01-01/country=nl", COLUMNS) == partition("1999-01-01", "nl")
    with pytest.raises(InvalidInput, match="does not name exactly one partition"):
        exact_partition("dt=2026-01-01", COLUMNS)
