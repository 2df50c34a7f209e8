"""Rows of files that are over, found by Spark from the one column of their time."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.superseded_rows import FILE, READ, REMOVED
from actor.jvm.scala import Scala
from actor.proofread.model import Proof
from actor.row_expiry import RowCounts, row_counts
from shared.policy.row_expiry import ExpiryBound
from shared.table import PartitionColumn


class OverRows:
    """The rows of some files that are over: the condition holds of them, and never of null."""

    def __init__(self, scala: Scala, column: PartitionColumn, bound: ExpiryBound) -> None:
        self.condition = bound.condition
        self._is_over = f"coalesce({bound.condition}, false) AS {REMOVED}"
        self._scala = scala
        self._column = column
        self._bound = bound

    def counts(self, frame: Any) -> Mapping[str, RowCounts]:
        """Count the rows of a frame by the name of their file; files without any lack."""
        seq = self._scala.seq
        rows = frame.selectExpr(seq([READ[0], self._is_over])).groupBy(FILE, seq([REMOVED])).count()
        return row_counts((unquote(row[FILE]), row[REMOVED], row["count"]) for row in self._scala.rows(rows))

    def mark(self, frame: Any) -> Any:
        """Add the columns `FILE`, `PART`, `ROW` and `REMOVED` to a frame that reads some of the files."""
        return frame.selectExpr(self._scala.seq(["*", *READ, self._is_over]))

    def compare(
        self, proofs: Proofs, live: LiveGroup, replaced: Sequence[LoggedFile], outputs: Sequence[LoggedFile]
    ) -> Proof:
        """Compare what was written with the rows that stay: all files of a group are replaced."""
        del replaced
        return proofs.check_over(live, outputs, self._column.physical, self._bound.spelled)
