"""Upkeep of a table's metadata as actions: manifests and delete files are merged, statistics computed again.

How much there is to do is in the newest metadata. These are read when the table is evaluated, ten minutes after a
commit at the earliest: commits that follow each other closely cost one evaluation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.jobs.payload import COMPUTE_STATISTICS, MERGE_DELETES, REWRITE_MANIFESTS
from shared.layout.delete_files import DeleteFilesReason, delete_files_need
from shared.layout.eligibility import DecisionReason
from shared.layout.manifest_files import ManifestReason, manifests_need
from shared.layout.statistics_age import StatisticsReason, statistics_need
from shared.policy.policy import Policy
from shared.queue.model import TimerChange

EVALUATED_AFTER_MS = 600_000
"""From the first commit after an evaluation to the next evaluation."""


@dataclass(slots=True, eq=False)
class MetadataUpkeep:
    """When such work is done; `setting` is from when on the policy wants it, None: never."""

    kind: str
    reasons: type[DecisionReason]
    setting: Callable[[Policy], object]
    proposed: Callable[[TableSignals, Policy], TableProposal]
    is_rewrite: bool = False

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return self.setting(policy) is not None

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:  # noqa: ARG002 - the protocol's
        """Propose a job where there is as much to do as the policy says."""
        return self.proposed(signals, policy)

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:
        """Evaluate some time after new commits; a timer that is set already stays."""
        if not self.is_on(policy) or not signals.new_commits:
            return None
        return at_ms + EVALUATED_AFTER_MS, TimerChange.EARLIER


def _manifests(signals: TableSignals, policy: Policy) -> TableProposal:
    found = signals.manifests
    need = manifests_need(found, policy.rewrite_manifests_at)
    return TableProposal(need, None if found is None or need is not ManifestReason.MANY else _merge_of(found.excess))


def _delete_files(signals: TableSignals, policy: Policy) -> TableProposal:
    found = signals.delete_files
    need = delete_files_need(found, policy.merge_deletes_at, policy.convert_deletes_at)
    if found is None or need is DeleteFilesReason.FEW:
        return TableProposal(need)
    return TableProposal(need, _merge_of(found.by_value if need is DeleteFilesReason.MANY_VALUES else found.excess))


def _merge_of(files: int) -> Prediction:
    """Return the prediction of a merge of so many files: no data file is replaced, so it is charged with no bytes."""
    return Prediction(0, 0, 0, Fraction(files), 0, 0)


def _statistics(signals: TableSignals, policy: Policy) -> TableProposal:
    age = signals.statistics
    need = statistics_need(age, policy.compute_statistics_at)
    if age is None or need is not StatisticsReason.OLD:
        return TableProposal(need)
    return TableProposal(need, Prediction(0, 0, age.bytes, Fraction(1), 0, 0))  # It replaces no file, and reads all.


REWRITE_MANIFESTS_ACTION = MetadataUpkeep(
    REWRITE_MANIFESTS, ManifestReason, lambda policy: policy.rewrite_manifests_at, _manifests
)
MERGE_DELETES_ACTION = MetadataUpkeep(
    MERGE_DELETES,
    DeleteFilesReason,
    lambda policy: policy.convert_deletes_at if policy.merge_deletes_at is None else policy.merge_deletes_at,
    _delete_files,
)
COMPUTE_STATISTICS_ACTION = MetadataUpkeep(
    COMPUTE_STATISTICS, StatisticsReason, lambda policy: policy.compute_statistics_at, _statistics
)
