"""Finds the order that reported reads of a table argue for, and judges it by what they read afterwards.

An order is one by a column, or one of cells of several. A read costs the bytes of the files that its filter does not
exclude. An order has to save a tenth of that in the older and in the newer half of the files, what sorting costs
included, by reads that were reported on two days at least. Pure: time comes from the caller and from the commits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from decider.advice.analysis import MIN_JUDGED_HOURS, is_long_enough, is_worth, proof_of, until_now
from decider.advice.order_kinds import KINDS, SORTED, OrderKind, change_of, request_text
from decider.state.effective_policy import EffectivePolicy
from decider.store.tables.advice_records import Advice, Judgement, OrderEvidence, ReplayedCost
from decider.store.tables.read_counts import ReportedReads
from decider.whatif.comparison import CostModel, Tick
from decider.whatif.recorded_filters import RecordedFilter, named_columns
from decider.whatif.simulator import replay_lakewright
from decider.whatif.sort_advice import KeyedFiles
from decider.whatif.spread_rows import spread_rows
from decider.whatif.trace_reader import TableTrace
from shared.policy.policy import GIB, Policy
from shared.table import TableId

MAX_COLUMNS = 3
"""Columns that are compared without a request, those that filters name most often: the log is read once for each."""

MIN_READS = 50
"""Fewest reads with filters that an order can rest on."""

SCAN_S_PER_GIB = 10.0
"""Core-seconds to read 1 GiB: half of those that rewriting takes, which decodes and encodes."""

BOUNDED_SHARE = 0.9
"""Share of the live bytes that need bounds of a column before it is compared: what is not known is no saving."""

PAID_BACK_HOURS = 30 * 24.0
"""Time in which sorting the files that are there has to pay: an order is kept for months."""


@dataclass(frozen=True, slots=True)
class FilteredReads:
    """Reads with filters: so many an hour, in the half of the last days that has fewer; the filters of all of them."""

    per_hour: float
    filters: tuple[RecordedFilter, ...]

    @staticmethod
    def of(reported: ReportedReads) -> "FilteredReads":
        """Return what was reported; no reads where too few have filters."""
        filters = tuple(RecordedFilter(expression, times) for expression, times in reported.filters)
        times = sum(one.times for one in filters)
        share = min(1.0, times / reported.counted) if reported.counted else 0.0
        return FilteredReads(reported.steady_per_hour * share if times >= MIN_READS else 0.0, filters)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are compared."""
        return named_columns(self.filters)[:MAX_COLUMNS]


@dataclass(frozen=True, slots=True)
class OrderReading:
    """Reads with filters, and the live files by each of the columns that these name.

    `keyed`: columns of which nearly all files have bounds; unbounded: the others.
    """

    reads: FilteredReads
    keyed: tuple[KeyedFiles, ...]
    unbounded: tuple[KeyedFiles, ...] = ()

    @staticmethod
    def of(reads: FilteredReads, keyed: Sequence[KeyedFiles]) -> "OrderReading":
        """Return the reading of these columns."""
        by_bounds: dict[bool, list[KeyedFiles]] = {True: [], False: []}
        for one in keyed:
            by_bounds[bounded_share(one) >= BOUNDED_SHARE].append(one)
        return OrderReading(reads, tuple(by_bounds[True]), tuple(by_bounds[False]))


def analyze_order(  # noqa: PLR0913, PLR0917 - each is a part of the evidence
    table: TableId,
    trace: TableTrace,
    in_force: EffectivePolicy,
    read: OrderReading,
    prices: CostModel,
    now_ms: int,
    tick: Tick,
    kind: OrderKind = SORTED,
) -> Advice | None:
    """Return the advice to give a table an order of a kind, None where none would pay."""
    policy, reads, keyed = in_force.policy, read.reads, read.keyed
    _, hours = until_now(trace.history, prices, now_ms)
    is_known = is_long_enough(trace.history, hours)
    if not (is_known and keyed and reads.per_hour and kind.may_be_set(trace, policy)):
        return None
    tick("orders by all files")
    order = _evidence(kind, keyed, reads, policy.target_bytes)
    if order is None:
        return None
    # Bytes that are sorted for each that is live: once, with what is there paid back in a month, and what is added.
    sorted_share = min(1.0, hours / PAID_BACK_HOURS) + kind.rewrites_per_byte * trace.history.bytes_added / order.bytes
    shares = []
    for half in halves(keyed):
        tick("orders by half of the files")
        own = _evidence(kind, half, reads, policy.target_bytes, order.column)
        if own is None or not own.share_now:
            return None
        current, advised = _costs(own, reads.per_hour * hours, sorted_share, prices, len(half[0].files))
        shares.append(1 - advised.cost_s / current.cost_s)
    costs = _costs(order, reads.per_hour * hours, sorted_share, prices, len(keyed[0].files))
    proof = replace(proof_of(trace, hours, reads.per_hour, costs, min(shares)), order=order)
    if not is_worth(proof):
        return None
    change = change_of(order, trace)
    message = (
        f"{request_text(order, change)} {reads.per_hour:.3g} reported reads an hour have filters: they read "
        f"{_percent(order.share_now)} of the bytes, and {_percent(order.share_sorted)} once full files are {kind.name} "
        f"{order.column}. The cost includes that: {kind.rewrites_per_byte:g} rewrites of new files, and one of the "
        "present ones within 30 days."
    )
    return Advice(table, now_ms, change, policy.encode(), message, proof, format=trace.metadata.format)


