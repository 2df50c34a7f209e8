"""Decisions on given numbers by the pipeline that deciders use, and the same from a record of the ledger alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from decider.decide import ledger
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.compaction import COMPACTION
from decider.decide.context import ConstantContention, DecisionContext
from decider.decide.decision import (
    NOTHING_REFUSED,
    Decision,
    DecisionKind,
    RefusedPart,
    Trigger,
    TriggerSource,
    commit_trigger,
)
from decider.decide.evaluate import evaluate
from decider.decide.ledger import LedgerRecord, predicted
from decider.decide.table_action import evaluate_table
from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import DecisionReason, Reason
from shared.layout.partition_stats import PartitionStats
from shared.partitions import partition_values
from shared.policy.levels import FULL
from shared.policy.policy import Policy, PortablePaths
from shared.table import Commit, PartitionColumn, PartitionKey, TableId, TableMetadata, TableRef

TABLE = TableRef(TableId("t"), "t", "memory:///t")


def context_of(
    policy: Policy,
    *,
    columns: Sequence[PartitionColumn] = (),
    calibration: Calibration = UNCALIBRATED,
    busy_ratio: Fraction = Fraction(0),
    at_ms: int = 1,
) -> DecisionContext:
    """A table under a policy that is calibrated already."""
    metadata = TableMetadata("u-1", tuple(columns))
    return DecisionContext(TABLE, metadata, policy, calibration, ConstantContention(busy_ratio), at_ms)


def decide_on_state(
    partition: PartitionKey, state: PartitionStats, policy: Policy, version: int, purgeable: int = 0
) -> Decision:
    """Decide as after a rebuild."""
    return evaluate(context_of(policy), partition, state, Trigger(version, purgeable=purgeable), COMPACTION)


def decide_after_commit(partition: PartitionKey, state: PartitionStats, policy: Policy, commit: Commit) -> Decision:
    """Decide as after a commit."""
    return evaluate(context_of(policy), partition, state, commit_trigger(commit), COMPACTION)


def decide_on_timer(
    kind: RewriteKind, partition: PartitionKey, state: PartitionStats, policy: Policy, version: int
) -> Decision:
    """Decide as on a due timer."""
    return evaluate(context_of(policy), partition, state, Trigger(version, TriggerSource.TIMER, kind), COMPACTION)


def encoded(decision: Decision, policy: Policy, at_ms: int) -> str:
    """The ledger's text for a decision under a policy."""
    return ledger.encode(decision, context_of(policy, at_ms=at_ms))


@dataclass(frozen=True, slots=True)
class ConstantRefusal:
    """The same part of every partition, such as the one that a ledger record keeps of its partition."""

    refused: RefusedPart = NOTHING_REFUSED

    def part(self, partition: PartitionKey, trigger: Trigger, policy: Policy) -> RefusedPart:
        """Return the part."""
        return self.refused

    def of_job(self, kind: str, version: int) -> RefusedPart:
        """Return the part."""
        return self.refused


def recompute(record: LedgerRecord, actions: ActionRegistry = ACTIONS) -> DecisionKind:
    """Decide again from the record's own numbers, see `decide_again`."""
    return decide_again(record, actions).verdict


def predict_again(record: LedgerRecord, actions: ActionRegistry = ACTIONS) -> Mapping[str, float]:
    """Predict again from the record's own numbers, calibration included; empty where the decision led to no job."""
    return predicted(decide_again(record, actions))


_SOURCES: Mapping[DecisionReason, TriggerSource] = {
    Reason.OWN_COMMIT: TriggerSource.OWN_REWRITE,
    Reason.NO_DATA_CHANGE: TriggerSource.FOREIGN_REWRITE,
    Reason.REQUESTED: TriggerSource.REQUEST,
}
"""Trigger that a reason implies, beyond the numbers of a record."""

_LATER_SOURCES: Mapping[DecisionReason, TriggerSource] = {
    Reason.COMMIT_COUNT_REACHED: TriggerSource.DATA_CHANGE,
    Reason.DELETE_COUNT_REACHED: TriggerSource.DATA_CHANGE,
    Reason.REQUESTED: TriggerSource.REQUEST,
}
"""The same for an idle compaction and a full rewrite, which timers trigger otherwise."""


