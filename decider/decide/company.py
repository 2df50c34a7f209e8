"""How long a merge that a commit leads to waits for others of its table, to be committed together with them.

Each commit of a rewrite costs the same, whatever it holds: its look at the log, its place in the log, the next reader's
time. So merges wait for merges of other partitions that the next commits lead to. All of a table become ready at the
same moment, whenever they were decided; none waits that a person or a timer requests, or that has many small files. A
table of one partition has no others: to wait would only let its small files become more.
"""

from zlib import crc32

from decider.decide.context import DecisionContext
from decider.decide.decision import Decision, TriggerSource
from shared.jobs.payload import COMPACT, RewriteKind
from shared.layout.partition_stats import PartitionStats
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.queue.model import IMMEDIATE, Debounce
from shared.table import PartitionKey

WAIT_COMMITS = 5
"""Commits of writers for which merges wait: half as many rewrites as at once, which rewrite a third less."""

STEPS_S = (1, 2, 5, 10, 30, 60, 150, 300, 600, 1_800, 3_600)
"""Lengths of waits in seconds: few, so that a pace that varies changes no moments for which jobs wait already."""


_COMMITS = frozenset({TriggerSource.DATA_CHANGE, TriggerSource.OWN_REWRITE, TriggerSource.FOREIGN_REWRITE})


def wait_of(context: DecisionContext, decision: Decision) -> Debounce:
    """Return how long the job of a decision waits for others of its table."""
    trigger = decision.trigger
    is_after_commit = trigger.source in _COMMITS and trigger.band is None and not trigger.is_forced
    is_merge = decision.action == COMPACT and decision.rewrite_kind is RewriteKind.LEVELS
    wait_ms = company_wait_ms(decision.partition, decision.state, context.commit_every_ms, context.policy)
    if not (is_after_commit and is_merge and wait_ms):
        return IMMEDIATE
    # Tables have moments of their own, so that not all of them are claimed at once.
    shifted_ms = context.at_ms + crc32(context.table.id.encode()) % wait_ms
    return Debounce(quiet_ms=next_moment_ms(shifted_ms, wait_ms) - shifted_ms, max_delay_ms=wait_ms)


def company_wait_ms(partition: PartitionKey, state: PartitionStats, commit_every_ms: int, policy: Policy) -> int:
    """Return how long the merge of a partition waits at most, 0 if it does not.

    Not if the table has no other partition, no commit is expected meanwhile, or the partition would pass
    `max-small-files` with twice its small files.
    """
    allowed_s = policy.max_job_wait_s or 0
    if partition == WHOLE_TABLE or 2 * state.small_files > policy.max_small_files:
        return 0
    if not commit_every_ms or 1000 * allowed_s < commit_every_ms:
        return 0
    wanted_s = min(allowed_s, WAIT_COMMITS * commit_every_ms // 1000)
    return 1000 * max((one for one in STEPS_S if one <= wanted_s), default=0)


def next_moment_ms(at_ms: int, wait_ms: int) -> int:
    """Return the moment after this one at which the merges of a table that wait so long become ready."""
    return (at_ms // wait_ms + 1) * wait_ms
