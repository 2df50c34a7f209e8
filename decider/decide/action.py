"""The interface of a kind of work: everything that the decider knows of an action, such as compaction, is in `Action`.

Everything else is shared by all actions and knows none by name: eligibility, switch and filter, calibration, deference
to writers, queue, ledger, funnel. To add an action, write one module with an `Action`, list it in `actions.py`, and
let it pass the contract suite.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from decider.decide.decision import Prediction, Trigger
from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import DecisionReason
from shared.layout.partition_count import PartitionCount
from shared.layout.partition_stats import PartitionStats
from shared.layout.planner import Plan
from shared.policy.policy import Policy
from shared.queue.model import Timer
from shared.table import DataFile, PartitionColumn, PartitionKey


@dataclass(frozen=True, slots=True)
class Proposal:
    """An action's answer for one partition: why, and the predicted effect of a job (None: there is nothing to do).

    rewrite_kind: extent of the rewrite, where it differs from the trigger's.
    """

    reason: DecisionReason
    prediction: Prediction | None = None
    rewrite_kind: RewriteKind | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class TimerTarget:
    """The partition that a timer evaluates, and the extent of the rewrite."""

    partition: PartitionKey
    rewrite_kind: RewriteKind = RewriteKind.LEVELS


class ActionKind(Protocol):
    """Properties of every kind of work, on partitions and on whole tables."""

    @property
    def kind(self) -> str:
        """Kind of its jobs, by which queue, ledger and actors know it."""
        ...

    @property
    def reasons(self) -> type[DecisionReason]:
        """Reasons of its own; reasons of the pipeline (`PIPELINE_REASONS`) need not be among them.

        One for which it proposes no job has a stage of the funnel.
        """
        ...

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner of a table with this policy wants the action to run by itself."""
        ...


class Action(ActionKind, Protocol):
    """One kind of work on a partition; pure: the same numbers give the same proposal."""

    @property
    def is_calibrated(self) -> bool:
        """True if its predictions are corrected by the table's measured runs, which only compaction has."""
        ...

    @property
    def timers(self) -> "ActionTimers | None":
        """Its timers; None where only commits and rebuilds trigger it."""
        ...

    def evaluate(self, stats: PartitionStats, policy: Policy, trigger: Trigger) -> Proposal:
        """Evaluate a partition that may be touched, on its numbers alone."""
        ...

    def plan(
        self, partition: PartitionKey, files: Sequence[DataFile], policy: Policy, rewrite_kind: RewriteKind
    ) -> Plan:
        """Plan a partition that may be touched, on its live files, for a dry run.

        The plan has file groups exactly where `evaluate` proposes a job; without groups its reason says why.
        """
        ...


class ActionTimers(Protocol):
    """When an action evaluates a partition again without a commit; the name of a timer identifies the action."""

    def parse(self, name: str) -> TimerTarget | None:
        """Return what a timer of this action evaluates; None for the name of another one."""
        ...

    def after_commit(
        self,
        partition: PartitionKey,
        state: PartitionStats,
        policy: Policy,
        at_ms: int,
        columns: Sequence[PartitionColumn],
    ) -> Iterator[Timer]:
        """Yield the changes of a partition's timers after a commit changed data in it."""
        ...

    def after_rewrite(
        self, partition: PartitionKey, state: PartitionStats, policy: Policy, rewritten: Iterable[int] = ()
    ) -> Iterator[Timer]:
        """Yield the changes after a rewrite; `rewritten`: starts of the time windows that it made files of."""
        ...

    def after_rebuild(
        self,
        partitions: Mapping[PartitionKey, PartitionCount],
        policy: Policy,
        at_ms: int,
        columns: Sequence[PartitionColumn],
    ) -> Iterator[Timer]:
        """Yield all timers of a table whose state was rebuilt from its live files."""
        ...
