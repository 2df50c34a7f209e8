"""Rewriting of manifests as an action: many small ones become few, so that readers plan a query with fewer requests.

How many there are is in the newest snapshot's manifest list, one small file. It is read when the table is evaluated,
ten minutes after a commit at the earliest: commits that follow each other closely cost one evaluation.
"""

from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.jobs.payload import REWRITE_MANIFESTS
from shared.layout.eligibility import DecisionReason
from shared.layout.manifest_files import ManifestReason, manifests_need
from shared.policy.policy import Policy
from shared.queue.model import TimerChange

EVALUATED_AFTER_MS = 600_000
"""From the first commit after an evaluation to the next evaluation."""


class RewriteManifestsAction:
    """When a table's manifests are rewritten."""

    kind: str = REWRITE_MANIFESTS
    reasons: type[DecisionReason] = ManifestReason
    is_rewrite: bool = False

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return policy.rewrite_manifests_at is not None

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:  # noqa: ARG002 - the protocol's
        """Propose a rewrite where as many manifests are superfluous as the policy says."""
        files = signals.manifests
        need = manifests_need(files, policy.rewrite_manifests_at)
        if files is None or need is not ManifestReason.MANY:
            return TableProposal(need)
        # It replaces no data file, so it is charged with no bytes.
        return TableProposal(need, Prediction(0, 0, 0, Fraction(files.excess), 0, 0))

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        """Evaluate some time after new commits; a timer that is set already stays."""
        if policy.rewrite_manifests_at is None or not signals.new_commits:
            return None
        return at_ms + EVALUATED_AFTER_MS, TimerChange.EARLIER


REWRITE_MANIFESTS_ACTION = RewriteManifestsAction()
