"""Upkeep of a table's metadata as actions, one for each kind: manifests, statistics of columns, delete files.

How much there is to do is in the newest metadata. These are read when the table is evaluated, ten minutes after a
commit at the earliest: commits that follow each other closely cost one evaluation.
"""

from dataclasses import dataclass
from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.layout.eligibility import DecisionReason
from shared.layout.upkeep import UPKEEP, UpkeepKind
from shared.policy.policy import Policy
from shared.queue.model import TimerChange

EVALUATED_AFTER_MS = 600_000
"""From the first commit after an evaluation to the next evaluation."""


@dataclass(slots=True, eq=False)
class MetadataUpkeep:
    """When upkeep of a kind is done."""

    of: UpkeepKind
    is_rewrite: bool = False

    @property
    def kind(self) -> str:
        """Kind of its jobs."""
        return self.of.kind

    @property
    def reasons(self) -> type[DecisionReason]:
        """Reasons of its decisions."""
        return type(self.of.due)

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return self.of.at(policy) is not None

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:  # noqa: ARG002 - the protocol's
        """Propose a job where there is as much to do as the policy says; no data file is replaced."""
        found = signals.upkeep.get(self.kind)
        need = self.of.need(found, policy)
        if found is None or need is not self.of.due:
            return TableProposal(need)
        read_bytes, benefit = (found.bytes, 1) if self.of.renews_all else (0, found.excess)
        return TableProposal(need, Prediction(0, 0, read_bytes, Fraction(benefit), 0, 0))

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        """Evaluate some time after new commits; a timer that is set already stays."""
        if not self.is_on(policy) or not signals.new_commits:
            return None
        return at_ms + EVALUATED_AFTER_MS, TimerChange.EARLIER


UPKEEP_ACTIONS = tuple(map(MetadataUpkeep, UPKEEP))
"""The actions, in the order of evaluation."""
