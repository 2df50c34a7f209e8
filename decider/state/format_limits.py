"""Limits a policy to what the table's format supports: its jobs, its orders of rows, and its own retention.

The limits become part of the policy itself, so that decider, actor and the recomputation of a ledger record agree.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from shared.errors import InvalidInput
from shared.formats.support import FormatSupport
from shared.jobs.payload import CHECKPOINT, DEDUPLICATE, EXPIRE, VACUUM
from shared.layout.upkeep import UPKEEP
from shared.policy.policy import ClusteringOrder, ClusterMode, Policy


def limit(policy: Policy, support: FormatSupport, configuration: Mapping[str, str]) -> tuple[Policy, tuple[str, ...]]:
    """Return the policy with the limits of a format, and a note for each property that has no effect under them.

    configuration: the table's properties.
    """
    limited = policy.with_traits(
        job_kinds=" ".join(support.job_kinds),
        orders_rows=support.orders_rows,
        own_retention_s=_longer_retention_s(policy, support, configuration),
    )
    ignored = (
        *_ignored_orders(limited, support),
        *_ignored_jobs(limited, support),
        *_ignored_clusters(limited, support),
        *_half_keys(limited),
        *_ignored_yielding(limited, support),
    )
    return limited, (*ignored, *_own_retention(limited))


def limited_to(support: FormatSupport, allowed_kinds: Sequence[str], what: str) -> FormatSupport:
    """Return what engines can do with a table whose format keeps its layout: the allowed kinds of jobs, and no orders.

    what: such tables, as `clustered`.
    """
    kinds = tuple(filter(support.runs, allowed_kinds))
    by_hand = {DEDUPLICATE: "MERGE INTO", EXPIRE: "DELETE FROM"}
    instead = {kind: f"use {statement} in the table's own engine" for kind, statement in by_hand.items()}
    return replace(
        support,
        title=f"{what} {support.title}",
        job_kinds=kinds,
        orders_rows=False,
        instead={**support.instead, **instead},
    )


def _longer_retention_s(policy: Policy, support: FormatSupport, configuration: Mapping[str, str]) -> int:
    """Return the table's own retention in seconds where it is longer than the policy's; 0 where it is not."""
    try:
        own_s = support.own_retention_s(configuration)
    except InvalidInput:
        return 0  # The actor cannot read it either, and deletes nothing.
    return own_s if own_s > max(policy.retain_s or 0, policy.min_retain_s) else 0


def _own_retention(policy: Policy) -> Iterator[str]:
    hours = policy.retention_s / 3600
    if policy.traits.own_retention_s:
        yield f"removed files are kept for {hours:g} hours: the table's own retention is longer than what is set here"
    elif policy.retain_s is not None and policy.retain_s < policy.min_retain_s:
        yield (
            f"removed files are kept for {hours:g} hours, not for {policy.retain_s / 3600:g}: retain only lengthens "
            "min-retain and the retention of the table's format; to keep less, set these, too"
        )
    elif policy.reclaim_after_s is not None and policy.reclaim_after_s < policy.retention_s:
        yield (
            f"removed files are kept for {hours:g} hours, not for {policy.reclaim_after_s / 3600:g}: reclaim-after "
            "keeps a day at least, because readers and writers may run for as long, and other retentions that are set "
            "count if they are longer; lakewright.min-retain on the table sets another minimum"
        )


def _ignored_orders(policy: Policy, support: FormatSupport) -> Iterator[str]:
    named = {
        "sort-by": policy.sort_by is not None,
        "zorder-by": policy.zorder_by is not None,
        "clustering-order": policy.clustering_order is not ClusteringOrder.NONE,
    }
    for name, is_set in named.items():
        if is_set and not policy.traits.orders_rows:
            yield f"{name} has no effect: rewrites of {support.title} tables neither sort rows nor keep their order"


def _ignored_clusters(policy: Policy, support: FormatSupport) -> Iterator[str]:
    if policy.cluster_by is not None and support.title and not support.names_cluster_columns:
        yield f"cluster-by has no effect on {support.title} tables: CLUSTER BY names the columns"
    elif policy.cluster is not ClusterMode.OFF and support.names_cluster_columns and not policy.names_cells:
        yield f"cluster has no effect on {support.title} tables unless it is cells, and cluster-by names columns"


def _half_keys(policy: Policy) -> Iterator[str]:
    if (policy.primary_key is None) is not (policy.sequence_by is None):
        yield "primary-key and sequence-by have no effect without each other: set both or none"


def _ignored_yielding(policy: Policy, support: FormatSupport) -> Iterator[str]:
    if policy.yield_to_writers and support.title and not support.has_entries:
        yield f"yield-to-writers has no effect on {support.title} tables: no catalog could undo their commits"


def _ignored_jobs(policy: Policy, support: FormatSupport) -> Iterator[str]:
    named = {
        **{one.kind: (one.property_name, one.at(policy) is not None) for one in UPKEEP},
        VACUUM: ("vacuum", policy.vacuum),
        CHECKPOINT: ("checkpoint-every", policy.checkpoint_every is not None),
        DEDUPLICATE: ("primary-key", policy.has_key),
        EXPIRE: ("delete-rows-after", policy.delete_rows_after is not None),
    }
    for kind, (name, is_set) in named.items():
        if is_set and kind in support.lacks:
            yield f"{name} has no effect on {support.title} tables: they have no {support.lacks[kind]}"
        elif is_set and not policy.runs(kind):
            yield f"{name} has no effect on {support.title} tables: {support.instead.get(kind, 'no actor can run it')}"
