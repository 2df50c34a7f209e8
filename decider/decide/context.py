"""Inputs of decisions about one table, resolved once and passed as a value: policy, calibration, writers, clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.decision import NOTHING_REFUSED, RefusedPart, Trigger, TriggerSource
from shared.partition_refusals import PartitionRefusals
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import PartitionColumn, PartitionKey, TableId, TableMetadata, TableRef


class Contention(Protocol):
    """Where MERGE, UPDATE and DELETE run in a table."""

    def busy_ratio(self, partition: PartitionKey, now_ms: int) -> Fraction:
        """Return the share of the last hour, 0 to 1, in which they ran in a partition."""
        ...


@dataclass(frozen=True, slots=True)
class ConstantContention:
    """The same busy ratio in every partition, such as the one that a ledger record keeps of its partition."""

    ratio: Fraction = Fraction(0)

    def busy_ratio(self, partition: PartitionKey, now_ms: int) -> Fraction:  # noqa: ARG002 - the protocol's
        """Return the share."""
        return self.ratio


class Refusals(Protocol):
    """Refused files of a table."""

    def part(self, partition: PartitionKey, trigger: Trigger, policy: Policy) -> RefusedPart:
        """Return the part of a partition that does not count for a decision."""
        ...

    def of_job(self, kind: str, version: int) -> RefusedPart:
        """Return whether jobs of a kind on the table as a whole are held at a version."""
        ...


@dataclass(frozen=True, slots=True)
class KnownRefusals:
    """Remembered refusals, by partition."""

    partitions: Mapping[PartitionKey, PartitionRefusals] = field(default_factory=dict)

    def part(self, partition: PartitionKey, trigger: Trigger, policy: Policy) -> RefusedPart:
        """Return the part of a partition that does not count; a timer or a person waits for no hold but the longest."""
        known = self.partitions.get(partition)
        if known is None:
            return NOTHING_REFUSED
        is_automatic = trigger.source not in (TriggerSource.TIMER, TriggerSource.REQUEST)
        return RefusedPart(known.stats(policy), known.blocks(trigger.version, is_automatic=is_automatic))

    def of_job(self, kind: str, version: int) -> RefusedPart:
        """Return whether jobs of a kind on the table as a whole are held at a version."""
        known = self.partitions.get(WHOLE_TABLE)
        return RefusedPart(is_held=known is not None and known.holds_job(kind, version))


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """One table at one moment; `policy` is the effective one with the table's learned shrink factor.

    at_ms: the decider's clock, for the ledger and for contention. last_rewrite_ms: commit time of the newest rewrite,
    0 if there was none or it is not known. refusals: files that actors refused. commit_every_ms: mean time between the
    commits of its writers, 0 if it is not known. together_ms: when the merges that wait are ready.
    """

    table: TableRef
    metadata: TableMetadata
    policy: Policy
    calibration: Calibration = UNCALIBRATED
    contention: Contention = ConstantContention()
    at_ms: int = 0
    last_rewrite_ms: int = 0
    refusals: Refusals = KnownRefusals()
    commit_every_ms: int = 0
    together_ms: int = 0

    @staticmethod
    def resolve(  # noqa: PLR0913 - every part is independent of the others
        table: TableRef,
        metadata: TableMetadata,
        policy: Policy,
        calibration: Calibration,
        *,
        contention: Contention,
        at_ms: int,
        last_rewrite_ms: int = 0,
        refusals: Mapping[PartitionKey, PartitionRefusals] | None = None,
        commit_every_ms: int = 0,
        together_ms: int = 0,
    ) -> "DecisionContext":
        """Return the context of a table under its effective policy, which is calibrated here and nowhere else."""
        calibrated = calibration.applied_to(policy)
        known = KnownRefusals(refusals or {})
        return DecisionContext(
            *(table, metadata, calibrated, calibration, contention, at_ms, last_rewrite_ms, known),
            *(commit_every_ms, together_ms),
        )

    @staticmethod
    def of_policy(policy: Policy, columns: Sequence[PartitionColumn] = (), at_ms: int = 0) -> "DecisionContext":
        """Return a context in which nothing but a (calibrated) policy is known: no writers, nothing measured.

        at_ms: as of when a filter with moving moments is evaluated.
        """
        return DecisionContext(_UNKNOWN_TABLE, TableMetadata("", tuple(columns)), policy, at_ms=at_ms)

    @property
    def columns(self) -> tuple[PartitionColumn, ...]:
        """Partition columns of the table."""
        return self.metadata.partition_columns

    def busy_ratio(self, partition: PartitionKey) -> Fraction:
        """Return the share of the last hour in which MERGE, UPDATE and DELETE ran in a partition."""
        return self.contention.busy_ratio(partition, self.at_ms)


_UNKNOWN_TABLE = TableRef(TableId(""), "", "")
