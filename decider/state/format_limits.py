"""What a table's format leaves of its policy: kinds of jobs that no actor can run have no effect.

The limits become part of the policy itself, so that decider, actor and the recomputation of a ledger record agree.
"""

from collections.abc import Iterator
from dataclasses import replace

from shared.format_support import FormatSupport
from shared.job_payload import CHECKPOINT, VACUUM
from shared.policy import Policy


def limit(policy: Policy, support: FormatSupport) -> tuple[Policy, tuple[str, ...]]:
    """Return the policy with the limits of a format, and a note for each property that has no effect under them."""
    limited = replace(policy, job_kinds=" ".join(support.job_kinds))
    return limited, tuple(_ignored_jobs(limited, support))


def _ignored_jobs(policy: Policy, support: FormatSupport) -> Iterator[str]:
    named = {VACUUM: ("vacuum", policy.vacuum), CHECKPOINT: ("checkpoint-every", policy.checkpoint_every is not None)}
    for kind, (name, is_set) in named.items():
        if is_set and not policy.runs(kind):
            yield f"{name} has no effect on {support.title} tables: {support.instead.get(kind, 'no actor can run it')}"
