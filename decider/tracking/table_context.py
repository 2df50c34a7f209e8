"""A table as far as its log is read: the state that its commits have led to, and the policy in effect for it."""

from collections.abc import Mapping
from dataclasses import dataclass

from decider.decide.calibration import Calibration
from decider.decide.context import DecisionContext
from decider.state.effective_policy import EffectivePolicy
from decider.store.tables.table_state import TableState
from shared.partition_refusals import PartitionRefusals
from shared.policy.policy import Policy
from shared.refusals import Refusal
from shared.table import PartitionKey, TableRef


@dataclass(frozen=True, slots=True)
class TableContext:
    """One table, its state and its effective policy; loaded once, and passed to all that need more than one of them."""

    table: TableRef
    state: TableState
    in_force: EffectivePolicy

    @property
    def policy(self) -> Policy:
        """The policy in effect."""
        return self.in_force.policy

    @property
    def refusal(self) -> Refusal | None:
        """Why the table must not be rewritten, even on request; None if it may be."""
        return self.in_force.refusal

    def deciding(
        self,
        calibration: Calibration,
        at_ms: int,
        *,
        policy: Policy | None = None,
        refusals: Mapping[PartitionKey, PartitionRefusals] | None = None,
    ) -> DecisionContext:
        """Return the context of decisions about the table; `policy`: of one run, instead of the one in effect."""
        return DecisionContext.resolve(
            *(self.table, self.state.metadata, policy or self.policy, calibration),
            contention=self.state.contention,
            at_ms=at_ms,
            last_rewrite_ms=self.state.last_rewrite_ms,
            refusals=refusals,
        )
