"""The funnel from commits to rewrites: the counters of tables and of the service, and the stage each decision ends at.

Every counter that Redis holds is exported. `funnel_stages` derives those that are exported before they are first
counted, so that the first increase is seen, too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

from decider.decide.actions import ActionRegistry
from decider.decide.decision import Decision
from shared.layout.eligibility import DecisionReason, Reason
from shared.run_counters import RunCounter, runs_of_kind


class CommitCounter(StrEnum):
    """Counters of commits as they are read, beside the stages of the decisions that they lead to."""

    COMMITS = "commits"
    OWN_COMMITS = "own_commits"
    FILES_ADDED = "files_added"
    BYTES_ADDED = "bytes_added"
    BACKLOG_BYTES_FOUND = "backlog_bytes_found"
    BACKLOG_BYTES_DONE = "backlog_bytes_done"
    STEADY_BYTES_ADDED = "steady_bytes_added"
    STEADY_BYTES_REWRITTEN = "steady_bytes_rewritten"
    PARTITIONS_TOUCHED = "partitions_touched"
    DEFERRED = "deferred"
    POSSIBLE_DML_ABORTS = "possible_dml_aborts"
    REBUILDS = "rebuilds"
    DRIFT = "drift"
    TABLES_INITIALIZED = "tables_initialized"
    RECORDS_UNREADABLE = "records_unreadable"


ENQUEUED = "enqueued"
REWRITTEN = "partitions_rewritten"

_STAGES: Mapping[DecisionReason, str] = {
    Reason.OWN_COMMIT: REWRITTEN,
    Reason.NO_DATA_CHANGE: REWRITTEN,
    Reason.DISABLED: "disabled",
    Reason.SWITCHED_OFF: "disabled",
    Reason.NOT_FOR_FORMAT: "disabled",
    Reason.CLUSTERED_TABLE: "disabled",
    Reason.INDEXED_TABLE: "disabled",
    Reason.FILTERED: "filtered",
    Reason.DEFERRED_TO_WRITERS: "deferred_to_writers",
    Reason.REFUSED: "refused",
    Reason.REFUSED_FILES: "refused",
}


def funnel_counts(decisions: Iterable[Decision], actions: ActionRegistry) -> dict[str, int]:
    """Count decisions by the stage that each ended at."""
    return dict(Counter(_stage(decision, actions) for decision in decisions))


def funnel_stages(actions: ActionRegistry) -> tuple[str, ...]:
    """Return every stage and counter that this release names, in the order of the funnel."""
    own = (stage for action in (*actions, *actions.table_actions) for stage in action.stages.values())
    runs = map(runs_of_kind, actions.table_kinds)
    return tuple(map(str, dict.fromkeys((*CommitCounter, *_STAGES.values(), *own, ENQUEUED, *RunCounter, *runs))))


def _stage(decision: Decision, actions: ActionRegistry) -> str:
    if decision.prediction is not None:
        return ENQUEUED
    return _STAGES.get(decision.reason) or actions.any_of(decision.action).stages[decision.reason]