def judge_order(  # noqa: PLR0913, PLR0917 - each is a part of the evidence
    advice: Advice,
    order: OrderEvidence,
    trace: TableTrace,
    read: OrderReading,
    prices: CostModel,
    now_ms: int,
    tick: Tick,
) -> Judgement | None:
    """Compare what reads cost since a table is sorted with what they would have cost as it was before.

    `trace`: the commits since. None while there are too few of them, or no reads with filters. Rewriting is counted in
    all figures: by replay of the former policy, with what sorting was to cost, and as it was by the log.
    """
    reads, keyed = read.reads, read.keyed
    _, hours = until_now(trace.history, prices, now_ms)
    if not is_long_enough(trace.history, hours, MIN_JUDGED_HOURS) or not (keyed and reads.per_hour):
        return None
    former = Policy.decode(advice.former)
    tick("former policy")
    merging_s = prices.write_s(replay_lakewright(trace.history, former, tail_ms=prices.tail_ms))
    tick("orders by all files")
    kind = KINDS[order.in_cells]
    now = _evidence(kind, keyed, reads, former.target_bytes, order.column)
    if now is None:
        return None
    scanned_s = reads.per_hour * hours * now.bytes / GIB * SCAN_S_PER_GIB
    sorting_s = trace.history.bytes_added * kind.rewrites_per_byte / GIB * prices.write_s_per_gib
    return Judgement(
        at_ms=now_ms,
        commits=len(trace.history.commits),
        hours=hours,
        predicted_share=advice.proof.saved_share,
        former_s=merging_s + scanned_s * order.share_now,
        advised_s=merging_s + sorting_s + scanned_s * order.share_sorted,
        actual_s=trace.bytes_rewritten / GIB * prices.write_s_per_gib + scanned_s * now.share_now,
    )


def halves(keyed: Sequence[KeyedFiles]) -> tuple[tuple[KeyedFiles, ...], tuple[KeyedFiles, ...]]:
    """Return the older and the newer half of the files; every column has the same files in the same order."""
    times = sorted((file.modified_ms, file.path) for file in keyed[0].files)
    middle = times[len(times) // 2]
    older, newer = (
        tuple(
            replace(one, files=tuple(file for file in one.files if is_old == ((file.modified_ms, file.path) < middle)))
            for one in keyed
        )
        for is_old in (True, False)
    )
    return older, newer


def bounded_share(keyed: KeyedFiles) -> float:
    """Return the share of the live bytes that have bounds of the column."""
    known = sum(file.size_bytes for file in keyed.files if file.key_range is not None)
    return known / max(1, sum(file.size_bytes for file in keyed.files))


def _evidence(
    kind: OrderKind, keyed: Sequence[KeyedFiles], reads: FilteredReads, target_bytes: int, column: str | None = None
) -> OrderEvidence | None:
    """Return what an order by a column, or by the best one, would save; None where no order saves enough.

    A read opens one file at least, though a value may lie between the rows that the bounds imply.
    """
    compared = kind.compare(spread_rows(keyed), keyed, reads.filters, target_bytes)
    chosen = column or compared.column
    size = sum(file.size_bytes for file in keyed[0].files)
    if chosen is None or not size:
        return None
    share = next((one.share_read for one in compared.candidates if one.column == chosen), compared.share_read_now)
    least = min(compared.share_read_now, target_bytes / size)
    return OrderEvidence(chosen, compared.share_read_now, max(share, least), size, in_cells=kind.in_cells)


def _costs(
    order: OrderEvidence, reads: float, sorted_share: float, prices: CostModel, files: int
) -> tuple[ReplayedCost, ReplayedCost]:
    """Return what reads cost as the files are, and once they are sorted, with what sorting costs."""
    scanned_s = reads * order.bytes / GIB * SCAN_S_PER_GIB
    sorted_bytes = round(sorted_share * order.bytes)
    write_s = sorted_bytes / GIB * prices.write_s_per_gib
    return (
        ReplayedCost(0.0, scanned_s * order.share_now, files, 0),
        ReplayedCost(write_s, scanned_s * order.share_sorted, files, sorted_bytes),
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1%"  # noqa: PLR2004 - it would round to nothing
