"""What Spark is asked of rows that are over, and what the reader is told; their values are read in tests with Spark."""

from types import SimpleNamespace
from typing import Any, cast

from actor.formats.delta.over_rows import OverRows
from actor.formats.delta.superseded_rows import READ, REMOVED
from actor.proofread.model import Proof, Reading
from shared.policy.row_expiry import ExpiryBound
from shared.table import PartitionColumn

BOUND = ExpiryBound("day", "date", 0)
SCALA: Any = SimpleNamespace(seq=list)


def test_rows_of_which_the_condition_does_not_hold_are_kept_with_those_of_which_it_is_not_known() -> None:
    over = OverRows(SCALA, PartitionColumn("day", "c-7", "date"), BOUND)
    frame = SimpleNamespace(selectExpr=lambda columns: columns)
    assert over.mark(frame) == ["*", *READ, f"coalesce(`day` < DATE '1969-12-31', false) AS {REMOVED}"]


def test_the_reader_is_told_the_stored_name_and_the_bound() -> None:
    told: list[Any] = []

    def check(*given: Any) -> Proof:
        told.append(given)
        return Proof(Reading.ROWS)

    over, live = OverRows(SCALA, PartitionColumn("day", "c-7", "date"), BOUND), cast("Any", object())
    proofs: Any = SimpleNamespace(check_over=check)
    assert over.compare(proofs, live, (), ()).reading is Reading.ROWS
    assert told == [(live, (), "c-7", "1969-12-31")]
