"""The optimization of a Qbeast index as an action: once groups of blocks are eligible.

Which blocks that are follows from all live files, which no sum replaces. So a commit only sets a timer, and the files
are read when it fires; the actor selects again on the live files.
"""

from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.jobs.payload import INDEX
from shared.layout.eligibility import DecisionReason
from shared.policy.policy import Policy
from shared.queue.model import TimerChange


class IndexReason(DecisionReason):
    """Why an index is, or is not, optimized."""

    ELIGIBLE = "eligible_blocks", "Blocks of one cube have the rows of the next level together."
    SAMPLE = "sample_overhead", "A rewrite spares queries on a sample at least a twentieth of its bytes."
    NEW_FILES = "files_not_indexed", "Other writers added files that are not indexed."
    NOTHING_ELIGIBLE = (
        "no_eligible_blocks",
        "No blocks of one cube and level have the rows of the next level together.",
        "pruned_by_index",
    )
    REFUSED = (
        "index_refused",
        "The index must not be rewritten, or its properties contradict it: see `tables index`.",
        "pruned_by_index",
    )
    DOUBLED = (
        "index_rows_doubled",
        "Another optimizer wrote rows again that a commit before it had removed.",
        "pruned_by_index",
    )
    NOT_INDEXED = "not_an_indexed_table", "The table has no Qbeast index.", "pruned_by_index"


_BY_STRATEGY = {"sampling": IndexReason.SAMPLE, "unindexed": IndexReason.NEW_FILES}
"""Reasons by how the files of the next iteration are chosen, where it is not by blocks."""


class IndexAction:
    """When an index is optimized."""

    kind: str = INDEX
    reasons: type[DecisionReason] = IndexReason
    is_rewrite: bool = True

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return policy.index

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:  # noqa: ARG002 - the protocol's
        """Propose a job where an iteration has files to rewrite; it is charged with the first iteration."""
        index = signals.index
        if index is None:
            return TableProposal(IndexReason.NOT_INDEXED)
        if index.doubled:  # Another rewrite would mix these rows with others, and they could not be taken back.
            return TableProposal(IndexReason.DOUBLED)
        if index.refusal:
            return TableProposal(IndexReason.REFUSED)
        if not index.next_files:
            return TableProposal(IndexReason.NOTHING_ELIGIBLE)
        # How many files there are afterwards depends on the rows of cubes.
        files, size_bytes = index.next_files, index.next_bytes
        reason = _BY_STRATEGY.get(index.next_strategy, IndexReason.ELIGIBLE)
        return TableProposal(reason, Prediction(files, 0, size_bytes, Fraction(files), 0, size_bytes))

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        """Look at the index some time after the first of the new commits, so that many of them share a look."""
        if not (signals.new_commits and policy.traits.is_indexed):
            return None
        return at_ms + policy.index_every_s * 1000, TimerChange.EARLIER


INDEX_ACTION = IndexAction()
