"""Sorted outputs that overlap never reach a commit, rows have places, and what fits on a disk is known exactly."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actor.rewrite.checks import MIB, require_disjoint, require_free_space
from actor.rewrite.late_rows import RowMap
from shared.errors import Corrupt, RetryableError
from shared.partitions import WHOLE_TABLE
from shared.policy.row_order import INPUT_ORDER, RowOrder, SortColumn
from shared.table import DataFile

SORTED = RowOrder((SortColumn("k"),), outputs=2)


def output(*key_range: int) -> DataFile:
    return DataFile(f"f{key_range}", 1, WHOLE_TABLE, key_range=(key_range[0], key_range[1]) if key_range else None)


def test_outputs_that_overlap_stop_the_rewrite_before_its_commit() -> None:
    with pytest.raises(Corrupt, match="two outputs overlap in 'k', from 0 to 6 and from 5 to 9"):
        require_disjoint([output(5, 9), output(0, 6)], SORTED, "k", "the sort")


def test_outputs_that_touch_or_have_no_bounds_are_as_they_should_be() -> None:
    require_disjoint([output(5, 9), output(0, 5), output()], SORTED, "k", "the sort")


@pytest.mark.parametrize("order", [None, INPUT_ORDER, replace(SORTED, is_interleaved=True)])
def test_nothing_is_promised_of_other_orders(order: RowOrder | None) -> None:
    require_disjoint([output(5, 9), output(0, 6)], order, "k", "the rewrite")


@pytest.mark.parametrize(("free", "fits"), [(None, True), (135 * MIB, True), (135 * MIB - 1, False), (0, False)])
def test_outputs_have_to_fit_beside_the_reserve(free: int | None, fits: bool) -> None:
    if fits:
        require_free_space("file:///t", 100 * MIB, reserved_bytes=10 * MIB, free_bytes=lambda _: free)
    else:
        with pytest.raises(RetryableError, match="rewriting 100 MiB takes up to 135 MiB with the 10 MiB"):
            require_free_space("file:///t", 100 * MIB, reserved_bytes=10 * MIB, free_bytes=lambda _: free)


@given(st.lists(st.tuples(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)), st.integers(31, 40)), max_size=6))
def test_the_places_are_those_of_the_same_rows_in_what_was_written(
    inputs: list[tuple[set[int], set[int], int]],
) -> None:
    """inputs: of each what the read left out, what others deleted since, and its rows."""
    omitted = [sorted(gone) for gone, _, _ in inputs]
    chosen = [sorted(late - gone) for gone, late, _ in inputs]
    written = [(number, row) for number, (gone, _, rows) in enumerate(inputs) for row in range(rows) if row not in gone]
    mapped = RowMap(tuple(rows for _, _, rows in inputs), omitted)
    places = list(mapped.places(chosen))
    assert [written[place] for place in places] == [(n, row) for n, rows in enumerate(chosen) for row in rows]
    assert places == sorted(set(places))
    assert mapped.output_rows == len(written)


def test_drawn_rows_are_of_the_output() -> None:
    mapped = RowMap((10, 3, 0), ([1, 2, 3, 4], (), ()))
    some, few, none = mapped.drawn(random.Random(1), 4)
    assert 0 < len(some) <= 4
    assert not {*some} & {1, 2, 3, 4}
    assert (len(few), none) == (1, [])
    assert list(mapped.places([[0, 5], [2], []])) == [0, 1, 8]
