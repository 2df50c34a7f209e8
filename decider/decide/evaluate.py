"""The one pipeline: the state of a partition becomes a decision, for every trigger and every action.

trigger -> eligibility (no data change, refused, disabled, filtered, not for the format) -> the action's proposal ->
calibration -> deference to writers. Commits, rebuilds, timers, requests, what-if, views and the recomputation of a
ledger record all come here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from decider.decide.action import Action, Proposal
from decider.decide.calibration import Calibration
from decider.decide.context import DecisionContext
from decider.decide.decision import (
    NOTHING_REFUSED,
    Decision,
    DecisionKind,
    Prediction,
    RefusedPart,
    Trigger,
    TriggerSource,
)
from shared.layout.eligibility import Reason
from shared.layout.partition_stats import PartitionStats
from shared.policy.partition_filter import is_relative, permits
from shared.policy.policy import DmlPolicy, Policy
from shared.table import PartitionColumn, PartitionKey

PIPELINE_REASONS = frozenset(
    {
        *(Reason.OWN_COMMIT, Reason.NO_DATA_CHANGE, Reason.REFUSED, Reason.DISABLED, Reason.FILTERED),
        Reason.REFUSED_FILES,
        *(Reason.DEFERRED_TO_WRITERS, Reason.REQUESTED, Reason.SWITCHED_OFF, Reason.NOT_FOR_FORMAT),
        *(Reason.CLUSTERED_TABLE, Reason.INDEXED_TABLE),
    }
)
"""Reasons that decisions about any action may have; all others are an action's own."""


def evaluate_each(
    context: DecisionContext,
    partition: PartitionKey,
    stats: PartitionStats,
    trigger: Trigger,
    actions: Iterable[Action],
) -> tuple[Decision, ...]:
    """Decide about one partition in this state, after this trigger, for each of the actions that the policy wants."""
    return tuple(
        evaluate(context, partition, stats, trigger, action) for action in actions if action.is_on(context.policy)
    )


def evaluate(
    context: DecisionContext,
    partition: PartitionKey,
    stats: PartitionStats,
    trigger: Trigger,
    action: Action,
) -> Decision:
    """Decide about one partition in this state, after this trigger, for one action."""
    policy, kind = context.policy, action.kind
    # A timer is set only for a partition that the filter permits when it fires, and dropped when the filter changes.
    is_timed = trigger.source is TriggerSource.TIMER and not is_relative(policy.filter)
    has_filter = policy.filter is not None and not is_timed
    columns = context.columns if has_filter else ()
    known = columns if has_filter else None
    reason = _rewrite_reason(trigger.source) or excluded(policy, partition, known, context.at_ms)
    reason = reason or not_for_format(policy, kind)
    if reason is not None:
        columns = columns if reason is Reason.FILTERED else ()
        return Decision(partition, DecisionKind.SKIP, reason, stats, trigger, columns=columns, action=kind)
    refused = context.refusals.part(partition, trigger, policy)
    proposed = _without_refused(refused, stats, policy, trigger, action)
    if proposed.prediction is None:
        return Decision(
            *(partition, DecisionKind.SKIP, proposed.reason, stats, trigger),
            columns=columns,
            action=kind,
            refused=refused,
        )
    if proposed.rewrite_kind not in (None, trigger.rewrite_kind):
        trigger = replace(trigger, rewrite_kind=proposed.rewrite_kind)
    decision = Decision(
        partition,
        DecisionKind.ENQUEUE,
        proposed.reason,
        stats,
        trigger,
        proposed.prediction,
        trigger.purgeable,
        columns=columns,
        action=kind,
        refused=refused,
    )
    if action.is_calibrated and context.calibration.runs:
        prediction = calibrate_prediction(proposed.prediction, context.calibration)
        decision = replace(decision, prediction=prediction, calibration=context.calibration)
    return defer_to_writers(decision, context.busy_ratio(partition), policy)


def _without_refused(
    refused: RefusedPart, stats: PartitionStats, policy: Policy, trigger: Trigger, action: Action
) -> Proposal:
    """Evaluate what is left of a partition without its refused files; they are the reason where they alone had work."""
    if refused == NOTHING_REFUSED:
        return action.evaluate(stats, policy, trigger)
    proposed = action.evaluate(stats.without(refused.stats), policy, trigger)
    if proposed.prediction is not None:
        return Proposal(Reason.REFUSED_FILES) if refused.is_held else proposed
    is_reason = action.evaluate(stats, policy, trigger).prediction is not None
    return Proposal(Reason.REFUSED_FILES) if is_reason else proposed


def _rewrite_reason(source: TriggerSource) -> Reason | None:
    """Return why a commit that changed no data leads to no job: it updates the state and nothing else."""
    if source is TriggerSource.OWN_REWRITE:
        return Reason.OWN_COMMIT
    return Reason.NO_DATA_CHANGE if source is TriggerSource.FOREIGN_REWRITE else None


def excluded(
    policy: Policy, partition: PartitionKey, columns: Sequence[PartitionColumn] | None, at_ms: int
) -> Reason | None:
    """Return why no action must touch a partition at a time: refused, switched off or filtered; None if one may.

    `columns` have the names that the filter uses; None: the filter was evaluated before.
    """
    if policy.traits.refused:
        return Reason.REFUSED
    if not policy.enabled:
        return Reason.DISABLED
    if columns is not None and not permits(policy.filter, partition, columns, at_ms):
        return Reason.FILTERED
    return None


def not_for_format(policy: Policy, kind: str) -> Reason | None:
    """Return why no job of this kind can run on tables of this format or layout; None if one can."""
    if policy.runs(kind):
        return None
    if policy.traits.is_indexed:
        return Reason.INDEXED_TABLE
    return Reason.CLUSTERED_TABLE if policy.traits.is_clustered else Reason.NOT_FOR_FORMAT


def calibrate_prediction(prediction: Prediction, calibration: Calibration) -> Prediction:
    """Correct a prediction by the ratios that were measured on the table; the verdict does not depend on it."""
    return replace(
        prediction,
        files_removed=round(prediction.state_removed * calibration.removed_ratio),
        bytes=round(prediction.state_bytes * calibration.bytes_ratio),
        benefit=prediction.benefit * calibration.removed_ratio,
    )


def defer_to_writers(decision: Decision, busy_ratio: Fraction, policy: Policy) -> Decision:
    """Defer to MERGE, UPDATE and DELETE as the policy requires: the job waits, or there is none.

    A client's request does not wait. If the partition is contended, its file groups are committed one by one.
    """
    if decision.trigger.source is TriggerSource.REQUEST:
        return replace(decision, reason=Reason.REQUESTED, busy_ratio=busy_ratio)
    if not busy_ratio or policy.dml_policy is DmlPolicy.ALWAYS:
        return decision
    if policy.dml_policy is DmlPolicy.NEVER:
        return replace(
            decision,
            verdict=DecisionKind.SKIP,
            reason=Reason.DEFERRED_TO_WRITERS,
            prediction=None,
            busy_ratio=busy_ratio,
        )
    verdict = DecisionKind.DEFER if busy_ratio > policy.max_write_contention else decision.verdict
    return replace(decision, verdict=verdict, busy_ratio=busy_ratio)
