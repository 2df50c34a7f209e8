"""The interface of a kind of work on a table as a whole, such as vacuum, and the one way to decide about it.

Its job has the partition key `{}`, excludes no other job, and waits in the background unless it is a rewrite. Only
timers, rebuilds and requests lead to a decision; a commit changes the table's signals and sets the timer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

from decider.decide.action import ActionKind, Proposal
from decider.decide.context import DecisionContext
from decider.decide.decision import (
    NOTHING_REFUSED,
    Decision,
    DecisionKind,
    Prediction,
    TableSignals,
    Trigger,
    TriggerSource,
)
from decider.decide.evaluate import defer_to_writers, not_for_format
from shared.layout.eligibility import DecisionReason, Reason
from shared.layout.partition_stats import EMPTY_STATS
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.queue.model import Timer, TimerChange

AT_LEAST_ONE = Prediction(0, 0, 0, Fraction(1), 0, 0)
"""The prediction of a job that a person requested although the signals know of nothing to do."""


@dataclass(frozen=True, slots=True)
class TableProposal(Proposal):
    """A proposal about a table, with the options of the job."""

    options: Mapping[str, Any] = field(default_factory=dict, hash=False)


class TableAction(ActionKind, Protocol):
    """One kind of work on a whole table; pure: the same signals give the same proposal.

    is_rewrite: it writes data again without changing it, so it is charged with its bytes, waits for MERGE, UPDATE and
    DELETE as the policy requires, and has the table's own band.
    """

    is_rewrite: bool

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:
        """Evaluate a table that may be touched, whether or not the action is on."""
        ...

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        """Return when the table is to be evaluated after its signals changed, and how; None: as it is set already."""
        ...


def evaluate_table(context: DecisionContext, signals: TableSignals, trigger: Trigger, action: TableAction) -> Decision:
    """Decide about a table for one action; a switched-off action proposes nothing, unless a person forces it."""
    policy = context.policy
    reason = _excluded(policy, trigger) or not_for_format(policy, action.kind)
    if reason is not None:
        return _skip(reason, signals, trigger, action)
    proposed = action.evaluate(signals, policy, context.at_ms)
    is_requested = trigger.source is TriggerSource.REQUEST
    if not (action.is_on(policy) or trigger.is_forced):
        return _skip(Reason.SWITCHED_OFF, signals, trigger, action)
    if proposed.prediction is None and not is_requested:
        return _skip(proposed.reason, signals, trigger, action)
    held = NOTHING_REFUSED if is_requested else context.refusals.of_job(action.kind, trigger.version)
    if held != NOTHING_REFUSED:
        return replace(_skip(Reason.REFUSED_FILES, signals, trigger, action), refused=held)
    made = Decision(
        WHOLE_TABLE,
        DecisionKind.ENQUEUE,
        Reason.REQUESTED if is_requested else proposed.reason,
        EMPTY_STATS,
        trigger,
        # The signals may know less than the table: what a person requests is tried.
        proposed.prediction or AT_LEAST_ONE,
        action=action.kind,
        signals=signals,
        options=proposed.options,
    )
    return defer_to_writers(made, context.busy_ratio(WHOLE_TABLE), policy) if action.is_rewrite else made


def table_timer(action: TableAction, signals: TableSignals, policy: Policy, at_ms: int) -> Timer | None:
    """Return the change of a table's timer after its signals changed; None for no change, as where it is off."""
    if not (action.is_on(policy) and policy.runs(action.kind)) or _excluded(policy, None) is not None:
        return None
    found = action.timer(signals, policy, at_ms)
    return None if found is None else Timer(timer_name(action), max(0, found[0]), found[1])


def table_timers(
    actions: Iterable[TableAction], signals: TableSignals, policy: Policy, at_ms: int
) -> tuple[Timer, ...]:
    """Return the changes of a table's timers after its signals changed, of all actions on whole tables."""
    found = (table_timer(action, signals, policy, at_ms) for action in actions)
    return tuple(timer for timer in found if timer is not None)


def timer_name(action: TableAction) -> str:
    """Return the name of the one timer that an action has on each table."""
    return f"{action.kind} {WHOLE_TABLE}"


def _excluded(policy: Policy, trigger: Trigger | None) -> DecisionReason | None:
    if policy.traits.refused:
        return Reason.REFUSED
    is_forced = trigger is not None and trigger.is_forced
    return None if policy.enabled or is_forced else Reason.DISABLED


def _skip(reason: DecisionReason, signals: TableSignals, trigger: Trigger, action: TableAction) -> Decision:
    return Decision(WHOLE_TABLE, DecisionKind.SKIP, reason, EMPTY_STATS, trigger, action=action.kind, signals=signals)
