"""Kinds of orders that are advised: files sorted by a column, or cells of several; where, and by which properties."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from decider.store.tables.advice_records import Advice, OrderEvidence
from decider.whatif.recorded_filters import RecordedFilter
from decider.whatif.sort_advice import KeyedFiles, RowSample, SortAdvice, advise, advise_cells, column_text
from decider.whatif.trace_reader import TableTrace
from shared.formats.registry import support_of
from shared.jobs.payload import CLUSTER as CLUSTER_JOB
from shared.policy.policy import ClusteringOrder, ClusterMode, Policy

SORTS_PER_BYTE = 3.5
"""How often a byte with a random key is sorted again, by simulations (docs/sorting.md)."""

CELL_REWRITES_PER_BYTE = 5.9
"""How often cells rewrite a byte, at most, by simulations of updates by deletion vectors (docs/benchmarks.md)."""

SORT_BY, CLUSTER, CLUSTER_BY = "lakewright.sort-by", "lakewright.cluster", "lakewright.cluster-by"


def _has_no_order(trace: TableTrace, policy: Policy) -> bool:
    has_order = policy.sort_by or policy.zorder_by or policy.clustering_order is not ClusteringOrder.NONE
    is_clustered = policy.cluster is not ClusterMode.OFF or trace.refusal is not None
    return policy.enabled and not has_order and not is_clustered


def may_be_sorted(trace: TableTrace, policy: Policy) -> bool:
    """Return whether a column could be set: the format sorts rows, and the table has neither an order nor clusters."""
    return policy.traits.orders_rows and _has_no_order(trace, policy)


def may_have_cells(trace: TableTrace, policy: Policy) -> bool:
    """Return whether a table without an order could be kept in cells: `CLUSTER BY` permits no partitions."""
    is_named = support_of(trace.metadata.format).names_cluster_columns
    return _has_no_order(trace, policy) and (is_named or not trace.metadata.partition_columns)


@dataclass(frozen=True, slots=True)
class OrderKind:
    """A kind of order: how its columns are compared, how often it rewrites a byte, and where it could be set.

    name: what files are once they have it.
    """

    name: str
    compare: Callable[[RowSample, Sequence[KeyedFiles], Sequence[RecordedFilter], int], SortAdvice]
    rewrites_per_byte: float
    may_be_set: Callable[[TableTrace, Policy], bool]
    in_cells: bool = False


SORTED = OrderKind("sorted by", advise, SORTS_PER_BYTE, may_be_sorted)
IN_CELLS = OrderKind("in cells of", advise_cells, CELL_REWRITES_PER_BYTE, may_have_cells, in_cells=True)
KINDS = {kind.in_cells: kind for kind in (SORTED, IN_CELLS)}


def needs_owner(advice: Advice) -> bool:
    """Return whether no job can apply an advice: jobs set properties of Lakewright alone, and no `CLUSTER BY`.

    That upgrades the protocol, which locks old writers out.
    """
    return advice.proof.bounds is not None or (CLUSTER in advice.change and CLUSTER_BY not in advice.change)


def is_clustered(trace: TableTrace) -> bool:
    """Return whether a table has `CLUSTER BY`."""
    return trace.refusal is not None and CLUSTER_JOB in trace.refusal.allows


def change_of(order: OrderEvidence, trace: TableTrace) -> Mapping[str, str]:
    """Return the properties of an order; in Delta, `CLUSTER BY` names the columns of cells."""
    if not order.in_cells:
        return {SORT_BY: column_text(order.column)}
    is_named = support_of(trace.metadata.format).names_cluster_columns
    return {CLUSTER: "cells"} | ({CLUSTER_BY: order.column} if is_named else {})


def request_text(order: OrderEvidence, change: Mapping[str, str]) -> str:
    """Return what a person has to do for an order, as sentences."""
    pairs = " and ".join(f"{name}={value}" for name, value in change.items())
    if not order.in_cells or CLUSTER_BY in change:
        return f"Set {pairs}."
    return (
        f"Run ALTER TABLE ... CLUSTER BY ({order.column}), and set {pairs}. That upgrades the protocol: writers that "
        "do not know Delta's feature clustering can no longer write to the table."
    )
