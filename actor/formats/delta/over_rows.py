"""Rows of files that are over, found by Spark from the one column of their time."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.superseded_rows import FILE, READ, REMOVED
from actor.jvm.scala import Scala
from actor.proofread.model import Proof
from shared.policy.row_expiry import ExpiryBound
from shared.table import PartitionColumn


class OverRows:
    """The rows of some files that are over: the condition holds of them, and never of null."""

    def __init__(self, scala: Scala, column: PartitionColumn, bound: ExpiryBound) -> None:
        self.condition = bound.condition
        self._scala = scala
        self._column = column
        self._bound = bound

    def counts(self, frame: Any, *, over: bool) -> Mapping[str, int]:
        """Count the rows of a frame that are over, or are not, by the name of their file; files without any lack."""
        where = f"coalesce({self.condition}, false)"
        found = frame.filter(where if over else f"NOT {where}").selectExpr(self._scala.seq([READ[0]]))
        rows = found.groupBy(FILE, self._scala.seq()).count().toJSON().collectAsList()
        return {unquote(row[FILE]): int(row["count"]) for row in map(json.loads, rows)}

    def mark(self, frame: Any) -> Any:
        """Add the columns `FILE`, `PART`, `ROW` and `REMOVED` to a frame that reads some of the files."""
        return frame.selectExpr(self._scala.seq(["*", *READ, f"coalesce({self.condition}, false) AS {REMOVED}"]))

    def compare(
        self, proofs: Proofs, live: LiveGroup, replaced: Sequence[LoggedFile], outputs: Sequence[LoggedFile]
    ) -> Proof:
        """Compare what was written with the rows that stay: all files of a group are replaced."""
        del replaced
        return proofs.check_over(live, outputs, self._column.physical, self._bound.spelled)
