"""A table as far as its log is read: the state that its commits have led to, and the policy in effect for it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from decider.decide.calibration import Calibration
from decider.decide.context import DecisionContext
from decider.state.effective_policy import EffectivePolicy
from decider.store.tables.table_state import TableState
from shared.partition_refusals import PartitionRefusals
from shared.policy.policy import Policy
from shared.refusals import Refusal
from shared.table import BEFORE_FIRST, PartitionKey, Position, TableRef


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


TRUSTED_MS = 60_000
"""How long a table whose commits are applied is assumed to be the same one without a check."""


@dataclass(slots=True)
class FollowedTable:
    """Where a table was verified, whether its log was listed, and a lock for following it.

    lock: events and timers of a table often come at once. Two that read a log of millions of files take twice the
    memory, and the work of one is lost.
    """

    verified: Position = BEFORE_FIRST
    verified_ms: int = 0
    is_listed: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_trusted(self, position: Position, now_ms: int) -> bool:
        """Return whether a table is known to be the same one at this position, so that no request has to confirm it."""
        return self.verified == position and now_ms - self.verified_ms < TRUSTED_MS

    def verify(self, position: Position, now_ms: int) -> None:
        """Note that the table's history contains this position."""
        self.verified, self.verified_ms = position, now_ms
