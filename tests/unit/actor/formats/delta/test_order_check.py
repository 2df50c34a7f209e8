"""Sorted outputs whose ranges overlap never reach a commit."""

import json
from dataclasses import replace
from typing import Any

import pytest

from actor.formats.delta.actions import LoggedFile, decode_add, encode, with_range
from actor.formats.delta.order_check import require_disjoint
from shared.errors import Corrupt
from shared.layout.row_order import INPUT_ORDER, RowOrder, SortColumn
from shared.table import PartitionColumn

KEY = PartitionColumn("k", "col-1", "long")
SORTED = RowOrder((SortColumn("k"),), outputs=2)


def output(low: Any, high: Any) -> LoggedFile:
    stats = json.dumps({"numRecords": 1, "minValues": {"col-1": low}, "maxValues": {"col-1": high}})
    add = {"path": f"f{low}", "size": 1, "stats": stats}
    return LoggedFile(decode_add(add, ()), encode(add))


def test_a_file_has_the_range_of_the_key_that_its_statistics_say() -> None:
    assert with_range(output(3, 9), KEY).key_range == (3, 9)
    assert with_range(output(3, 9), None).key_range is None
    assert with_range(LoggedFile(output(3, 9).file, '{"path":"f"}'), KEY).key_range is None


def test_outputs_that_overlap_stop_the_rewrite_before_its_commit() -> None:
    with pytest.raises(Corrupt, match="two outputs overlap in 'k'"):
        require_disjoint([output(5, 9), output(0, 6)], SORTED, KEY, "the sort")


def test_outputs_that_touch_or_have_no_bounds_are_as_they_should_be() -> None:
    require_disjoint([output(5, 9), output(0, 5), output(None, None)], SORTED, KEY, "the sort")


@pytest.mark.parametrize("order", [None, INPUT_ORDER, replace(SORTED, is_interleaved=True)])
def test_nothing_is_promised_of_other_orders(order: RowOrder | None) -> None:
    require_disjoint([output(5, 9), output(0, 6)], order, KEY, "the rewrite")


def test_without_a_comparable_key_nothing_can_be_checked() -> None:
    require_disjoint([output(5, 9), output(0, 6)], SORTED, None, "the sort")


def test_texts_that_the_log_cuts_are_compared_by_what_it_keeps() -> None:
    key = replace(KEY, type="string")
    same = "x" * 32
    require_disjoint([output("a", same + "\U0010ffff"), output(same, same + "\U0010ffff")], SORTED, key, "the sort")
