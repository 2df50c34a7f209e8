"""The interface of a kind of work on a table as a whole, such as vacuum, and the one way to decide about it.

Its job has the partition key `{}`, excludes no other job, and waits in the lowest band. Only
timers, rebuilds and requests lead to a decision; a commit changes the table's signals and sets the timer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from decider.decide.action import ActionKind, Proposal
from decider.decide.context import DecisionContext
from decider.decide.decision import Decision, DecisionKind, TableSignals, Trigger, TriggerSource
from shared.layout.eligibility import DecisionReason, Reason
from shared.layout.partition_stats import EMPTY_STATS
from shared.partitions import WHOLE_TABLE
from shared.policy import Policy
from shared.queue.model import Timer, TimerChange


@dataclass(frozen=True, slots=True)
class TableProposal(Proposal):
    """A proposal about a table, with the options of the job."""

    options: Mapping[str, Any] = field(default_factory=dict, hash=False)


class TableAction(ActionKind, Protocol):
    """One kind of work on a whole table; pure: the same signals give the same proposal."""

    def is_on(self, policy: Policy) -> bool:
        """Return whether the table's policy wants this action to run by itself."""
        ...

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:
        """Evaluate a table that may be touched, whether or not the action is on."""
        ...

    def due_ms(self, signals: TableSignals, policy: Policy, at_ms: int) -> int | None:
        """Return when a table without further commits is to be evaluated; None: only after another commit."""
        ...


def evaluate_table(context: DecisionContext, signals: TableSignals, trigger: Trigger, action: TableAction) -> Decision:
    """Decide about a table for one action; a switched-off action proposes nothing, unless a person forces it."""
    policy = context.policy
    reason = _excluded(policy, trigger)
    if reason is not None:
        return _skip(reason, signals, trigger, action)
    proposed = action.evaluate(signals, policy, context.at_ms)
    if proposed.prediction is None or not (action.is_on(policy) or trigger.is_forced):
        return _skip(proposed.reason if action.is_on(policy) else Reason.SWITCHED_OFF, signals, trigger, action)
    return Decision(
        WHOLE_TABLE,
        DecisionKind.ENQUEUE,
        Reason.REQUESTED if trigger.source is TriggerSource.REQUEST else proposed.reason,
        EMPTY_STATS,
        trigger,
        proposed.prediction,
        action=action.kind,
        signals=signals,
        options=proposed.options,
    )


def table_timer(action: TableAction, signals: TableSignals, policy: Policy, at_ms: int) -> Timer | None:
    """Return the timer of a table after its signals changed; None where the action is off, and has none."""
    if not action.is_on(policy) or _excluded(policy, None) is not None:
        return None
    due_ms = action.due_ms(signals, policy, at_ms)
    if due_ms is None:
        return Timer(timer_name(action), 0, TimerChange.STOP)
    return Timer(timer_name(action), max(0, due_ms), TimerChange.SET)


def timer_name(action: TableAction) -> str:
    """Return the name of the one timer that an action has on each table."""
    return f"{action.kind} {WHOLE_TABLE}"


def _excluded(policy: Policy, trigger: Trigger | None) -> DecisionReason | None:
    if policy.refused:
        return Reason.REFUSED
    is_forced = trigger is not None and trigger.is_forced
    return None if policy.enabled or is_forced else Reason.DISABLED


def _skip(reason: DecisionReason, signals: TableSignals, trigger: Trigger, action: TableAction) -> Decision:
    return Decision(WHOLE_TABLE, DecisionKind.SKIP, reason, EMPTY_STATS, trigger, action=action.kind, signals=signals)
