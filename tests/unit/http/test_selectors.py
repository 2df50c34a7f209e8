"""Partitions are named by the columns that users know; what is left out means every value, what is wrong is named."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.optimize.partition_selector import Selector, exact_cell, find_cell, label, select
from shared.errors import InvalidInput
from shared.partitions import partition_key
from shared.table import PartitionColumn, PartitionKey

COLUMNS = (PartitionColumn("dt", "col-1", "date"), PartitionColumn("country", "col-2", "string"))


def cell(day: str | None, country: str | None) -> PartitionKey:
    return partition_key(COLUMNS, {"col-1": day, "col-2": country})


CELLS = [cell(day, country) for day in ("2026-01-01", "2026-01-02") for country in ("nl", None, "a/b=c")]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], CELLS),
        (["dt=2026-01-01"], CELLS[:3]),
        ([{"dt": "2026-01-01"}], CELLS[:3]),
        (["country=null"], [CELLS[1], CELLS[4]]),
        ([{"country": None}], [CELLS[1], CELLS[4]]),
        ([{"country": ""}], [CELLS[1], CELLS[4]]),
        (["dt=2026-01-02/country=nl"], [CELLS[3]]),
        (["country=nl/dt=2026-01-02"], [CELLS[3]]),
        (["dt=2026-01-02/country=a/b=c"], [CELLS[5]]),
        (["dt=2026-01-01", "country=nl"], [*CELLS[:3], CELLS[3]]),
        (["dt=1999-01-01"], []),
    ],
)
def test_a_selector_means_the_cells_that_agree_with_it(wanted: list[Selector], expected: list[PartitionKey]) -> None:
    assert list(select(CELLS, COLUMNS, wanted)) == expected


@pytest.mark.parametrize("wrong", ["yesterday", "day=1", "=1", {"day": "1"}, "", "dt=1/"])
def test_a_selector_that_names_no_column_is_refused_with_its_place(wrong: Selector) -> None:
    with pytest.raises(InvalidInput) as raised:
        select(CELLS, COLUMNS, ["dt=2026-01-01", wrong])
    assert raised.value.field == "partitions.1"
    assert raised.value.allowed


@given(st.sampled_from(CELLS))
def test_a_label_finds_its_cell(one: PartitionKey) -> None:
    assert asyncio.run(find_cell(label(one, COLUMNS), listed(CELLS), COLUMNS)) == one
    assert asyncio.run(find_cell(one, listed(CELLS), COLUMNS)) == one
    assert select(CELLS, COLUMNS, [label(one, COLUMNS)]) == (one,)


def test_a_label_as_we_write_it_needs_no_list_of_cells() -> None:
    wanted = cell("1999-01-01", "nl")
    assert asyncio.run(find_cell(label(wanted, COLUMNS), refusing_to_list(), COLUMNS)) == wanted


async def listed(cells: Iterable[PartitionKey]) -> AsyncIterator[PartitionKey]:
    """List cells as the store does."""
    for one in cells:
        yield one


async def refusing_to_list() -> AsyncIterator[PartitionKey]:
    """Fail when somebody lists."""
    raise AssertionError("listed")
    yield PartitionKey("")


def test_a_cell_that_is_gone_is_still_named_and_a_part_of_one_is_not() -> None:
    assert exact_cell("dt=1999-01-01/country=nl", COLUMNS) == cell("1999-01-01", "nl")
    with pytest.raises(InvalidInput, match="does not name exactly one partition"):
        exact_cell("dt=2026-01-01", COLUMNS)
