"""The fallback never rewrites files whose order of rows has to be kept: OPTIMIZE would mix them."""

from typing import Any, cast

import pytest

from actor.formats.delta.optimize_fallback import OptimizeExecutor
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.snapshot_cache import SnapshotCache
from actor.ports import RewriteRequest
from shared.errors import RetryableError
from shared.layout.planner import FileGroup, RewriteMode
from shared.layout.row_order import INPUT_ORDER, RowOrder, SortColumn
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile


@pytest.mark.parametrize("order", [INPUT_ORDER, RowOrder((SortColumn("k"),))])
def test_the_fallback_leaves_groups_with_an_order_alone(order: RowOrder) -> None:
    nothing = cast("Any", None)
    executor = OptimizeExecutor(nothing, nothing, ReadCache(), SnapshotCache())
    groups = (
        FileGroup(WHOLE_TABLE, (DataFile("a", 1, WHOLE_TABLE),), RewriteMode.MINOR),
        FileGroup(WHOLE_TABLE, (DataFile("b", 1, WHOLE_TABLE),), RewriteMode.MINOR, order=order),
    )
    with pytest.raises(RetryableError, match="keeps no order of rows"):
        executor.rewrite(RewriteRequest("file:///t", groups, "{}"), nothing)
