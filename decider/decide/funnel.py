"""The funnel from commits to rewrites: the counters of tables and of the service, and the stage each decision ends at.

Every counter that Redis holds is exported. `funnel_stages` derives those that are exported before they are first
counted, so that the first increase is seen, too.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from decider.decide.actions import ActionRegistry
from decider.decide.decision import Decision
from shared.layout.eligibility import Reason
from shared.run_counters import RunCounter, runs_of_kind


class CommitCounter(StrEnum):
    """Counters of events and of commits as they are read, beside the stages of the decisions that they lead to."""

    EVENTS_RECEIVED = "events_received"
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
    REWRITES_UNDONE = "rewrites_undone"
    BYTES_UNDONE = "bytes_undone"
    REBUILDS = "rebuilds"
    DRIFT = "drift"
    TABLES_INITIALIZED = "tables_initialized"
    RECORDS_UNREADABLE = "records_unreadable"


ENQUEUED = "enqueued"


def funnel_counts(decisions: Iterable[Decision]) -> dict[str, int]:
    """Count decisions by the stage that each ended at."""
    return dict(Counter(made.reason.stage if made.prediction is None else ENQUEUED for made in decisions))


def funnel_stages(actions: ActionRegistry) -> tuple[str, ...]:
    """Return every stage and counter that this release names, in the order of the funnel."""
    own = (reason for action in (*actions, *actions.table_actions) for reason in action.reasons)
    stages = (reason.stage for reason in (*Reason, *own) if reason.stage)
    runs = map(runs_of_kind, actions.table_kinds)
    return tuple(map(str, dict.fromkeys((*CommitCounter, *stages, ENQUEUED, *RunCounter, *runs))))
