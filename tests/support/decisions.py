"""Decisions about the compaction of a partition on given numbers, by the pipeline that deciders use."""

from collections.abc import Sequence
from fractions import Fraction

from decider.decide import ledger
from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.compaction import COMPACTION
from decider.decide.context import ConstantContention, DecisionContext
from decider.decide.decision import Decision, Trigger, TriggerSource, commit_trigger
from decider.decide.evaluate import evaluate
from shared.jobs.payload import RewriteKind
from shared.layout.partition_stats import PartitionStats
from shared.policy.policy import Policy
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
