"""What a table's format leaves of its policy: kinds of jobs and orders that no engine supports have no effect.

The limits become part of the policy itself, so that decider, actor and the recomputation of a ledger record agree.
"""

from collections.abc import Iterator
from dataclasses import replace

from shared.format_support import FormatSupport
from shared.job_payload import CHECKPOINT, VACUUM
from shared.policy import ClusteringOrder, Policy


def limit(policy: Policy, support: FormatSupport) -> tuple[Policy, tuple[str, ...]]:
    """Return the policy with the limits of a format, and a note for each property that has no effect under them."""
    limited = replace(policy, job_kinds=" ".join(support.job_kinds), orders_rows=support.orders_rows)
    return limited, (*_ignored_orders(limited, support), *_ignored_jobs(limited, support))


def _ignored_orders(policy: Policy, support: FormatSupport) -> Iterator[str]:
    named = {
        "sort-by": policy.sort_by is not None,
        "zorder-by": policy.zorder_by is not None,
        "clustering-order": policy.clustering_order is not ClusteringOrder.NONE,
    }
    for name, is_set in named.items():
        if is_set and not policy.orders_rows:
            yield f"{name} has no effect: rewrites of {support.title} tables neither sort rows nor keep their order"


def _ignored_jobs(policy: Policy, support: FormatSupport) -> Iterator[str]:
    named = {VACUUM: ("vacuum", policy.vacuum), CHECKPOINT: ("checkpoint-every", policy.checkpoint_every is not None)}
    for kind, (name, is_set) in named.items():
        if is_set and not policy.runs(kind):
            yield f"{name} has no effect on {support.title} tables: {support.instead.get(kind, 'no actor can run it')}"
