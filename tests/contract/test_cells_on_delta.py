"""Tables in cells on real Delta: rows stay as they are, runs are bounded, and others leave our files alone."""

import pytest

from actor.formats.delta.cell_columns import CellColumn
from tests.support.cells_table import CellsTable
from tests.support.delta_lab import DeltaLab

pytestmark = pytest.mark.spark

NUMBERS = {"a": "BIGINT", "b": "BIGINT", "t": "STRING"}
RANDOM = "CAST(rand({seed}) * 1000000 AS BIGINT) a; CAST(rand({seed} + 1) * 1000000 AS BIGINT) b; uuid() t"
A, B = CellColumn(("a",), ("a",), "long"), CellColumn(("b",), ("b",), "long")


def test_first(lab: DeltaLab) -> None:
    table = CellsTable(lab, NUMBERS, ("a", "b"), "'delta.enableDeletionVectors' = 'true'")
    table.insert(4000, RANDOM.format(seed=1), files=12)
    before = table.digest()
    print([add["size"] for add in table.live()])
    for _ in range(12):
        done = table.run()
        print(done.commits, done.figures, done.reason)
        assert table.digest() == before
        print(table.require_lawful([A, B]), len(table.live()))
        if not done.commits:
            break
    lab.sql(f"DELETE FROM {table.name} WHERE a % 7 = 3")
    before, ours = table.digest(), table.ours()
    lab.sql(f"OPTIMIZE {table.name}")
    print(len(ours), len(ours - table.ours()), len(table.live()))
    assert table.digest() == before
    assert 0
