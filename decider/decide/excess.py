"""Merging of what readers open beside the data as actions: many small manifests, or delete files, become few.

How many manifests there are is in the newest snapshot's manifest list, one small file; the delete files are in some of
the manifests. They are read when the table is evaluated, ten minutes after a commit at the earliest: commits that
follow each other closely cost one evaluation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.jobs.payload import MERGE_DELETES, REWRITE_MANIFESTS
from shared.layout.delete_files import DeleteFilesReason, delete_files_need
from shared.layout.eligibility import DecisionReason
from shared.layout.manifest_files import ManifestReason, manifests_need
from shared.policy.policy import Policy
from shared.queue.model import TimerChange

EVALUATED_AFTER_MS = 600_000
"""From the first commit after an evaluation to the next evaluation."""


@dataclass(slots=True, eq=False)
class ExcessAction:
    """When superfluous files of the metadata are merged: as many as the policy says (`at`; None: never).

    need: why they are, or are not, by the signals and that number; MANY if they are. excess: how many are superfluous.
    """

    kind: str
    reasons: type[DecisionReason]
    many: DecisionReason
    at: Callable[[Policy], int | None]
    need: Callable[[TableSignals, int | None], DecisionReason]
    excess: Callable[[TableSignals], int]
    is_rewrite: bool = False

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return self.at(policy) is not None

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:  # noqa: ARG002 - the protocol's
        """Propose a merge where as many files are superfluous as the policy says."""
        need = self.need(signals, self.at(policy))
        if need is not self.many:
            return TableProposal(need)
        # It replaces no data file, so it is charged with no bytes.
        return TableProposal(need, Prediction(0, 0, 0, Fraction(self.excess(signals)), 0, 0))

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        """Evaluate some time after new commits; a timer that is set already stays."""
        if not self.is_on(policy) or not signals.new_commits:
            return None
        return at_ms + EVALUATED_AFTER_MS, TimerChange.EARLIER


REWRITE_MANIFESTS_ACTION = ExcessAction(
    REWRITE_MANIFESTS,
    ManifestReason,
    ManifestReason.MANY,
    lambda policy: policy.rewrite_manifests_at,
    lambda signals, at: manifests_need(signals.manifests, at),
    lambda signals: 0 if signals.manifests is None else signals.manifests.excess,
)

MERGE_DELETES_ACTION = ExcessAction(
    MERGE_DELETES,
    DeleteFilesReason,
    DeleteFilesReason.MANY,
    lambda policy: policy.merge_deletes_at,
    lambda signals, at: delete_files_need(signals.delete_files, at),
    lambda signals: 0 if signals.delete_files is None else signals.delete_files.excess,
)
