"""What decisions about one table rest on, resolved once and passed as a value: policy, calibration, writers, clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from decider.decide.calibration import UNCALIBRATED, Calibration
from shared.policy import Policy
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


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """One table at one moment; `policy` is the effective one with the table's learned shrink factor.

    at_ms: the decider's clock, for the ledger and for contention. last_rewrite_ms: commit time of the newest rewrite,
    0 if there was none or it is not known.
    """

    table: TableRef
    metadata: TableMetadata
    policy: Policy
    calibration: Calibration = UNCALIBRATED
    contention: Contention = ConstantContention()
    at_ms: int = 0
    last_rewrite_ms: int = 0

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
    ) -> "DecisionContext":
        """Return the context of a table under its effective policy, which is calibrated here and nowhere else."""
        calibrated = calibration.applied_to(policy)
        return DecisionContext(table, metadata, calibrated, calibration, contention, at_ms, last_rewrite_ms)

    @staticmethod
    def of_policy(policy: Policy, columns: Sequence[PartitionColumn] = ()) -> "DecisionContext":
        """Return a context in which nothing but a (calibrated) policy is known: no writers, nothing measured."""
        return DecisionContext(_UNKNOWN_TABLE, TableMetadata("", tuple(columns)), policy)

    @property
    def columns(self) -> tuple[PartitionColumn, ...]:
        """Partition columns of the table."""
        return self.metadata.partition_columns

    def busy_ratio(self, partition: PartitionKey) -> Fraction:
        """Return the share of the last hour in which MERGE, UPDATE and DELETE ran in a partition."""
        return self.contention.busy_ratio(partition, self.at_ms)


_UNKNOWN_TABLE = TableRef(TableId(""), "", "")
