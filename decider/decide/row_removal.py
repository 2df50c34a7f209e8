"""Removals of rows as actions: older rows of a key, and rows that are older than the owner lets rows become.

Which rows these are is the actor's to find, in the data. From the commits the decider knows whether rows were added
since the last run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from decider.decide.decision import TableSignals
from decider.decide.table_action import AT_LEAST_ONE, TableProposal
from shared.jobs.options import DeduplicateOptions, ExpiryOptions
from shared.jobs.payload import DEDUPLICATE, EXPIRE
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


@dataclass(slots=True, eq=False)
class RowRemovalAction:
    """When rows of a table are removed.

    due, not_due, too_early: rows were added, none were, and the last run is too recent. every_s: least time between two
    runs. wants: the owner switched it on. options: of a job that is decided at a time in ms.
    """

    kind: str
    due: DecisionReason
    not_due: DecisionReason
    too_early: DecisionReason
    every_s: Callable[[Policy], int]
    wants: Callable[[Policy], bool]
    options: Callable[[TableSignals, int], Mapping[str, Any]]
    is_rewrite: bool = False

    @property
    def reasons(self) -> type[DecisionReason]:
        """Reasons of its decisions."""
        return type(self.due)

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return self.wants(policy)

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:
        """Propose a run where rows were added, if the last one is long enough ago."""
        due_ms = signals.key_runs.due_ms(self.every_s(policy))
        if due_ms is None or at_ms < due_ms:
            return TableProposal(self.not_due if due_ms is None else self.too_early)
        # How many rows are removed is in the data alone.
        return TableProposal(self.due, AT_LEAST_ONE, self.options(signals, at_ms))

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:  # noqa: ARG002 - the protocol's
        """Evaluate as soon as rows were added and the last run is long enough ago."""
        due_ms = signals.key_runs.due_ms(self.every_s(policy))
        return (0, TimerChange.STOP) if due_ms is None else (due_ms, TimerChange.SET)


DEDUPLICATE_ACTION = RowRemovalAction(
    DEDUPLICATE,
    DeduplicateReason.ROWS_ADDED,
    DeduplicateReason.NO_ROWS_ADDED,
    DeduplicateReason.COMPARED_RECENTLY,
    every_s=lambda policy: policy.deduplicate_every_s,
    wants=lambda policy: policy.has_key,
    options=lambda signals, _at_ms: DeduplicateOptions(signals.key_runs.compared_version).encode(),
)

EXPIRE_ACTION = RowRemovalAction(
    EXPIRE,
    ExpiryReason.TIME_WENT_ON,
    ExpiryReason.NO_TIME_WENT_ON,
    ExpiryReason.EXPIRED_RECENTLY,
    every_s=lambda policy: policy.delete_rows_every_s,
    wants=lambda policy: policy.delete_rows_after is not None,
    options=lambda _signals, at_ms: ExpiryOptions(at_ms).encode(),
)
"""Ages are measured at the decision at the latest, and at the newest commit: without one no more rows are over."""
