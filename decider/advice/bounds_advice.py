"""Advises bounds of a column that reported reads compare and that the table's own properties leave out.

How values lie is not known before files have bounds, so no saving is promised: the advice says what reads cost that
nothing but the other columns and the partitions spares, and what they cost later shows what the bounds have saved.
These reads have to cost so much that saving a tenth of it would be worth an advice, and neither the older nor the newer
half of the files may have bounds already. Pure: time comes from the caller and from the commits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from decider.advice.analysis import (
    MIN_JUDGED_HOURS,
    MIN_SAVED_S_PER_DAY,
    MIN_SAVED_SHARE,
    is_long_enough,
    proof_of,
    until_now,
)
from decider.advice.order_advice import BOUNDED_SHARE, SCAN_S_PER_GIB, OrderReading, bounded_share, halves
from decider.store.tables.advice_records import Advice, BoundsEvidence, Judgement, ReplayedCost
from decider.whatif.comparison import CostModel, size_text
from decider.whatif.recorded_filters import RecordedFilter, named_columns
from decider.whatif.sort_advice import KeyedFiles, LiveReads, live_reads
from decider.whatif.spread_rows import spread_rows
from decider.whatif.trace_reader import TableTrace
from shared.layout.key_values import number_of
from shared.partitions import partition_values
from shared.policy.policy import GIB, Policy
from shared.table import PartitionColumn, PartitionKey, TableId

MIN_FILES = 2
"""Fewest files that a read opens: bounds can spare all but one."""

MAX_PARTITION_COLUMNS = 3
"""Partition columns by which reads are compared, those that filters name most often."""


def analyze_bounds(
    table: TableId, trace: TableTrace, policy: Policy, read: OrderReading, prices: CostModel, now_ms: int
) -> Advice | None:
    """Return the advice to note bounds of the column that most reads compare, None where these cost too little."""
    _, hours = until_now(trace.history, prices, now_ms)
    is_known = is_long_enough(trace.history, hours)
    left_out = [keyed for keyed in read.unbounded if keyed.bounds_change and keyed.files]
    if not (is_known and read.reads.per_hour and left_out):
        return None
    keyed = max(left_out, key=lambda one: _share_of_reads(read, one))
    share, filters = _share_of_reads(read, keyed), _naming(read, keyed)
    columns = (keyed, *read.keyed, *_partitions(keyed, trace.metadata.partition_columns, filters))
    is_without = all(bounded_share(half[0]) <= 1 - BOUNDED_SHARE for half in halves((keyed,)))
    opened, reads = _reads(columns, filters), read.reads.per_hour * share
    cost_s = reads * hours * opened.bytes / GIB * SCAN_S_PER_GIB
    is_worth = share >= MIN_SAVED_SHARE and cost_s / hours * 24 * MIN_SAVED_SHARE >= MIN_SAVED_S_PER_DAY
    if not (is_without and is_worth and opened.files >= MIN_FILES):
        return None
    files, size = len(keyed.files), sum(file.size_bytes for file in keyed.files)
    cost = ReplayedCost(0.0, cost_s, files, 0)
    former = {name: trace.metadata.configuration.get(name, "") for name in keyed.bounds_change}
    bounds = BoundsEvidence(keyed.column.name, share, opened.files, files, former)
    proof = replace(proof_of(trace, hours, reads, (cost, cost), 0.0), bounds=bounds)
    message = (
        f"Set {_pairs(keyed.bounds_change)}, with which new files get bounds of {keyed.column.name}. {share:.0%} of "
        f"the reported reads with filters compare it, {reads:.3g} an hour; each opens {opened.files:,.0f} of {files:,} "
        f"files ({size_text(size)}). How many of these bounds would spare is not known: that depends on how the values "
        "lie. Files that are there get bounds once they are rewritten."
    )
    return Advice(table, now_ms, keyed.bounds_change, policy.encode(), message, proof, format=trace.metadata.format)


def judge_bounds(
    advice: Advice, bounds: BoundsEvidence, trace: TableTrace, read: OrderReading, prices: CostModel, now_ms: int
) -> Judgement | None:
    """Compare what reads cost since files get bounds with what they would have cost without these bounds.

    `trace`: the commits since. None while there are too few of them, or no reads that compare the column.
    """
    _, hours = until_now(trace.history, prices, now_ms)
    every = (*read.keyed, *read.unbounded)
    keyed = next((one for one in every if one.column.name == bounds.column), None)
    if not is_long_enough(trace.history, hours, MIN_JUDGED_HOURS) or keyed is None or not read.reads.per_hour:
        return None
    filters = _naming(read, keyed)
    others = (
        *(one for one in every if one is not keyed),
        *_partitions(keyed, trace.metadata.partition_columns, filters),
    )
    without = replace(keyed, files=tuple(replace(file, key_range=None) for file in keyed.files))
    reads = read.reads.per_hour * _share_of_reads(read, keyed) * hours
    former_s, actual_s = (
        reads * _reads((one, *others), filters).bytes / GIB * SCAN_S_PER_GIB for one in (without, keyed)
    )
    return Judgement(
        at_ms=now_ms,
        commits=len(trace.history.commits),
        hours=hours,
        predicted_share=advice.proof.saved_share,
        former_s=former_s,
        advised_s=former_s,
        actual_s=actual_s,
    )


def _naming(read: OrderReading, keyed: KeyedFiles) -> tuple[RecordedFilter, ...]:
    """Return the filters that compare a column."""
    return tuple(one for one in read.reads.filters if keyed.column.name in named_columns((one,)))


def _share_of_reads(read: OrderReading, keyed: KeyedFiles) -> float:
    return sum(one.times for one in _naming(read, keyed)) / sum(one.times for one in read.reads.filters)


def _reads(columns: Sequence[KeyedFiles], filters: Sequence[RecordedFilter]) -> LiveReads:
    return live_reads(spread_rows(columns), columns, filters)


def _partitions(
    keyed: KeyedFiles, columns: Sequence[PartitionColumn], filters: tuple[RecordedFilter, ...]
) -> list[KeyedFiles]:
    """Return the same files by the partition columns that filters compare: a partition has one value of each."""
    by_name = {column.name.lower(): column for column in columns}
    named = [name for name in named_columns(filters) if name.lower() in by_name]
    return [_by_partition(keyed, replace(by_name[name.lower()], name=name)) for name in named[:MAX_PARTITION_COLUMNS]]


def _by_partition(keyed: KeyedFiles, column: PartitionColumn) -> KeyedFiles:
    places = {one: _place(one, column) for one in {file.partition for file in keyed.files}}
    files = (replace(file, key_range=places[file.partition]) for file in keyed.files)
    return KeyedFiles(column, tuple(files))


def _place(partition: PartitionKey, column: PartitionColumn) -> tuple[int, int] | None:
    value = partition_values(partition).get(column.physical)
    number = number_of(value, column.type)
    if number is None and value is not None and value.lstrip("-").isdecimal():
        number = number_of(int(value), column.type)  # Partition values are texts, and statistics numbers.
    return None if number is None else (number, number)


def _pairs(change: Mapping[str, str]) -> str:
    return " and ".join(f"{name}={value}" for name, value in change.items())
