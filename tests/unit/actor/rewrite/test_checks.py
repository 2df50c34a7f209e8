"""Sorted outputs whose ranges overlap never reach a commit; what has to fit beside a reserve is known exactly."""

from dataclasses import replace

import pytest

from actor.rewrite.checks import MIB, require_disjoint, require_free_space
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