def decide_again(record: LedgerRecord, actions: ActionRegistry = ACTIONS) -> Decision:
    """Evaluate again from the record's own numbers: policy, state, partition, filter, contention and calibration.

    Three inputs lie outside of them and are taken from the record: what the commit was (OWN_COMMIT, NO_DATA_CHANGE),
    that a client requested a rewrite (REQUESTED), which does not wait for the table's writers, and that the number of
    commits or of files with deletes led to it (COMMIT_COUNT_REACHED, DELETE_COUNT_REACHED).
    """
    context = DecisionContext(
        TableRef(TableId(""), "", ""),
        TableMetadata("", record.columns),
        record.policy,
        record.calibration,
        ConstantContention(record.busy_ratio),
        record.at_ms,
        refusals=ConstantRefusal(record.refused),
    )
    table_action = actions.table_action(record.action)
    if table_action is not None and record.signals is not None:
        source = TriggerSource.REQUEST if record.reason is Reason.REQUESTED else TriggerSource.TIMER
        forced = Trigger(record.version, source, is_forced=record.is_forced)
        return evaluate_table(context, record.signals, forced, table_action)
    if record.rewrite_kind is RewriteKind.LEVELS:
        source = _SOURCES.get(record.reason, TriggerSource.REBUILD)
        trigger = Trigger(record.version, source, purgeable=record.purgeable)
    else:
        source = _LATER_SOURCES.get(record.reason, TriggerSource.TIMER)
        is_due = record.reason is Reason.DELETE_COUNT_REACHED
        purgeable = record.purgeable if source is TriggerSource.REQUEST else 0
        trigger = Trigger(record.version, source, record.rewrite_kind, purgeable, is_deletes_due=is_due)
    return evaluate(context, record.partition, record.state, trigger, actions.of(record.action))


def _most_purgeable(record: LedgerRecord) -> int:
    """Return how many files may be rewritten even alone: those with deleted rows, or any where their paths count."""
    paths_count = record.policy.portable_paths is PortablePaths.ALWAYS
    return record.state.files if paths_count else record.state.dv_files


def contradictions(record: LedgerRecord, actions: ActionRegistry = ACTIONS) -> tuple[str, ...]:
    """Return the fields that the record's own numbers contradict, by the names that `LedgerRecord` has for them.

    Not detected: `at_ms`, `version` and the kind of outcome, which nothing follows from; what `decide_again` believes;
    and another value of a number from which the same verdict, reason and prediction follow.
    """
    again = decide_again(record, actions)
    partition = set(partition_values(record.partition))
    agrees = {
        "verdict": again.verdict is record.verdict,
        "reason": again.reason is record.reason,
        "predicted": predicted(again) == dict(record.predicted),
        "calibration": again.calibration == record.calibration,
        "busy_ratio": again.busy_ratio == record.busy_ratio and 0 <= record.busy_ratio <= 1,
        "purgeable": again.purgeable == record.purgeable <= _most_purgeable(record),
        "columns": not record.columns or {column.physical for column in record.columns} == partition,
        "refused": again.refused == record.refused,
        "state": _is_countable(record.state, record.policy),
        "outcome": not record.outcome or record.verdict is not DecisionKind.SKIP,
    }
    return tuple(name for name, is_so in agrees.items() if not is_so)


def _is_countable(state: PartitionStats, policy: Policy) -> bool:
    """Return whether there can be files that add up to this state on the policy's levels."""
    floors = policy.size_levels.floors
    full_files, full_bytes = state.files - state.small_files, state.bytes - state.small_bytes
    return (
        state.is_consistent
        and state.small_shortfall <= state.shortfall
        and state.dv_files <= state.files
        and 0 <= state.cube_files <= state.files
        and full_bytes >= full_files * floors[FULL] >= 0
        and all(
            count * floors[level] <= size <= count * (floors[level + 1] - 1)
            for level, (count, size) in enumerate(zip(state.counts, state.sizes, strict=True))
        )
    )
