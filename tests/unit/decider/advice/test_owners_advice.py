"""Advice that only a table's owner can carry out is applied by no other way, and none is said to do it."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, cast

import pytest

from decider.advice.advice_changes import AdviceChanges
from decider.store.tables.advice_records import Advice, BoundsEvidence, Evidence, OrderEvidence, ReplayedCost
from shared.errors import Unsupported
from shared.policy.policy import Policy
from shared.table import TableId, TableRef

TABLE = TableRef(TableId("t"), "sales", "memory:///t", "default")
COST = ReplayedCost(0.0, 1.0, 1, 0)
PROOF = Evidence(0, 1, 50, 24.0, 1.0, COST, COST, 0.0)
BOUNDS = replace(PROOF, bounds=BoundsEvidence("c", 1.0, 2.0, 2, {}))
CELLS = replace(PROOF, order=OrderEvidence("a, b", 1.0, 0.5, 2, in_cells=True))


class Store:
    """What is kept of one table: its advice."""

    def __init__(self, advice: Advice) -> None:
        self.advice = advice

    async def read(self, _table: TableId) -> Advice:
        return self.advice


@pytest.mark.parametrize(
    ("change", "proof"),
    [({"delta.dataSkippingNumIndexedCols": "33"}, BOUNDS), ({"lakewright.cluster": "cells"}, CELLS)],
    ids=["bounds", "cells"],
)
@pytest.mark.parametrize("way", [AdviceChanges.apply, AdviceChanges.override])
def test_each_way_to_apply_it_names_the_owner(
    way: Callable[..., Coroutine[Any, Any, Advice]], change: dict[str, str], proof: Evidence
) -> None:
    advice = Advice(TABLE.id, 0, change, Policy().encode(), "", proof)
    none = cast("Any", None)
    changes = AdviceChanges(cast("Any", Store(advice)), none, none, none, none, lambda: 0)
    with pytest.raises(Unsupported, match="only the owner of sales can make this change"):
        asyncio.run(way(changes, TABLE, advice.id))
