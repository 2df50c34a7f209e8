"""The funnel: at which stage each decision ended, as the counters of tables and of the service show it."""

from collections import Counter
from collections.abc import Iterable, Mapping

from decider.decide.actions import ActionRegistry
from decider.decide.decision import Decision
from shared.layout.eligibility import DecisionReason, Reason

_ENQUEUED = "enqueued"

_STAGES: Mapping[DecisionReason, str] = {
    Reason.OWN_COMMIT: "partitions_rewritten",
    Reason.NO_DATA_CHANGE: "partitions_rewritten",
    Reason.DISABLED: "disabled",
    Reason.SWITCHED_OFF: "disabled",
    Reason.NOT_FOR_FORMAT: "disabled",
    Reason.CLUSTERED_TABLE: "disabled",
    Reason.INDEXED_TABLE: "disabled",
    Reason.FILTERED: "filtered",
    Reason.DEFERRED_TO_WRITERS: "deferred_to_writers",
    Reason.REFUSED: "refused",
}


def funnel_counts(decisions: Iterable[Decision], actions: ActionRegistry) -> dict[str, int]:
    """Count decisions by the stage that each ended at."""
    return dict(Counter(_stage(decision, actions) for decision in decisions))


def _stage(decision: Decision, actions: ActionRegistry) -> str:
    if decision.prediction is not None:
        return _ENQUEUED
    return _STAGES.get(decision.reason) or actions.any_of(decision.action).stages[decision.reason]
