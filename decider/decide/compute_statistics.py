"""Statistics of columns as an action: computed again for planners when a share of the rows has changed.

How many rows changed is in the summaries of snapshots. They are read when the table is evaluated, ten minutes after a
commit at the earliest, as for manifests.
"""

from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.excess import EVALUATED_AFTER_MS
from decider.decide.table_action import TableProposal
from shared.jobs.payload import COMPUTE_STATISTICS
from shared.layout.eligibility import DecisionReason
from shared.layout.statistics_age import StatisticsReason, statistics_need
from shared.policy.policy import Policy
from shared.queue.model import TimerChange


class ComputeStatisticsAction:
    """When statistics of a table's columns are computed."""

    kind: str = COMPUTE_STATISTICS
    reasons: type[DecisionReason] = StatisticsReason
    is_rewrite: bool = False

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return policy.compute_statistics_at is not None

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:  # noqa: ARG002 - the protocol's
        """Propose to compute them where so large a share of the rows changed as the policy says."""
        need = statistics_need(signals.statistics, policy.compute_statistics_at)
        if signals.statistics is None or need is not StatisticsReason.OLD:
            return TableProposal(need)
        # It replaces no file, and reads all.
        return TableProposal(need, Prediction(0, 0, signals.statistics.bytes, Fraction(1), 0, 0))

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        """Evaluate some time after new commits; a timer that is set already stays."""
        if policy.compute_statistics_at is None or not signals.new_commits:
            return None
        return at_ms + EVALUATED_AFTER_MS, TimerChange.EARLIER


COMPUTE_STATISTICS_ACTION = ComputeStatisticsAction()
