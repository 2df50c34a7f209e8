"""Statistics of columns that planners use, such as numbers of distinct values: how many rows changed since they are."""

from dataclasses import dataclass
from fractions import Fraction

from shared.layout.eligibility import DecisionReason


class StatisticsReason(DecisionReason):
    """Why statistics of columns are, or are not, computed."""

    OLD = (
        "statistics_old",
        "There are no statistics of columns, or the share of rows that changed since reaches `compute-statistics-at`.",
    )
    NEW = (
        "statistics_new",
        "The share of rows that changed since the newest statistics is below `compute-statistics-at`.",
        "pruned_by_statistics",
    )
    NOT_KNOWN = (
        "statistics_not_known",
        "There is no snapshot, its writer counts no rows, or the format has no place for statistics (Delta).",
        "pruned_by_statistics",
    )


@dataclass(frozen=True, slots=True)
class StatisticsAge:
    """Rows that were added or deleted since the newest statistics of columns, all rows, and bytes of all files.

    Where there are no statistics, all rows were added.
    """

    changed: int
    rows: int
    bytes: int

    @property
    def share(self) -> Fraction:
        """Changed rows per row; 0 for a table without rows, of which there is nothing to compute."""
        return Fraction(self.changed, self.rows) if self.rows else Fraction(0)


def statistics_need(age: StatisticsAge | None, at: Fraction | None) -> StatisticsReason:
    """Return whether statistics are to be computed where this share of rows changed; None: where one did."""
    if age is None:
        return StatisticsReason.NOT_KNOWN
    return StatisticsReason.OLD if age.share and age.share >= (at or 0) else StatisticsReason.NEW
