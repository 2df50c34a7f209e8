"""A toy action on tables as a whole: an inventory of what was removed, an hour after the oldest removal.

It has all that such an action can have, and nothing outside of this file knows it.
"""

from fractions import Fraction

from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.layout.eligibility import DecisionReason
from shared.policy.policy import Policy, RowGroupCopy
from shared.queue.model import TimerChange

INVENTORY = "inventory"
AFTER_MS = 3_600_000


class InventoryReason(DecisionReason):
    """Why a table is, or is not, counted."""

    NOTHING_REMOVED = "nothing_removed", "Nothing was removed.", "pruned_by_entropy"
    REMOVED = "removed", "Files were removed."


class Inventory:
    """Counts removed files, on tables whose row groups are never copied."""

    kind: str = INVENTORY
    reasons: type[DecisionReason] = InventoryReason
    is_rewrite: bool = False

    def is_on(self, policy: Policy) -> bool:
        return policy.row_group_copy is RowGroupCopy.NEVER

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:
        files, _ = signals.removals.expired(at_ms)
        if not files:
            return TableProposal(InventoryReason.NOTHING_REMOVED)
        predicted = Prediction(0, files, 0, Fraction(files), files, 0)
        return TableProposal(InventoryReason.REMOVED, predicted, {"until_ms": at_ms})

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        first_end_ms = signals.removals.first_end_ms
        return (0, TimerChange.STOP) if first_end_ms is None else (first_end_ms + AFTER_MS, TimerChange.SET)


TOY = Inventory()
WITH_TOY_TABLE = ActionRegistry(ACTIONS.actions, (*ACTIONS.table_actions, TOY))
