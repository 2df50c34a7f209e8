"""How long a merge that a commit leads to waits for others of its table, to be committed together with them.

Each commit of a rewrite costs the same, whatever it holds: its look at the log, its place in the log, the next reader's
time. So the first merge that waits opens a company, and all that the next commits lead to become ready together with
it, whenever they were decided. No clock sets these moments: where writers work in a rhythm, as partitions of days do,
fixed ones would fall at the same place of it each time, and leave the same files behind in each partition. None waits
that a person or a timer requests, or that has many small files. A table of one partition has no others: to wait would
only let its small files become more.
"""

from collections.abc import Iterable

from decider.decide.context import DecisionContext
from decider.decide.decision import Decision, DecisionKind, TriggerSource
from shared.jobs.payload import COMPACT, RewriteKind
from shared.layout.partition_stats import PartitionStats
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.queue.model import IMMEDIATE, Debounce
from shared.table import PartitionKey

WAIT_COMMITS = 3
"""Commits of writers for which the first merge of a company waits: half as many rewrites as at once, which rewrite a
third less, and hardly more small files. It is ready half a commit before the last of them: a moment at which a commit
is expected would as often lie behind it, and be the next one's."""

_COMMITS = frozenset({TriggerSource.DATA_CHANGE, TriggerSource.OWN_REWRITE, TriggerSource.FOREIGN_REWRITE})


def wait_of(context: DecisionContext, decision: Decision) -> Debounce:
    """Return how long the job of a decision waits for others of its table."""
    trigger = decision.trigger
    is_after_commit = trigger.source in _COMMITS and trigger.band is None and not trigger.is_forced
    is_merge = decision.action == COMPACT and decision.rewrite_kind is RewriteKind.LEVELS
    wait_ms = company_wait_ms(decision.partition, decision.state, context.commit_every_ms, context.policy)
    if not (is_after_commit and is_merge and wait_ms):
        return IMMEDIATE
    ready_ms = together_ms(context.together_ms, context.at_ms, wait_ms)
    return Debounce(quiet_ms=ready_ms - context.at_ms, max_delay_ms=wait_ms)


def company_wait_ms(partition: PartitionKey, state: PartitionStats, commit_every_ms: int, policy: Policy) -> int:
    """Return how long the merge of a partition waits at most, 0 if it does not.

    Not if the table has no other partition, no commit is expected meanwhile, or the partition would pass
    `max-small-files` with twice its small files.
    """
    allowed_ms = 1000 * (policy.max_job_wait_s or 0)
    if partition == WHOLE_TABLE or 2 * state.small_files > policy.max_small_files:
        return 0
    if not commit_every_ms or allowed_ms < commit_every_ms:
        return 0
    return min(allowed_ms, WAIT_COMMITS * commit_every_ms - commit_every_ms // 2)


def together_ms(before_ms: int, at_ms: int, wait_ms: int) -> int:
    """Return when a merge that waits so long at most is ready: with those that wait already, `before_ms`, if any do."""
    return before_ms if at_ms < before_ms <= at_ms + wait_ms else at_ms + wait_ms


def together_after_ms(context: DecisionContext, decisions: Iterable[Decision]) -> int:
    """Return when the merges that wait are ready after these decisions, which the next ones have to know."""
    waits = [wait_of(context, one) for one in decisions if one.verdict is DecisionKind.ENQUEUE]
    return max((context.at_ms + wait.quiet_ms for wait in waits if wait != IMMEDIATE), default=context.together_ms)
