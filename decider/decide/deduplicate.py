"""Newest row per key as an action: once rows were added, remove those for which a newer row of the same key exists.

Which rows these are is the actor's to find, in the data. From the commits the decider knows whether rows were added
since all rows were compared last.
"""

from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.jobs.options import DeduplicateOptions
from shared.jobs.payload import DEDUPLICATE
from shared.layout.eligibility import DecisionReason
from shared.policy.policy import Policy
from shared.queue.model import TimerChange


class DeduplicateReason(DecisionReason):
    """Why older rows of a table are, or are not, removed."""

    ROWS_ADDED = "rows_added", "Rows were added since the last removal of older rows."
    NO_ROWS_ADDED = "no_rows_added", "No rows were added since the last removal of older rows.", "pruned_by_keys"
    COMPARED_RECENTLY = (
        "compared_recently",
        "Less than `deduplicate-every` has passed since the last removal.",
        "pruned_by_keys",
    )


class DeduplicateAction:
    """When older rows of a table are removed."""

    kind: str = DEDUPLICATE
    reasons: type[DecisionReason] = DeduplicateReason
    is_rewrite: bool = False

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner named a key, and a sequence."""
        return policy.has_key

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:
        """Propose a removal where rows were added, if the last one is long enough ago."""
        runs = signals.key_runs
        if not runs.is_pending:
            return TableProposal(DeduplicateReason.NO_ROWS_ADDED)
        if runs.compared_ms and at_ms < runs.compared_ms + policy.deduplicate_every_s * 1000:
            return TableProposal(DeduplicateReason.COMPARED_RECENTLY)
        # How many rows are removed is in the data alone.
        options = DeduplicateOptions(runs.compared_version).encode()
        return TableProposal(DeduplicateReason.ROWS_ADDED, Prediction(0, 0, 0, Fraction(1), 0, 0), options)

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:  # noqa: ARG002 - the protocol's
        """Evaluate as soon as rows were added and `deduplicate-every` has passed since the last removal."""
        runs = signals.key_runs
        if not runs.is_pending:
            return 0, TimerChange.STOP
        return runs.compared_ms + policy.deduplicate_every_s * 1000 if runs.compared_ms else 0, TimerChange.SET


DEDUPLICATE_ACTION = DeduplicateAction()
