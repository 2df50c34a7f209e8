"""Clustering as an action on tables that are clustered, once enough is not: Delta's own OPTIMIZE, or cells.

No other rewrite touches such a table. Whether the statement is due follows from the files alone
(`shared.layout.clustered_files`), and the actor asks the same rule on the live files before it runs. In cells, commits
are counted (`shared.layout.cells.counts`), and what there is to do, the actor finds out.
"""

from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.cells.counts import CellFiles
from shared.layout.clustered_files import ClusterReason
from shared.layout.eligibility import DecisionReason
from shared.policy.policy import ClusterMode, Policy
from shared.queue.model import TimerChange


class ClusterAction:
    """When files of a clustered table are clustered."""

    kind: str = CLUSTER
    reasons: type[DecisionReason] = ClusterReason
    is_rewrite: bool = True

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return policy.cluster is not ClusterMode.OFF

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:  # noqa: ARG002 - the protocol's
        """Propose a run where the files that are not clustered are worth it."""
        cells, files = signals.cells, signals.clustered
        known = cells or files
        if known is None:
            return TableProposal(ClusterReason.NOT_CLUSTERED)
        need = known.need(policy)
        if not need.is_due:
            return TableProposal(need)
        # How many files there are afterwards is Delta's to decide, or the actor's, who knows where rows lie.
        if isinstance(known, CellFiles):
            size_bytes, options = known.rewritten_bytes(policy), ClusterOptions(commit_bytes=known.commit_bytes)
            replaced = max(1, known.new_files)
        else:
            size_bytes, replaced, options = known.rewritten_bytes, known.unclustered_files, ClusterOptions()
        made = Prediction(replaced, 0, size_bytes, Fraction(replaced), 0, size_bytes)
        return TableProposal(need, made, options=options.encode())

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        """Evaluate at once when a run is due."""
        is_due = self.evaluate(signals, policy, at_ms).prediction is not None
        return (at_ms, TimerChange.SET) if is_due else (0, TimerChange.STOP)


CLUSTER_ACTION = ClusterAction()
