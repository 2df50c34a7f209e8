"""Computes statistics of a table's columns: Iceberg's own action does it, in Spark, as its procedure does.

It reads every column of the newest snapshot, and commits a file with a sketch of the distinct values of each. Whether
that is still wanted is decided here again, on the newest metadata.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from shared.formats.iceberg.column_statistics import changed_rows
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.positions import newest_position

NOTHING = "no row has changed since the newest statistics of columns"


class StatisticsTable(Protocol):
    """A table of whose columns statistics can be computed."""

    location: str

    def refresh(self) -> TableHead:
        """Read the newest metadata with all records, and return them."""

    def compute(self, snapshot: int) -> tuple[int, int]:
        """Compute statistics of a snapshot and commit them; returns the number of columns, and the file's bytes."""


@dataclass(frozen=True, slots=True)
class StatisticsJob:
    """One run on one table; `check` raises for a table that must not be touched."""

    table: StatisticsTable
    job: TableJob
    control: TableJobControl
    check: Callable[[TableHead], None]

    def run(self) -> TableJobOutcome:
        """Compute statistics of the newest snapshot, unless the newest ones are of its data.

        Raises LeaseLost before the work that it forbids, and whatever Iceberg raises.
        """
        head = self.table.refresh()
        self.check(head)
        version, snapshot = newest_position(head).version, head.current
        changed = changed_rows(head)
        is_new = snapshot is None or (changed is not None and not changed.share)
        reason = reason_not_wanted(self.job, head.metadata) or (NOTHING if is_new else "")
        if reason or snapshot is None:
            return TableJobOutcome(version, head.metadata, reason=reason)
        self.control.reached("computing", 0, 1)
        self.control.may_change()
        columns, size = self.table.compute(snapshot)
        figures = {"columns": columns, "bytes_written": size}
        self.control.measured(figures)
        return TableJobOutcome(version, head.metadata, figures=figures)
