"""Worth of the rewrites of a table in a week: opens that readers avoided, against what the runs used; pure.

Without the rewrites, a read would open as many more files as rewrites have removed and writers have not replaced since:
of those files, writers are taken to remove the same share as of all bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise

from decider.store.tables.table_history import TableSample, with_rests
from decider.whatif.comparison import MIN_HOURS, MS_PER_HOUR, CostModel
from shared.prices import Prices, Usage, amount_text

JUDGED_MS = 7 * 24 * MS_PER_HOUR
"""Time that is judged: reads are counted for as long."""

READERS = CostModel()
"""Cost of an open to a reader: what-if's assumption."""


class WorthResult(StrEnum):
    """Comparison of what rewrites avoided with what they used, or the reason why there is none."""

    PAYS = "above_cost"
    DOES_NOT_PAY = "below_cost"
    READS_UNKNOWN = "reads_unknown"
    NOTHING_REWRITTEN = "nothing_rewritten"
    BACKLOG = "backlog"
    TOO_SHORT = "too_short"


@dataclass(frozen=True, slots=True)
class RewriteWorth:
    """Worth of the rewrites of a table in `hours`.

    file_hours: files that were not there, times the hours for which they were not. reads_per_hour: None if they are not
    known. spent: what runs used.
    """

    hours: float
    file_hours: float
    reads_per_hour: float | None
    spent: Usage
    is_backlog: bool = False

    @property
    def opens_avoided(self) -> int:
        """Files that readers did not have to open; 0 if reads are not known."""
        return round(self.file_hours * (self.reads_per_hour or 0.0))

    @property
    def saved(self) -> Usage:
        """Use of cores and requests that opening those files would have taken."""
        return _opening(self.opens_avoided)

    def result(self, prices: Prices | None) -> WorthResult:
        """Return whether rewriting pays: in money where prices are set, in core-seconds otherwise."""
        if self.hours < MIN_HOURS:
            return WorthResult.TOO_SHORT
        if not self.spent.core_ms:
            return WorthResult.NOTHING_REWRITTEN
        if self.is_backlog:
            return WorthResult.BACKLOG
        if self.reads_per_hour is None and self.file_hours:
            return WorthResult.READS_UNKNOWN
        return WorthResult.PAYS if _cost(self.saved, prices) >= _cost(self.spent, prices) else WorthResult.DOES_NOT_PAY

    def sentence(self, prices: Prices | None) -> str:
        """Return the result for people, with its figures."""
        span = f"in {self.hours / 24:.0f} days" if self.hours >= 2 * MIN_HOURS else f"in {self.hours:.0f} hours"
        spent = _amount(self.spent, prices)
        sums = f"{self.opens_avoided:,} opens avoided, worth {_amount(self.saved, prices)}, for {spent} {span}"
        match self.result(prices):
            case WorthResult.TOO_SHORT:
                return f"not judged yet: that takes {MIN_HOURS:g} hours of history"
            case WorthResult.NOTHING_REWRITTEN:
                earlier = f"; by earlier rewrites, {sums}" if self.opens_avoided else ""
                return f"nothing was rewritten {span}{earlier}"
            case WorthResult.BACKLOG:
                return f"not judged yet: existing files were rewritten {span}, which is done once, for {spent}"
            case WorthResult.READS_UNKNOWN:
                needed = float(_cost(self.spent, prices) / _cost(_opening(1), prices)) / self.file_hours
                return f"pays from {needed:.2g} reads per hour on, and none are reported; {spent} used {span}"
            case WorthResult.PAYS:
                return f"pays: {sums}"
            case WorthResult.DOES_NOT_PAY:
                return f"does not pay: {sums}"


def worth_of(samples: Sequence[TableSample], reads_per_hour: float | None, backlog_bytes_left: int) -> RewriteWorth:
    """Judge the last week of a table's history; older samples show how many files fewer it had before."""
    if not samples:
        return RewriteWorth(0.0, 0.0, reads_per_hour, Usage())
    now = samples[-1]
    since_ms = max(samples[0].at_ms, now.at_ms - JUDGED_MS)
    first = next(one for one in reversed(samples) if one.at_ms <= since_ms)
    fewer, file_ms = float(max(0, samples[0].files_fewer)), 0.0
    for before, after in pairwise(with_rests(samples)):
        file_ms += fewer * max(0, after.at_ms - max(before.at_ms, since_ms))
        fewer = max(0.0, fewer * _kept_share(before, after) + after.files_fewer - before.files_fewer)
    return RewriteWorth(
        hours=(now.at_ms - since_ms) / MS_PER_HOUR,
        file_hours=file_ms / MS_PER_HOUR,
        reads_per_hour=reads_per_hour,
        spent=now.usage - first.usage,
        is_backlog=backlog_bytes_left > 0 or now.backlog_bytes_done > first.backlog_bytes_done,
    )


def _kept_share(before: TableSample, after: TableSample) -> float:
    """Return the share of a table's bytes that writers did not remove between two samples."""
    added = after.bytes_added - before.bytes_added
    shrunk = (after.bytes_replaced - before.bytes_replaced) - (after.bytes_written - before.bytes_written)
    there = before.bytes + added - shrunk
    return min(1.0, after.bytes / there) if there > 0 else 0.0


def _opening(files: int) -> Usage:
    return Usage(core_ms=round(files * READERS.open_s * 1000), reads=files)


def _cost(used: Usage, prices: Prices | None) -> Fraction:
    return Fraction(used.core_ms) if prices is None else prices.cost(used)


def _amount(used: Usage, prices: Prices | None) -> str:
    if prices is None:
        return f"{used.core_ms / 1000:,.0f} core-seconds"
    return f"{amount_text(prices.cost(used))} {prices.currency}"
