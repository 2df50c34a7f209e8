"""Newest row per key as an action: once rows were added, remove those for which a newer row of the same key exists.

Which rows these are is the actor's to find, in the data. From the commits the decider knows whether rows were added
since all rows were compared last.
"""

from decider.decide.decision import TableSignals
from decider.decide.table_action import AT_LEAST_ONE, TableProposal
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
        due_ms = signals.key_runs.due_ms(policy.deduplicate_every_s)
        if due_ms is None:
            return TableProposal(DeduplicateReason.NO_ROWS_ADDED)
        if at_ms < due_ms:
            return TableProposal(DeduplicateReason.COMPARED_RECENTLY)
        # How many rows are removed is in the data alone.
        options = DeduplicateOptions(signals.key_runs.compared_version).encode()
        return TableProposal(DeduplicateReason.ROWS_ADDED, AT_LEAST_ONE, options)

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:  # noqa: ARG002 - the protocol's
        """Evaluate as soon as rows were added and `deduplicate-every` has passed since the last removal."""
        return timer_at(signals.key_runs.due_ms(policy.deduplicate_every_s))


def timer_at(due_ms: int | None) -> tuple[int, TimerChange]:
    """Return the change of a timer after which a removal is evaluated when it is due; None: never."""
    return (0, TimerChange.STOP) if due_ms is None else (due_ms, TimerChange.SET)


DEDUPLICATE_ACTION = DeduplicateAction()
