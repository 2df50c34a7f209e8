"""Whether the outputs of a sort are as it promises, by their own statistics: their ranges do not overlap.

What a reader skips files by is checked, and not what the plan or Spark says of it. Rows are sorted within a file by the
same Spark job; the contract tests read that from the files.
"""

from collections.abc import Sequence
from itertools import pairwise

from actor.formats.delta.actions import LoggedFile, with_range
from shared.errors import Corrupt
from shared.layout.row_order import RowOrder
from shared.table import PartitionColumn


def require_disjoint(
    outputs: Sequence[LoggedFile], order: RowOrder | None, key: PartitionColumn | None, doing: str
) -> None:
    """Raise Corrupt if ranges of sorted outputs overlap by their own statistics; to be called before the commit.

    Ends may touch: of texts only the beginning is compared.
    """
    if order is None or not order.columns or order.is_interleaved or key is None:
        return
    ranges = sorted(found for output in outputs if (found := with_range(output, key).key_range) is not None)
    for (low, high), (next_low, next_high) in pairwise(ranges):
        if high > next_low:
            raise Corrupt(
                f"{doing} was stopped before its commit: two outputs overlap in {key.name!r}, from {low} to {high} and "
                f"from {next_low} to {next_high}, although the rows were sorted. The table is unchanged"
            )
