"""Sorting as an action: full files whose ranges of the sort key overlap too much become files with disjoint ranges.

The evaluation itself is in `shared.layout.sort_planner`, because an actor evaluates the live files by the same rule.
"""

from collections.abc import Sequence
from fractions import Fraction

from decider.decide.action import ActionTimers, Proposal
from decider.decide.decision import Prediction, Trigger
from decider.decide.entry_timers import EntryTimers
from shared.jobs.payload import SORT, RewriteKind
from shared.layout.eligibility import DecisionReason
from shared.layout.partition_stats import PartitionStats
from shared.layout.planner import Plan
from shared.layout.sort_planner import SortReason, evaluate_sort, find_overlap, plan_sort
from shared.policy.policy import Policy
from shared.table import DataFile, PartitionKey


def _names_order(policy: Policy) -> bool:
    return (policy.sort_by or policy.zorder_by) is not None


class Sorting:
    """A sort of the files of one partition, after each commit that leaves too many of them overlapping."""

    kind: str = SORT
    reasons: type[DecisionReason] = SortReason
    is_calibrated: bool = False
    timers: ActionTimers | None = EntryTimers(SORT, _names_order)

    def is_on(self, policy: Policy) -> bool:
        """Only tables with a sort order are sorted; where the format has no orders, the record has the reason."""
        return _names_order(policy)

    def evaluate(self, stats: PartitionStats, policy: Policy, trigger: Trigger) -> Proposal:  # noqa: ARG002
        """Evaluate a partition on the depths of its rolling state; work is proposed exactly where a plan has some."""
        reason = evaluate_sort(stats, policy)
        return Proposal(reason, predict(stats, policy) if reason is SortReason.TOO_DEEP else None)

    def plan(
        self,
        partition: PartitionKey,
        files: Sequence[DataFile],
        policy: Policy,
        rewrite_kind: RewriteKind,  # noqa: ARG002
    ) -> Plan:
        """Plan as an actor does."""
        return plan_sort(partition, files, policy)


def predict(stats: PartitionStats, policy: Policy) -> Prediction | None:
    """Predict the sort at the deepest point: as many files as overlap there, of the mean size of full files.

    No files are removed. Benefit is the depth that a reader of that point is spared: those files but one.
    """
    overlap = find_overlap(stats, policy)
    if overlap is None:
        return None
    full_files = max(1, stats.files - stats.small_files)
    replaced = min(overlap.files, full_files)
    size_bytes = (stats.bytes - stats.small_bytes) * replaced // full_files
    return Prediction(replaced, 0, size_bytes, Fraction(replaced - 1), 0, size_bytes)


SORTING = Sorting()
