"""Row expiry as an action: once rows were added, delete those that are older than the owner lets rows become.

Which rows these are is the actor's to find. How old they are is measured at the time of the decision at the latest,
which the job carries.
"""

from decider.decide.decision import TableSignals
from decider.decide.deduplicate import timer_at
from decider.decide.table_action import AT_LEAST_ONE, TableProposal
from shared.jobs.options import ExpiryOptions
from shared.jobs.payload import EXPIRE
from shared.layout.eligibility import DecisionReason
from shared.policy.policy import Policy
from shared.queue.model import TimerChange


class ExpiryReason(DecisionReason):
    """Why rows of a table that are over are, or are not, deleted."""

    TIME_WENT_ON = "time_went_on", "Rows were added since the last deletion of rows by their age."
    NO_TIME_WENT_ON = (
        "no_time_went_on",
        "No rows were added since the last deletion of rows by their age.",
        "pruned_by_age",
    )
    EXPIRED_RECENTLY = (
        "expired_recently",
        "Less than `delete-rows-every` has passed since the last deletion.",
        "pruned_by_age",
    )


class ExpireAction:
    """When rows of a table that are over are deleted."""

    kind: str = EXPIRE
    reasons: type[DecisionReason] = ExpiryReason
    is_rewrite: bool = False

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner named an age and a column."""
        return policy.delete_rows_after is not None

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:
        """Propose a deletion where rows were added, if the last one is long enough ago.

        Without new commits no more rows are over: their age is measured at the newest one.
        """
        due_ms = signals.key_runs.due_ms(policy.delete_rows_every_s)
        if due_ms is None or at_ms < due_ms:
            return TableProposal(ExpiryReason.NO_TIME_WENT_ON if due_ms is None else ExpiryReason.EXPIRED_RECENTLY)
        return TableProposal(ExpiryReason.TIME_WENT_ON, AT_LEAST_ONE, ExpiryOptions(at_ms).encode())

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:  # noqa: ARG002 - the protocol's
        """Evaluate as soon as rows were added and `delete-rows-every` has passed since the last deletion."""
        return timer_at(signals.key_runs.due_ms(policy.delete_rows_every_s))


EXPIRE_ACTION = ExpireAction()
