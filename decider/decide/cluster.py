"""Clustering as an action: Delta's own OPTIMIZE on a table with `CLUSTER BY`, once enough of it is not clustered.

No exact rewrite touches such a table. Whether a run is due follows from the files alone
(`shared.layout.clustered_files`); the actor asks the same rule on the live files before it runs.
"""

from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.jobs.payload import CLUSTER
from shared.layout.clustered_files import ClusterReason
from shared.layout.eligibility import DecisionReason
from shared.policy.policy import ClusterMode, Policy
from shared.queue.model import TimerChange


class ClusterAction:
    """When a clustered table's own format clusters its files."""

    kind: str = CLUSTER
    reasons: type[DecisionReason] = ClusterReason
    is_rewrite: bool = True

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return policy.cluster is not ClusterMode.OFF

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:  # noqa: ARG002 - the protocol's
        """Propose a run where the files that are not clustered are worth it."""
        files = signals.clustered
        if files is None:
            return TableProposal(ClusterReason.NOT_CLUSTERED)
        need = files.need(policy)
        if not need.is_due:
            return TableProposal(need)
        # How many files there are afterwards is Delta's to decide.
        replaced, size_bytes = files.unclustered_files, files.rewritten_bytes
        return TableProposal(need, Prediction(replaced, 0, size_bytes, Fraction(replaced), 0, size_bytes))

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        """Evaluate at once when a run is due."""
        is_due = self.evaluate(signals, policy, at_ms).prediction is not None
        return (at_ms, TimerChange.SET) if is_due else (0, TimerChange.STOP)


CLUSTER_ACTION = ClusterAction()
