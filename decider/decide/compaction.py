"""Compaction as an action: merge the small files of a partition if the gain is large enough and levels permit it.

The evaluation itself is in `shared.layout.eligibility`, because an actor evaluates the live files by the same rules.
"""

from collections.abc import Sequence
from fractions import Fraction

from decider.decide.action import ActionTimers, Proposal
from decider.decide.compaction_timers import COMPACTION_TIMERS
from decider.decide.decision import Prediction, Trigger, TriggerSource
from shared.jobs.payload import COMPACT, RewriteKind
from shared.layout.eligibility import (
    DecisionReason,
    Evaluation,
    Reason,
    evaluate_full,
    evaluate_idle,
    evaluate_layout,
    highest_promotable_level,
)
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.layout.planner import Plan, plan_rewrite
from shared.policy.policy import Policy
from shared.table import DataFile, PartitionKey


class Compaction:
    """Merges that the levels permit after a commit, the idle compaction and the full rewrite that timers request."""

    kind: str = COMPACT
    reasons: type[DecisionReason] = Reason
    is_calibrated: bool = True
    timers: ActionTimers | None = COMPACTION_TIMERS

    def is_on(self, policy: Policy) -> bool:  # noqa: ARG002
        """Every table is compacted."""
        return True

    def evaluate(self, stats: PartitionStats, policy: Policy, trigger: Trigger) -> Proposal:
        """Evaluate a partition on its rolling state; work is proposed exactly where a plan would not be empty."""
        due = due_by_counts(trigger, policy)
        for kind in (trigger.rewrite_kind,) if due is None else (due, trigger.rewrite_kind):
            found = _evaluate(stats, policy, kind, trigger.purgeable)
            if found.needs_rewrite:
                # Commits lead to other rewrites than the levels' only by what they count.
                is_counted = trigger.source is TriggerSource.DATA_CHANGE and kind is not RewriteKind.LEVELS
                reason = _reason_of_counts(kind, trigger) if is_counted else found.reason
                return Proposal(reason, predict(stats, found, policy), rewrite_kind=kind)
        return Proposal(found.reason)

    def plan(
        self, partition: PartitionKey, files: Sequence[DataFile], policy: Policy, rewrite_kind: RewriteKind
    ) -> Plan:
        """Plan as an actor does."""
        return plan_rewrite(rewrite_kind, partition, files, policy)


def due_by_commits(commits: int, policy: Policy) -> RewriteKind | None:
    """Return the rewrite that is due after so many commits to a partition, the greater one where both are."""
    if not commits:
        return None
    if policy.full_every_commits is not None and commits % policy.full_every_commits == 0:
        return RewriteKind.FULL
    if policy.compact_every_commits is not None and commits % policy.compact_every_commits == 0:
        return RewriteKind.IDLE
    return None


def due_by_counts(trigger: Trigger, policy: Policy) -> RewriteKind | None:
    """Return the rewrite that is due for the number of commits or of files with deletes, the greater one of both."""
    return RewriteKind.FULL if trigger.is_deletes_due else due_by_commits(trigger.commits, policy)


def _reason_of_counts(kind: RewriteKind, trigger: Trigger) -> Reason:
    is_for_deletes = trigger.is_deletes_due and kind is RewriteKind.FULL
    return Reason.DELETE_COUNT_REACHED if is_for_deletes else Reason.COMMIT_COUNT_REACHED


def _evaluate(stats: PartitionStats, policy: Policy, kind: RewriteKind, purgeable: int) -> Evaluation:
    if kind is RewriteKind.LEVELS:
        return evaluate_layout(stats, policy, purgeable)
    return evaluate_full(stats) if kind is RewriteKind.FULL else evaluate_idle(stats, policy)


def predict(stats: PartitionStats, found: Evaluation, policy: Policy) -> Prediction:
    """Predict gain and cost from the rolling state, without a file list.

    Benefit is files removed plus shortfall removed in units of T^2, of which the excess is the upper bound, plus one
    for each file to purge that is not merged anyway. Where such files are and how large they are is not in the state:
    deleted rows are taken to be where the bytes are, and files outside of the merge to have their mean size.
    """
    merged = _merged_part(stats, found, policy)
    levels = 0 if found.through_level is None else found.through_level + 1
    inputs, merged_bytes = sum(merged.counts[:levels]), sum(merged.sizes[:levels])
    rest, rest_bytes = stats.files - inputs, stats.bytes - merged_bytes
    purged = min(rest, -(-found.purges * rest_bytes // max(1, stats.bytes)))
    total_bytes = merged_bytes + purged * rest_bytes // max(1, rest)
    removed = inputs - max(1, merged_bytes // policy.target_bytes) if inputs else 0
    unit = policy.target_bytes**2
    shortfall = merged.excess(policy.target_bytes) if inputs else 0
    benefit = Fraction((removed + purged) * unit + shortfall, unit)
    return Prediction(inputs + purged, removed, total_bytes, benefit, removed, total_bytes)


def _merged_part(stats: PartitionStats, found: Evaluation, policy: Policy) -> PartitionStats:
    """Return the part of a partition that a merge is predicted to concern: with time windows, those with work.

    Which window an idle compaction is due for is known to its timer and not to the state; the oldest one known stands
    for it.
    """
    if policy.time_window_s is None or found.reason is Reason.FULL_REWRITE_DUE or not stats.windows:
        return stats
    windows = [one for _, one in stats.windows]
    if found.reason is Reason.IDLE:
        return windows[0]
    return sum((one for one in windows if highest_promotable_level(one, policy) is not None), EMPTY_STATS)


COMPACTION = Compaction()
