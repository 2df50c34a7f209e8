"""Checkpoints as an action: written where a table's writers do not, so that it opens as fast after many commits.

No commit says that a checkpoint was written. So a table is evaluated at each multiple of `checkpoint-every` commits,
and the version of the newest checkpoint is read then: one small request.
"""

from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.jobs.payload import CHECKPOINT
from shared.layout.eligibility import DecisionReason
from shared.policy.policy import Policy
from shared.queue.model import TimerChange


class CheckpointReason(DecisionReason):
    """Why a checkpoint is, or is not, written."""

    MANY_COMMITS = "many_commits", "The newest checkpoint is `checkpoint-every` commits old, or there is none."
    FEW_COMMITS = (
        "few_commits",
        "Fewer commits than `checkpoint-every` follow the newest checkpoint.",
        "pruned_by_checkpoint",
    )
    NOT_KNOWN = (
        "checkpoint_not_known",
        "The table's newest checkpoint is not known, or its format has no checkpoints.",
        "pruned_by_checkpoint",
    )


class CheckpointAction:
    """When a checkpoint is written."""

    kind: str = CHECKPOINT
    reasons: type[DecisionReason] = CheckpointReason
    is_rewrite: bool = False

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return policy.checkpoint_every is not None

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:  # noqa: ARG002 - the protocol's
        """Propose a checkpoint where enough commits follow the newest one."""
        if signals.checkpoint is None:
            return TableProposal(CheckpointReason.NOT_KNOWN)
        behind = signals.version - signals.checkpoint
        if policy.checkpoint_every is None or behind < policy.checkpoint_every:
            return TableProposal(CheckpointReason.FEW_COMMITS)
        return TableProposal(CheckpointReason.MANY_COMMITS, Prediction(0, 0, 0, Fraction(behind), 0, 0))

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        """Evaluate now if the new commits lead past a multiple of `checkpoint-every`; else leave the timer alone."""
        every = policy.checkpoint_every
        if every is None or (signals.version + 1) // every == (signals.version + 1 - signals.new_commits) // every:
            return None
        return at_ms, TimerChange.EARLIER


CHECKPOINT_ACTION = CheckpointAction()
